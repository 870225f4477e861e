"""Which windows are over, of which files, and what still waits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from plait.operators.close import groups
from plait.operators.close.groups import GroupedQuery, Over, close_windows, over_at, resting_groups
from plait.operators.reports import ProbeReport, ResultFile
from plait.query.time_windows import TimeWindow
from plait.sinks.delivery import Fold
from plait.state.gathered import folder_of, read_gathered, require_gathered, write_gathered
from plait.state.model import END_OF_TIME_US, GatheredRows, Manifest, OpenGroups
from plait.state.storage import Storage

TUMBLING = TimeWindow(relation="r", column="ts", size_us=10, slide_us=10, start_us=0, lag_us=0)
HOPPING = TimeWindow(relation="r", column="ts", size_us=10, slide_us=5, start_us=0, lag_us=3)


def file(low: int, high: int) -> GatheredRows:
    return GatheredRows(path=f"{low}-{high}", rows=1, bytes=1, tau_min=low, tau_max=high, checksum="")


def opened(*files: GatheredRows, over: int | None = None) -> OpenGroups:
    return OpenGroups(query="q", identity="i", over_until_us=over, files=files)


def step(groups: OpenGroups, window: TimeWindow, mark: int | None) -> tuple[list[str], int | None, list[str] | None]:
    left, over = over_at(groups, window, mark)
    names = None if over is None else [each.path for each in over.files]
    return [each.path for each in left.files], left.over_until_us, names


def test_a_window_is_over_when_the_watermark_has_come_to_its_end() -> None:
    waiting = opened(file(3, 4), file(9, 9), file(10, 12))
    assert step(waiting, TUMBLING, None) == (["3-4", "9-9", "10-12"], None, None)
    assert step(waiting, TUMBLING, 9) == (["3-4", "9-9", "10-12"], 9, None)
    assert step(waiting, TUMBLING, 10) == (["10-12"], 10, ["3-4", "9-9"])
    assert step(waiting, TUMBLING, END_OF_TIME_US) == ([], END_OF_TIME_US, ["3-4", "9-9", "10-12"])


def test_a_file_is_read_for_each_of_its_windows_and_stays_until_the_last_is_over() -> None:
    waiting = opened(file(3, 12))
    # [0, 10), [5, 15) and [10, 20), each over 3 later; (−5, 5) has a row too.
    assert step(waiting, HOPPING, 7) == (["3-12"], 4, None)
    assert step(waiting, HOPPING, 8) == (["3-12"], 5, ["3-12"])
    assert step(opened(file(3, 12), over=5), HOPPING, 12) == (["3-12"], 9, None)
    assert step(opened(file(3, 12), over=9), HOPPING, 18) == (["3-12"], 15, ["3-12"])
    assert step(opened(file(3, 12), over=15), HOPPING, 22) == (["3-12"], 19, None)
    assert step(opened(file(3, 12), over=15), HOPPING, 23) == ([], 20, ["3-12"])


def test_what_has_been_written_is_not_written_again_when_the_watermark_falls_back() -> None:
    assert step(opened(file(3, 12), over=15), HOPPING, 13) == (["3-12"], 15, None)
    assert over_at(opened(file(0, 25), over=15), HOPPING, 28)[1] == Over(after_us=15, until_us=25, files=(file(0, 25),))


def rows(*taus: int) -> pa.RecordBatch:
    times = pa.array(taus, pa.timestamp("us", tz="UTC"))
    return pa.RecordBatch.from_arrays([times, pa.array([str(tau) for tau in taus])], names=["r.ts", "r.x"])


def gathered(storage: Storage, name: str, *taus: int) -> GatheredRows:
    return write_gathered(storage, folder_of("q"), name, rows(*taus), "r.ts")


QUERY = GroupedQuery(query="q", identity="i", window=TUMBLING, time="r.ts")


def closed(storage: Storage, before: Manifest, *files: GatheredRows, mark: int | None) -> groups.Windows:
    reports = [ProbeReport(results=(ResultFile(query="q", rows=0, gathered=(each,)),)) for each in files]
    return close_windows(storage, before, reports, [QUERY], mark, "7-m")


def manifest(*waiting: OpenGroups) -> Manifest:
    return Manifest(batch=6, watermark_us=None, plan="p", groups=waiting)


def test_rows_of_another_query_that_had_the_name_are_let_go(tmp_path: Path) -> None:
    storage = Storage.open(str(tmp_path))
    old, new = gathered(storage, "a", 1, 2), gathered(storage, "b", 3)
    same = closed(storage, manifest(opened(old, over=0)), new, mark=None)
    assert same.waiting == (opened(old, new, over=0),)
    other = OpenGroups(query="q", identity="another", over_until_us=0, files=(old,))
    assert closed(storage, manifest(other), new, mark=None).waiting == (opened(new),)


def test_what_queries_that_are_left_out_have_gathered_stays_as_it_is() -> None:
    waiting = (opened(file(3, 4), over=2), OpenGroups(query="other", identity="j", over_until_us=7))
    assert resting_groups(manifest(*waiting), {"other": 1}) == waiting[:1]
    assert resting_groups(manifest(*waiting), ()) == waiting
    assert resting_groups(None, ()) == ()


def test_many_small_files_become_one_without_rows_whose_windows_are_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "MOST_FILES", 2)
    storage = Storage.open(str(tmp_path))
    files = [gathered(storage, name, *taus) for name, taus in (("a", (1, 12)), ("b", (2, 31)), ("c", (3, 14)))]
    windows = closed(storage, manifest(), *files, mark=10)
    assert [each.path for each in windows.over["q"].files] == [each.path for each in files]
    (left,) = windows.waiting
    (merged,) = left.files
    assert (merged.rows, merged.tau_min, merged.tau_max, left.over_until_us) == (3, 12, 31, 10)
    (batch,) = read_gathered(storage, left.files)
    assert sorted(batch.column(1).to_pylist()) == ["12", "14", "31"]
    require_gathered(storage, left.files)


def test_partial_aggregates_of_many_files_become_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "MOST_FILES", 1)
    storage = Storage.open(str(tmp_path))
    how = Fold(pane_us=10, start_us=0, keys=("r.x",), partials=())
    query = GroupedQuery(query="q", identity="i", window=TUMBLING, time="r.ts", fold=how)
    files = [gathered(storage, name, 10, 20) for name in "ab"]
    reports = [ProbeReport(results=(ResultFile(query="q", rows=0, gathered=tuple(files)),))]
    (left,) = close_windows(storage, manifest(), reports, [query], None, "7-m").waiting
    assert [each.rows for each in left.files] == [2]


def test_rows_of_starts_that_called_the_time_zone_otherwise_become_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "MOST_FILES", 1)
    storage = Storage.open(str(tmp_path))
    other = rows(5).cast(pa.schema([("r.ts", pa.timestamp("us", tz="Etc/UTC")), ("r.x", pa.string())]))
    files = gathered(storage, "a", 4), write_gathered(storage, folder_of("q"), "b", other, "r.ts")
    (left,) = closed(storage, manifest(), *files, mark=None).waiting
    assert [(each.rows, each.tau_min, each.tau_max) for each in left.files] == [(2, 4, 5)]


def test_queries_with_the_same_small_files_go_on_sharing_one_with_what_some_of_them_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "MOST_FILES", 1)
    storage = Storage.open(str(tmp_path))
    how = Fold(pane_us=5, start_us=0, keys=("r.x",), partials=())
    windows = {"short": TUMBLING, "long": replace(TUMBLING, size_us=30, slide_us=30), "later": TUMBLING}
    queries = [
        GroupedQuery(query=name, identity="i", window=window, time="r.ts", fold=how) for name, window in windows.items()
    ]
    first, second, third = (
        gathered(storage, name, *taus) for name, taus in (("a", (0, 10)), ("b", (5, 15)), ("c", (20,)))
    )
    shared = {"short": (first, second, third), "long": (first, second, third), "later": (second, third)}
    report = ProbeReport(results=tuple(ResultFile(query=name, rows=0, gathered=each) for name, each in shared.items()))
    short, long, later = close_windows(storage, manifest(), [report], queries, 10, "7-m").waiting
    assert short.files == long.files
    (merged,) = read_gathered(storage, long.files)
    assert sorted(merged.column(0).cast(pa.int64()).to_pylist()) == [0, 5, 10, 15, 20]
    (own,) = read_gathered(storage, later.files)
    assert sorted(own.column(0).cast(pa.int64()).to_pylist()) == [15, 20]
    assert len({file.path for groups_of in (short, long, later) for file in groups_of.files}) == 2
