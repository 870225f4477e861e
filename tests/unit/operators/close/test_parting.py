"""Which sessions are over, and whose rows wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from plait.operators.close import groups
from plait.operators.close.final_groups import final_groups
from plait.operators.close.groups import GroupedQuery, Windows, close_windows, over_at
from plait.operators.close.parting import Int64s, part_sessions, write_sessions
from plait.operators.reports import ProbeReport, ResultFile
from plait.query.time_windows import SessionWindow
from plait.sinks.delivery import BEGIN, END, LAST, Finishing, Fold, Partial
from plait.state.gathered import folder_of, read_gathered, write_gathered
from plait.state.model import END_OF_TIME_US, GatheredRows, Manifest, OpenGroups
from plait.state.storage import Storage

UTC = pa.timestamp("us", tz="UTC")
VISITS = SessionWindow(relation="r", column="ts", gap_us=10, lag_us=3)
QUERY = GroupedQuery(query="q", identity="i", window=VISITS, time="r.ts", keys=("r.k",))


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage.open(str(tmp_path))


def file(storage: Storage, name: str, *rows: tuple[int, str]) -> GatheredRows:
    times, keys = zip(*rows, strict=True)
    batch = pa.RecordBatch.from_arrays([pa.array(times, UTC), pa.array(keys)], names=["r.ts", "r.k"])
    return write_gathered(storage, folder_of("q"), name, batch, "r.ts")


def no_codes(query: GroupedQuery, files: Sequence[GatheredRows]) -> Int64s:
    raise AssertionError(query, files)


def batch(
    storage: Storage, before: Windows | None, files: Sequence[GatheredRows], mark: int | None, *queries: GroupedQuery
) -> Windows:
    waiting = () if before is None else before.waiting
    asked = queries or (QUERY,)
    reports = [ProbeReport(results=(ResultFile(query=query.query, rows=0, gathered=tuple(files)),)) for query in asked]
    manifest = Manifest(batch=6, watermark_us=None, plan="p", groups=waiting)
    name = f"{len(waiting and waiting[0].files)}-{mark}"
    windows = close_windows(storage, manifest, reports, asked, mark, name)
    return part_sessions(storage, windows, asked, no_codes, name)


def over(windows: Windows, query: str = "q") -> set[tuple[str, int, int, int]]:
    """Return key, time and bounds of each row of sessions that are over."""
    if query not in windows.over:
        return set()
    found = windows.over[query].sessions
    assert found is not None
    times = found.rows.column("r.ts").cast(pa.int64()).to_pylist()
    keys = found.rows.column("r.k").to_pylist()
    return set(zip(keys, times, found.begins.tolist(), found.ends.tolist(), strict=True))


def left(storage: Storage, windows: Windows) -> list[tuple[int, str]]:
    rows = [batch.to_pydict() for groups in windows.waiting for batch in read_gathered(storage, groups.files)]
    micros = [int(time.timestamp() * 1_000_000) for each in rows for time in each["r.ts"]]
    return sorted(zip(micros, (key for each in rows for key in each["r.k"]), strict=True))


def test_a_session_is_over_once_the_watermark_has_passed_its_end_and_the_lag(storage: Storage) -> None:
    rows = [file(storage, "a", (0, "a"), (10, "a"), (5, "b"))]
    assert over(batch(storage, None, rows, 18)) == set()
    first = batch(storage, None, rows, 19)
    assert over(first) == {("b", 5, 5, 15)}
    assert left(storage, first) == [(0, "a"), (10, "a")]
    assert over(batch(storage, first, [], 23)) == set()
    last = batch(storage, first, [], 24)
    assert over(last) == {("a", 0, 0, 20), ("a", 10, 0, 20)}
    assert [groups.files for groups in last.waiting] == [()]
    alone = [file(storage, "b", (0, "a"))]
    assert [over(batch(storage, None, alone, mark)) for mark in (13, 14)] == [set(), {("a", 0, 0, 10)}]


def test_what_a_later_file_prolongs_waits_as_a_whole(storage: Storage) -> None:
    first = batch(storage, None, [file(storage, "a", (0, "a"), (2, "b"))], 13)
    second = batch(storage, first, [file(storage, "b", (10, "a"))], 16)
    assert over(second) == {("b", 2, 2, 12)}
    assert left(storage, second) == [(0, "a"), (10, "a")]


def test_files_of_which_all_rows_wait_stay_as_they_are(storage: Storage) -> None:
    files = [file(storage, "a", (0, "a"), (6, "b")), file(storage, "b", (7, "b"), (14, "c"))]
    windows = batch(storage, None, files, 19)
    assert over(windows) == {("a", 0, 0, 10)}
    assert windows.waiting[0].files[0] == files[1]
    assert left(storage, windows) == [(6, "b"), (7, "b"), (14, "c")]


def test_many_files_become_one_also_where_all_rows_wait(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "MOST_FILES", 2)
    files = [file(storage, str(at), (at, "a")) for at in range(3)]
    windows = batch(storage, None, files, 14)
    assert (over(windows), len(windows.waiting[0].files)) == (set(), 1)
    assert left(storage, windows) == [(0, "a"), (1, "a"), (2, "a")]
    assert "groups/q/0-14.arrow" not in {each.path for each in storage.list("groups", recursive=True)}  # once is enough
    # Where no session can be over they are put together as those of windows are.
    assert len(batch(storage, None, files, None).waiting[0].files) == 1


def test_a_row_that_comes_after_its_session_was_written_is_put_together_with_nothing(storage: Storage) -> None:
    first = batch(storage, None, [file(storage, "a", (0, "a"), (12, "b"))], 20)
    assert over(first) == {("a", 0, 0, 10)}
    # Only where the watermark has fallen back: the session of 0 is written, the one of 4 would have been over.
    late = batch(storage, first, [file(storage, "b", (4, "a"), (8, "b"), (20, "c"))], 18)
    assert over(late) == set()
    last = batch(storage, late, [], 27)
    assert over(last) == {("b", 12, 8, 22), ("b", 8, 8, 22)}
    assert left(storage, last) == [(20, "c")]


def test_the_end_of_the_input_ends_all_sessions(storage: Storage) -> None:
    windows = batch(storage, None, [file(storage, "a", (0, "a"), (99, "b"))], END_OF_TIME_US)
    assert over(windows) == {("a", 0, 0, 10), ("b", 99, 99, 109)}
    assert windows.waiting == (OpenGroups(query="q", identity="i", over_until_us=END_OF_TIME_US - 4),)


def test_queries_with_the_same_sessions_go_on_sharing_what_waits(storage: Storage) -> None:
    files = [file(storage, "a", (0, "a"), (6, "b"), (11, "a"))]
    queries = [replace(QUERY, query=name) for name in ("q", "same")]
    queries.append(replace(QUERY, query="long", window=replace(VISITS, gap_us=12)))
    queries.append(replace(QUERY, query="any", keys=()))
    windows = batch(storage, None, files, 16, *queries)
    same, again, long, any_ = windows.waiting
    assert same.files == again.files != files
    assert over(windows, "same") == over(windows) == {("a", 0, 0, 10)}
    for name, others in (("long", long), ("any", any_)):
        assert (over(windows, name), others.files) == (set(), tuple(files))


def test_what_tells_rows_apart_may_be_computed_elsewhere(storage: Storage) -> None:
    query = replace(QUERY, keys=None)
    files = [file(storage, "a", (0, "a"), (8, "A")), file(storage, "b", (0, "b"))]

    def codes(asked: GroupedQuery, of: Sequence[GatheredRows]) -> Int64s:
        assert (asked, tuple(of)) == (query, tuple(files))
        return np.array([7, 7, 3])

    reports = [ProbeReport(results=(ResultFile(query="q", rows=0, gathered=tuple(files)),))]
    windows = close_windows(storage, None, reports, [query], 15, "n")
    parted = part_sessions(storage, windows, [query], codes, "n")
    assert over(parted) == {("b", 0, 0, 10)}
    assert left(storage, parted) == [(0, "a"), (8, "A")]


def test_a_file_whose_first_row_cannot_be_over_is_not_looked_at(storage: Storage) -> None:
    waiting = OpenGroups(query="q", identity="i", over_until_us=5, files=(file(storage, "a", (7, "a")),))
    after, found = over_at(waiting, VISITS, 20)
    assert (after.over_until_us, after.files, found) == (16, waiting.files, None)
    assert over_at(waiting, VISITS, 9) == (waiting, None)


FOLD = Fold(
    pane_us=1,
    start_us=0,
    keys=("r.k",),
    partials=(
        Partial(name="#p0", first="count(*)", again='CAST(sum("#p0") AS BIGINT)', measured="rows", of=None, type=None),
        Partial(name=LAST, first='max(epoch_us("0"))', again=f'max("{LAST}")', measured="max", of=0, type=None),
    ),
    gap_us=10,
)


def test_parts_of_sessions_that_queries_share_are_put_together_by_the_shortest_gap(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "MOST_FILES", 1)
    files = [
        parts(storage, name, row)
        for name, row in (("a", (0, "a", 1, 2)), ("b", (5, "a", 1, 5)), ("c", (14, "a", 1, 14)))
    ]
    queries = [
        replace(QUERY, query=name, window=replace(VISITS, gap_us=gap), fold=replace(FOLD, gap_us=gap))
        for name, gap in (("short", 4), ("long", 10))
    ]
    short, long = batch(storage, None, files, 5, *queries).waiting
    assert (short.files, short.over_until_us) == (long.files, 1)
    (merged,) = read_gathered(storage, long.files)
    assert sorted(zip(merged.column("#p0").to_pylist(), merged.column(LAST).to_pylist(), strict=True)) == [
        (1, 14),
        (2, 5),
    ]


def parts(storage: Storage, name: str, *rows: tuple[int, str, int, int]) -> GatheredRows:
    """Write partial aggregates: first time, key, count and last time."""
    times, keys, counts, lasts = zip(*rows, strict=True)
    columns = [pa.array(times, UTC), pa.array(keys), pa.array(counts, pa.int64()), pa.array(lasts, pa.int64())]
    batch = pa.RecordBatch.from_arrays(columns, names=["r.ts", "r.k", "#p0", LAST])
    return write_gathered(storage, folder_of("q"), name, batch, "r.ts")


FINISHING = Finishing(keys=("r.k",), finals=('CAST(sum("#p0") AS BIGINT)',), made=(0, 1, 2, 3), having=None)


def test_groups_are_made_of_partial_aggregates_each_with_the_end_of_its_session(storage: Storage) -> None:
    query = replace(QUERY, fold=FOLD)
    given = parts(storage, "p", (0, "a", 2, 8), (9, "a", 1, 9), (40, "a", 1, 45), (5, "b", 4, 6))
    windows = batch(storage, None, [given], 30, query)
    found = windows.over["q"]
    assert found.sessions is not None
    made = final_groups([found.sessions.rows], query, FINISHING, found)
    bounds = [made.column(place).cast(pa.int64()).to_pylist() for place in (0, 1)]
    assert set(zip(*bounds, made.column(2).to_pylist(), made.column(3).to_pylist(), strict=True)) == {
        (0, 19, "a", 3),
        (5, 16, "b", 4),
    }
    spooled = write_sessions(storage, query, found.sessions, "s")
    (read,) = read_gathered(storage, [spooled])
    assert read.schema.names == ["r.ts", "r.k", "#p0", LAST, BEGIN, END]
    assert set(read.column(END).to_pylist()) == {19, 16}
