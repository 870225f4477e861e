"""Which sources can be read once more for the sake of a row."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from plait.errors import OptionError
from plait.query.model import Connector, Stream
from plait.runtime.inputs.delta_files import Position, read_log
from plait.runtime.why.delta_tables import batches_of_files, files_of_batches, positions
from plait.runtime.why.evidence import read_again
from tests.delta_tables import DeltaTable

NO_SPARK = cast(SparkSession, None)


def test_who_asks_about_the_groups_of_a_query_is_sent_to_that_query() -> None:
    groups = Stream(name="per_minute", time="until", derived="identity")
    with pytest.raises(OptionError, match=r"'per_minute' is the groups of query .* instead: --query per_minute"):
        read_again(NO_SPARK, groups, "checkpoint")


def test_a_frame_of_the_program_cannot_be_read_once_more() -> None:
    with pytest.raises(OptionError, match=r"'orders' is a DataFrame of the program's; .* possible for files"):
        read_again(NO_SPARK, Stream(name="orders", time="at"), "checkpoint")


@pytest.mark.parametrize("format_", ["rate", "socket"])
def test_what_nobody_keeps_cannot_be_read_once_more(format_: str) -> None:
    stream = Stream(name="ticks", time="timestamp", connector=Connector(format=format_))
    with pytest.raises(
        OptionError, match=rf"'ticks' is '{format_}', which nobody keeps; .* possible for files, topics"
    ):
        read_again(NO_SPARK, stream, "checkpoint")


def test_a_topic_that_no_batch_has_read_cannot_be_asked_about(tmp_path: Path) -> None:
    stream = Stream(name="orders", time="timestamp", connector=Connector(format="kafka"))
    with pytest.raises(OptionError, match="no batch has begun to read stream 'orders' yet"):
        read_again(NO_SPARK, stream, str(tmp_path))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"skipChangeCommits": "true"}, "option skipchangecommits 'true' decides which rows it has"),
        ({"startingVersion": "latest"}, "where it began .startingVersion 'latest'. is not written down"),
    ],
)
def test_a_delta_table_is_refused_where_its_log_does_not_tell_which_rows_were_read(
    options: dict[str, str], why: str, tmp_path: Path
) -> None:
    connector = Connector(format="delta", options=(("path", str(tmp_path)), *options.items()))
    with pytest.raises(OptionError, match=f"stream 'orders' cannot be told any more: {why}"):
        batches_of_files("orders", connector, str(tmp_path))


def test_files_of_a_delta_table_are_known_by_the_order_in_which_a_stream_reads_them(tmp_path: Path) -> None:
    table = DeltaTable(tmp_path / "t", {"id": "long"})
    names = [table.append({"id": n}) for n in range(4)]
    offsets = [(4, 1, "true"), (5, -1, "false"), (5, 0, "false")]
    names.append(table.append({"id": 4}))
    told = {
        batch: f'{{"reservoirVersion":{version},"index":{index},"isStartingVersion":{in_snapshot}}}'
        for batch, (version, index, in_snapshot) in enumerate(offsets)
    }
    found = files_of_batches("s", read_log(str(table.folder)), positions("s", told))
    assert [found[name] for name in names] == [0, 0, 1, 1, 2]
    assert files_of_batches("s", read_log(str(table.folder)), {}, starting=4) == dict.fromkeys(names[3:])
    with pytest.raises(OptionError, match="in a form unknown"):
        positions("s", {0: "{}"})


def test_a_file_that_a_checkpoint_of_the_log_tells_of_as_well_was_read_with_its_commit(tmp_path: Path) -> None:
    table = DeltaTable(tmp_path / "t", {"id": "long"})
    names = [table.append({"id": n}) for n in range(4)]
    log = table.folder / "_delta_log"
    there = [{"path": name, "size": 1} for name in names[:2]]
    pq.write_table(pa.table({"add": there}), log / f"{2:020}.checkpoint.parquet")
    (log / "_last_checkpoint").write_text('{"version":2,"size":2}')
    for gone in range(2):
        (log / f"{gone:020}.json").unlink()
    reached = {batch: Position(version=batch + 2, index=-1, in_snapshot=False) for batch in range(3)}
    found = files_of_batches("s", read_log(str(table.folder)), reached)
    assert [found[name] for name in names] == [0, 1, 2, None]
