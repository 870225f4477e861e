"""What windows that are over consist of, against going through the panes of each."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.operators.close.groups import GroupedQuery, Over
from plait.operators.close.window_parts import parts_of_windows
from plait.query.time_windows import TimeWindow
from plait.sinks.delivery import Fold, Partial

COUNT = Partial(name="#p0", first="", again='CAST(sum("#p0") AS BIGINT)', measured="rows", of=None, type="BIGINT")


def query(size: int, slide: int, start: int) -> GroupedQuery:
    window = TimeWindow(relation="r", column="ts", size_us=size, slide_us=slide, start_us=start, lag_us=0)
    fold = Fold(pane_us=1, start_us=0, keys=("r.k",), partials=(COUNT,))
    return GroupedQuery(query="q", identity="i", window=window, time="r.ts", fold=fold)


def kept(rows: list[tuple[int, int, int]]) -> pa.RecordBatch:
    taus, keys, counts = (np.array([row[at] for row in rows], np.int64) for at in range(3))
    times = pa.array(taus).cast(pa.timestamp("us", tz="UTC"))
    return pa.RecordBatch.from_arrays([times, pa.array(keys), pa.array(counts)], names=["r.ts", "r.k", "#p0"])


def over(after: int | None, until: int) -> Over:
    return Over(after_us=after, until_us=until, files=())


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.integers(-50, 80), st.integers(0, 1), st.integers(1, 5)), min_size=1, max_size=20),
    st.tuples(st.integers(1, 60), st.integers(1, 60), st.integers(-5, 5)),
    st.one_of(st.none(), st.integers(-60, 60)),
    st.integers(-40, 200),
)
def test_pieces_come_to_what_all_panes_of_a_window_do(
    rows: list[tuple[int, int, int]], lengths: tuple[int, int, int], after: int | None, until: int
) -> None:
    size, slide, start = max(lengths[:2]), min(lengths[:2]), lengths[2]
    wanted = Counter[tuple[int, int]]()
    for tau, key, number in rows:
        for n in range((tau - start - size) // slide, (tau - start) // slide + 2):
            begin = start + n * slide
            if begin <= tau < begin + size and (after is None or begin + size > after) and begin + size <= until:
                wanted[begin, key] += number
    begins, parts = parts_of_windows(kept(rows), query(size, slide, start), over(after, until))
    found = Counter[tuple[int, int]]()
    for begin, key, number in zip(begins.tolist(), *(parts.column(at).to_pylist() for at in (1, 2)), strict=True):
        found[begin, key] += number
    assert found == wanted


def test_a_long_window_with_a_short_slide_has_few_pieces() -> None:
    rows = [(tau, 0, 1) for tau in range(7_200)]
    begins, parts = parts_of_windows(kept(rows), query(3_600, 1, 0), over(3_600, 7_200))
    windows = np.unique(begins)
    assert len(windows) == 3_600
    assert parts.num_rows <= 2 * 12 * len(windows)
    assert sum(parts.column(2).to_pylist()) == 3_600 * 3_600
