"""How a backlog is drained: in batches of about the rows that were asked for, the streams level in event time."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import plait
from plait import sinks
from plait.runtime.batch.events import BatchEvent
from plait.sql import load_script

pytestmark = pytest.mark.spark

SPAN_S = 1200
Write = Callable[[Path, list[datetime]], object]


def write_files(folder: Path, files: int, rows_each: int, write: Write) -> None:
    """Write files whose rows are spread evenly over `SPAN_S` seconds, the oldest first."""
    folder.mkdir()
    step = SPAN_S / (files * rows_each)
    for number in range(files):
        instants = [1_700_000_000 + (number * rows_each + row) * step for row in range(rows_each)]
        path = folder / f"{number:03d}"
        write(path, [datetime.fromtimestamp(instant, UTC) for instant in instants])
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def as_parquet(path: Path, instants: list[datetime]) -> None:
    ids = pa.array(range(len(instants)), pa.int64())
    pq.write_table(pa.table({"id": ids, "ts": pa.array(instants, pa.timestamp("us", "UTC"))}), path)


def as_csv(path: Path, instants: list[datetime]) -> None:
    path.write_text("".join(f"{row},{instant.isoformat()}\n" for row, instant in enumerate(instants)))


def as_xml(path: Path, instants: list[datetime]) -> None:
    rows = "".join(f'<r id="{row}" ts="{instant:%Y-%m-%dT%H:%M:%SZ}"/>' for row, instant in enumerate(instants))
    path.write_text(f"<rows>{rows}</rows>")


class Drained:
    """A script's streams, drained once."""

    def __init__(self, spark: SparkSession, folder: Path, text: str, batch_rows: str) -> None:
        self.events: list[BatchEvent] = []
        self.engine = plait.Engine(spark, checkpoint=str(folder / "checkpoint"), listener=self.events.append)
        self.engine.set_option("plait.batch_rows", batch_rows)
        self.engine.load(load_script(text, base=str(folder)))
        self.engine.run_available()

    @property
    def rows(self) -> list[int]:
        return [event.rows_in for event in self.events]

    def bound(self, stream: str) -> dict[str, Any]:
        return next(bound for bound in self.engine.status()["bounds"] if bound["stream"] == stream)


TWO = """
    CREATE STREAM r (id BIGINT, ts TIMESTAMP) USING parquet OPTIONS (path 'r'{0})
      TIMESTAMP BY ts WINDOW INTERVAL 1 MINUTE;
    CREATE STREAM s (id BIGINT, ts TIMESTAMP) USING csv OPTIONS (path 's') TIMESTAMP BY ts WINDOW INTERVAL 1 MINUTE;
    CREATE QUERY q INTO noop AS SELECT r.id FROM r JOIN s ON r.id = s.id;
"""


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A stream of 12,000 rows in 24 files, and one of 6,000 in 48."""
    write_files(tmp_path / "r", 24, 500, as_parquet)
    write_files(tmp_path / "s", 48, 125, as_csv)
    return tmp_path


def test_a_backlog_is_drained_in_batches_of_the_rows_asked_for_and_streams_stay_level(
    spark: SparkSession, two: Path
) -> None:
    drained = Drained(spark, two, TWO.format(""), "3000")
    assert len(drained.events) == 6
    assert max(drained.rows) <= 1.3 * 3000
    assert sum(drained.rows) == 18_000
    for event in drained.events:
        ends = [counts.tau_max for counts in event.sources if counts.tau_max is not None]
        assert max(ends) - min(ends) <= SPAN_S * 1e6 / 12
    latency = drained.events[-1].latency
    assert latency is not None
    assert (latency.batches, latency.unknown) == (len(drained.events), ())
    # The files are years old, but nobody was there to read them until the run began.
    assert 0 < (latency.p50_seconds or 0) < (latency.p99_seconds or 0) <= drained.engine.summary().wall_seconds
    # A minute of both streams is kept, and what one of the two is ahead: not a whole stream.
    assert max(event.stored_tuples for event in drained.events) <= 2 * 3000
    assert drained.bound("r")["by"] == "plait"
    assert "of r about 2,000" in drained.engine.explain()


def test_a_bound_of_the_users_own_wins_for_its_stream_and_the_other_keeps_level_with_it(
    spark: SparkSession, two: Path
) -> None:
    drained = Drained(spark, two, TWO.format(", maxFilesPerTrigger '3'"), "1000000")
    assert len(drained.events) == 8
    assert [sum(counts.rows for counts in event.sources if counts.source == "r") for event in drained.events] == [
        1500
    ] * 8
    assert (drained.bound("r")["by"], drained.bound("r")["option"]) == ("user", "maxFilesPerTrigger")


def test_without_a_bound_a_backlog_is_one_batch(spark: SparkSession, two: Path) -> None:
    assert Drained(spark, two, TWO.format(""), "none").rows == [18_000]


def test_batches_that_are_much_too_large_because_a_format_tells_nothing_become_right_after_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_files(tmp_path / "r", 60, 50, as_xml)
    text = """
        CREATE STREAM r (_id BIGINT, _ts TIMESTAMP) USING xml OPTIONS (path 'r', rowTag 'r') TIMESTAMP BY _ts;
        CREATE QUERY q INTO noop AS SELECT r._id FROM r;
    """
    drained = Drained(spark, tmp_path, text, "200")
    assert sum(drained.rows) == 3000
    assert drained.rows[0] > 2 * 200
    assert max(drained.rows[2:]) <= 250
    assert drained.bound("r")["basis"] == "sampled"


def test_a_stream_that_a_program_declares_is_bounded_and_one_it_opens_itself_is_not(
    spark: SparkSession, two: Path
) -> None:
    events: list[BatchEvent] = []
    engine = plait.Engine(spark, checkpoint=str(two / "checkpoint"), listener=events.append)
    engine.set_option("plait.batch_rows", 4000)
    engine.stream("r", format="parquet", options={"path": str(two / "r")}, time="ts", window="1 minute")
    frame = spark.readStream.name("s").schema("id BIGINT, ts TIMESTAMP").csv(str(two / "s"))
    engine.stream("s", frame, time="ts", window="1 minute")
    engine.query("q", "SELECT r.id FROM r JOIN s ON r.id = s.id", sink=sinks.noop())
    engine.run_available()
    assert [bound["by"] for bound in engine.status()["bounds"]] == ["plait", "nobody"]
    assert len(events) == 3
    assert "s whatever there is" in engine.explain()
