"""What waits of a stream, from its folder and Spark's log."""

from __future__ import annotations

import gzip
import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from plait.query.model import Connector, DeclaredStatistics, Stream
from plait.runtime.admission.stream_files import logged_files
from plait.runtime.admission.survey import explained_bounds, look, survey
from plait.state.model import SourceProgress
from tests.delta_tables import DeltaTable

START_S = 1_700_000_000


def stream(folder: Path | str, format_: str = "parquet", **options: str) -> Stream:
    return Stream(
        name="s", time="ts", connector=Connector(format=format_, options=(("path", str(folder)), *options.items()))
    )


def rows(count: int, first_s: int = 0) -> pa.Table:
    instants = [datetime.fromtimestamp(START_S + first_s + row, UTC) for row in range(count)]
    return pa.table({"id": pa.array(range(count), pa.int64()), "ts": pa.array(instants, pa.timestamp("us", "UTC"))})


def write(folder: Path, files: int, rows_each: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        path = folder / f"{number:03d}.parquet"
        pq.write_table(rows(rows_each, number * rows_each), path)
        os.utime(path, (START_S + number, START_S + number))


def have_read(checkpoint: Path, *paths: Path) -> str:
    """Let Spark's log of the source name these files; return the checkpoint."""
    log = checkpoint / "spark" / "sources" / "s"
    log.mkdir(parents=True)
    lines = [json.dumps({"path": f"file://{path}", "timestamp": 1, "batchId": 0}) for path in paths]
    (log / "0").write_text("\n".join(["v1", *lines]))
    return str(checkpoint)


def test_parquet_tells_its_rows_and_event_times(tmp_path: Path) -> None:
    write(tmp_path, 3, 100)
    found = survey(stream(tmp_path), None)
    assert (found.files, found.rows, found.basis, found.unit) == (3, 300, "counted", "bytes")
    assert found.first_us == START_S * 1_000_000
    assert found.last_us == (START_S + 299) * 1_000_000
    assert found.bytes == sum(path.stat().st_size for path in tmp_path.iterdir())


def test_of_many_files_some_are_counted_and_the_ends_of_event_time_are_among_them(tmp_path: Path) -> None:
    write(tmp_path, 80, 10)
    found = survey(stream(tmp_path), None)
    assert found.basis == "sampled"
    assert found.rows == pytest.approx(800, rel=0.05)
    assert (found.first_us, found.last_us) == (START_S * 1_000_000, (START_S + 799) * 1_000_000)


def test_what_spark_has_read_waits_no_more(tmp_path: Path) -> None:
    write(tmp_path / "in", 4, 10)
    checkpoint = have_read(tmp_path, tmp_path / "in" / "000.parquet", tmp_path / "in" / "002.parquet")
    assert survey(stream(tmp_path / "in"), checkpoint).rows == 20


def test_where_nothing_waits_the_size_of_rows_is_that_of_the_newest_files(tmp_path: Path) -> None:
    write(tmp_path / "in", 2, 10)
    checkpoint = have_read(tmp_path, *(tmp_path / "in").iterdir())
    found = survey(stream(tmp_path / "in"), checkpoint)
    assert (found.files, found.rows, found.bytes) == (0, 0, 0)
    assert found.row_bytes == pytest.approx((tmp_path / "in" / "000.parquet").stat().st_size / 10, rel=0.05)


@pytest.mark.parametrize("format_", ["csv", "json", "text"])
def test_lines_of_texts_are_counted_in_their_first_part(tmp_path: Path, format_: str) -> None:
    (tmp_path / "a").write_text("0123456789\n" * 50_000)
    found = survey(stream(tmp_path, format_), None)
    assert found.rows == pytest.approx(50_000, rel=0.01)
    assert found.row_bytes == pytest.approx(11, rel=0.01)


def test_compressed_texts_are_counted_by_what_they_hold(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"".join(b"%d,%d\n" % (n, n * n) for n in range(200_000))))
    assert survey(stream(tmp_path, "csv"), None).rows == pytest.approx(200_000, rel=0.1)


def test_orc_tells_its_rows_and_a_binary_file_is_a_row(tmp_path: Path) -> None:
    orc.write_table(pa.table({"id": list(range(70))}), tmp_path / "a.orc")
    assert survey(stream(tmp_path, "orc"), None).rows == 70
    assert survey(stream(tmp_path, "binaryFile"), None).rows == 1


def test_a_format_that_tells_nothing_is_assumed_then_measured_by_what_was_read(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / name).write_bytes(b"x" * 6000)
    assert survey(stream(tmp_path / "in", "xml"), None).basis == "assumed"
    assert survey(stream(tmp_path / "in", "xml"), None).rows == 60
    checkpoint = have_read(tmp_path, tmp_path / "in" / "a")
    found = survey(stream(tmp_path / "in", "xml"), checkpoint, SourceProgress(source="s", rows=100))
    assert (found.rows, found.row_bytes, found.basis) == (200, 60, "sampled")


def test_a_damaged_file_does_not_keep_the_others_from_being_counted(tmp_path: Path) -> None:
    write(tmp_path, 2, 100)
    (tmp_path / "zz.parquet").write_bytes(b"no parquet")
    found = survey(stream(tmp_path), None)
    assert found.files == 3
    assert found.rows == pytest.approx(200, rel=0.05)


def test_files_that_spark_passes_over_do_not_wait(tmp_path: Path) -> None:
    write(tmp_path, 1, 10)
    write(tmp_path / "day=1", 1, 10)
    write(tmp_path / "other", 1, 10)
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".hidden.parquet").write_bytes(b"x")
    assert survey(stream(tmp_path), None).rows == 20
    assert survey(stream(tmp_path, recursiveFileLookup="true"), None).rows == 30
    assert survey(stream(tmp_path, pathGlobFilter="{000,001}.parquet"), None).rows == 20
    assert survey(stream(tmp_path, pathGlobFilter="*.csv"), None).rows == 0


def test_a_path_with_patterns_is_followed(tmp_path: Path) -> None:
    for name in ("x1", "x2", "y1"):
        write(tmp_path / name, 2, 10)
    assert survey(stream(f"{tmp_path}/x*"), None).rows == 40
    assert survey(stream(f"{tmp_path}/{{x1,y1}}/000.parquet"), None).rows == 20
    checkpoint = have_read(tmp_path / "checkpoint", tmp_path / "x1" / "000.parquet")
    assert survey(stream(f"{tmp_path}/x*"), checkpoint).rows == 30


def test_a_folder_that_is_empty_or_missing_is_no_error(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        found = survey(stream(folder), None)
        assert (found.rows, found.basis, found.unit) == (0, "assumed", "bytes")


def test_a_bound_of_the_users_own_is_told_in_rows(tmp_path: Path) -> None:
    write(tmp_path, 3, 100)
    found = survey(stream(tmp_path, MAXFILESPERTRIGGER="2"), None)
    assert (found.own, found.own_rows) == ("maxFilesPerTrigger", 200)
    checkpoint = have_read(tmp_path / "checkpoint", *tmp_path.glob("*.parquet"))
    assert survey(stream(tmp_path, maxFilesPerTrigger="2"), checkpoint).own_rows == 200
    by_bytes = survey(stream(tmp_path, maxBytesPerTrigger=str(found.bytes // 3)), None)
    assert by_bytes.own_rows == pytest.approx(100, rel=0.05)
    assert survey(stream(tmp_path, maxBytesPerTrigger="1g"), None).own_rows is None
    offsets = Stream(name="k", time="ts", connector=Connector(format="kafka", options=(("maxOffsetsPerTrigger", "7"),)))
    assert survey(offsets, None).own_rows == 7


def test_readers_that_cannot_be_bounded_are_told_apart() -> None:
    rate = Stream(name="r", time="timestamp", connector=Connector(format="rate"))
    assert [survey(each, None).unit for each in (rate, Stream(name="f", time="ts"))] == [None, None]
    assert survey(Stream(name="k", time="ts", connector=Connector(format="kafka")), None).unit == "rows"


def test_rates_are_those_declared_or_else_measured() -> None:
    progress = SourceProgress(source="s", rows=100, tau_min=0, tau_max=50_000_000)
    declared = DeclaredStatistics(rate_rows_per_s=7.0)
    assert survey(Stream(name="s", time="ts"), None, progress).rate == 2.0
    assert survey(Stream(name="s", time="ts", declared=declared), None, progress).rate == 7.0
    assert survey(Stream(name="s", time="ts"), None).rate is None


def test_without_a_bound_nothing_is_looked_at(tmp_path: Path) -> None:
    assert look([stream(tmp_path)], None, None) == ((), ())


def test_what_bounds_a_batch_is_said_in_a_sentence(tmp_path: Path) -> None:
    write(tmp_path, 2, 100)
    bounded = stream(tmp_path)
    said = explained_bounds([bounded], None, {"plait.batch_rows": "100"})
    assert said.startswith("A batch takes about 100 rows at most (plait.batch_rows): of s about 100 (")
    assert "off" in explained_bounds([bounded], None, {"plait.batch_rows": "none"})
    own = explained_bounds([stream(tmp_path, maxFilesPerTrigger="1")], None, {})
    assert own.endswith("of s about 100 (maxFilesPerTrigger)")
    assert "at a guess" in explained_bounds([stream(tmp_path / "missing")], None, {})


def test_of_a_log_no_more_is_parsed_than_tells_that_it_is_too_long(tmp_path: Path) -> None:
    checkpoint = have_read(tmp_path, *(Path(f"/in/{number}") for number in range(10)))
    log = tmp_path / "spark" / "sources" / "s"
    (log / "1.compact").write_text(
        (log / "0").read_text() + "\n" + (log / "0").read_text().replace("/in/", "/new/")[3:]
    )
    (log / "2").write_text("v1\nnot JSON")
    assert len(logged_files(checkpoint, "s", 5)) == 6
    (log / "2").unlink()
    (log / "0").write_text("v1\nnot JSON")
    assert len(logged_files(checkpoint, "s")) == 20, "an entry that holds all spares those before it"


def at(second: int) -> datetime:
    return datetime.fromtimestamp(START_S + second, UTC)


def test_a_delta_table_tells_by_its_log_what_waits_beyond_what_was_read(tmp_path: Path) -> None:
    table = DeltaTable(tmp_path / "t", {"id": "long", "ts": "timestamp"})
    for commit in range(3):
        table.append(*({"id": n, "ts": at(100 * commit + n)} for n in range(10 * (commit + 1))))
    told = stream(table.folder, "delta")
    found = survey(told, None)
    assert (found.files, found.rows, found.basis, found.unit) == (3, 60, "counted", "bytes")
    assert (found.first_us, found.last_us) == (START_S * 1_000_000, (START_S + 229) * 1_000_000)
    assert found.bytes == sum(path.stat().st_size for path in table.folder.glob("*.parquet"))
    left = survey(told, None, SourceProgress(source="s", rows=10))
    assert (left.files, left.rows, left.first_us) == (2, 50, (START_S + 100) * 1_000_000)
    assert survey(stream(table.folder, "delta", startingVersion="3"), None).rows == 30
    assert survey(stream(table.folder, "delta", startingVersion="latest"), None).rows == 0
    table.rewrite([path.name for path in sorted(table.folder.glob("*.parquet"))[:1]], data_change=False)
    assert survey(told, None).rows == 50


def test_a_delta_table_whose_log_cannot_be_read_is_bounded_by_a_guess(tmp_path: Path) -> None:
    table = DeltaTable(tmp_path / "t", {"id": "long"})
    (table.folder / "_delta_log" / f"{1:020}.json").write_text('{"add": ')
    found = survey(stream(table.folder, "delta"), None)
    assert (found.unit, found.basis, found.rows) == ("bytes", "assumed", 0)
