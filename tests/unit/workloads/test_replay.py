"""What the demo writes, and what it refuses to touch."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from plait.errors import OptionError
from plait.workloads.flights import SCRIPT, STAMP, TIME_COLUMNS, Replay, write_demo

TWO_DAYS = Replay(first_day=date(2013, 2, 7), days=2, hours_per_file=12)


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("demo") / "out"
    write_demo(TWO_DAYS, output)
    return output


def numbered(output: Path, stream: str) -> list[Path]:
    return sorted((output / "in" / stream).glob("*.parquet"))


def test_the_same_file_of_each_stream_holds_the_same_hours(replayed: Path) -> None:
    begins: dict[int, list[object]] = {}
    for stream, column in TIME_COLUMNS.items():
        for number, path in enumerate(numbered(replayed, stream)):
            times = pq.read_table(path)[column]
            if len(times):
                hours = pc.unique(pc.floor_temporal(times, multiple=12, unit="hour")).to_pylist()
                begins.setdefault(number, []).extend(hours)
    assert all(len(set(hours)) == 1 for hours in begins.values())
    assert len(begins) >= 4


def test_files_are_dated_in_their_order_because_spark_takes_the_oldest_first(replayed: Path) -> None:
    for stream in TIME_COLUMNS:
        dates = [path.stat().st_mtime for path in numbered(replayed, stream)]
        assert dates == sorted(set(dates))


def test_missing_measurements_are_null_and_not_nan(replayed: Path) -> None:
    gusts = pq.read_table(replayed / "in" / "weather")["wind_gust"]
    assert gusts.null_count > 0
    assert not pc.any(pc.is_nan(gusts)).as_py()


def test_times_are_stored_as_utc_microseconds(replayed: Path) -> None:
    for stream, column in TIME_COLUMNS.items():
        assert str(pq.read_schema(numbered(replayed, stream)[0]).field(column).type) == "timestamp[us, tz=UTC]"


def test_the_same_replay_again_leaves_everything_as_it_is(replayed: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in replayed.rglob("*")}
    assert write_demo(TWO_DAYS, replayed) == replayed / SCRIPT
    assert {path: path.stat().st_mtime_ns for path in replayed.rglob("*")} == before


def test_another_replay_in_the_same_folder_is_refused_with_both_ways_out(replayed: Path) -> None:
    other = Replay(first_day=date(2013, 2, 7), days=3, hours_per_file=12)
    with pytest.raises(OptionError, match=r"replay of 2 days from 2013-02-07.*--fresh.*--output"):
        write_demo(other, replayed)


def test_fresh_replaces_inputs_results_and_checkpoint(tmp_path: Path) -> None:
    write_demo(TWO_DAYS, tmp_path)
    for left in ("out/knock_on/part.parquet", "flights.checkpoint/plait/catalog"):
        (tmp_path / left).parent.mkdir(parents=True)
        (tmp_path / left).write_text("old")
    one_day = Replay(first_day=date(2013, 2, 8), days=1, hours_per_file=24)
    write_demo(one_day, tmp_path, fresh=True)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "flights.checkpoint").exists()
    assert json.loads((tmp_path / STAMP).read_text())["days"] == 1


@pytest.mark.parametrize("fresh", [False, True])
def test_a_folder_of_somebody_else_is_refused_and_not_touched(tmp_path: Path, fresh: bool) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "mine.txt").write_text("keep")
    with pytest.raises(OptionError, match="did not write"):
        write_demo(TWO_DAYS, tmp_path, fresh=fresh)
    assert [path.name for path in tmp_path.rglob("*")] == ["in", "mine.txt"]


def test_a_replay_that_was_cut_short_is_written_again(tmp_path: Path) -> None:
    write_demo(TWO_DAYS, tmp_path)
    stamp = tmp_path / STAMP
    stamp.write_text(json.dumps({**json.loads(stamp.read_text()), "complete": False}))
    (tmp_path / SCRIPT).unlink()
    write_demo(TWO_DAYS, tmp_path)
    assert (tmp_path / SCRIPT).exists()
    assert json.loads(stamp.read_text())["complete"]


@pytest.mark.parametrize(
    ("first_day", "days", "hours"), [(date(2014, 1, 1), 1, 24), (date(2013, 1, 1), 0, 24), (date(2013, 1, 1), 1, 0)]
)
def test_an_impossible_replay_is_refused(first_day: date, days: int, hours: int) -> None:
    with pytest.raises(OptionError, match="expected"):
        Replay(first_day=first_day, days=days, hours_per_file=hours)


def test_a_replay_ends_with_the_year() -> None:
    assert Replay(first_day=date(2013, 12, 30), days=90, hours_per_file=24).last_day == date(2013, 12, 31)
