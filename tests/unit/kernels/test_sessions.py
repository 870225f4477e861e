"""Which rows are of one session, against putting two together as long as there are two."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.kernels.sessions import sessions

Row = tuple[int, int, int]


@st.composite
def rows(draw: st.DrawFn) -> Row:
    key, first, lasting = draw(st.tuples(st.integers(0, 2), st.integers(-30, 30), st.integers(0, 9)))
    return key, first, first + lasting


def put_together(given_rows: list[Row], gap: int) -> set[Row]:
    left = list(given_rows)
    for one in left:
        for other in left:
            if one != other and one[0] == other[0] and one[1] <= other[2] + gap and other[1] <= one[2] + gap:
                whole = (one[0], min(one[1], other[1]), max(one[2], other[2]))
                return put_together([*(each for each in left if each not in (one, other)), whole], gap)
    return set(left)


def found(given_rows: list[Row], gap: int) -> list[tuple[int, int]]:
    columns = np.array(given_rows, np.int64).reshape(-1, 3).T
    begins, lasts = sessions(columns[0], columns[1], columns[2], gap)
    return list(zip(begins.tolist(), lasts.tolist(), strict=True))


@settings(deadline=None)
@given(st.lists(rows(), max_size=12), st.integers(1, 8))
def test_each_row_knows_the_session_it_is_part_of(given_rows: list[Row], gap: int) -> None:
    wanted = put_together(given_rows, gap)
    for (key, first, last), (begin, end) in zip(given_rows, found(given_rows, gap), strict=True):
        assert (key, begin, end) in wanted
        assert begin <= first <= last <= end


def test_a_row_a_gap_after_the_last_still_belongs_to_it_and_one_later_does_not() -> None:
    assert found([(0, 5, 5), (0, 15, 15), (0, 26, 26)], 10) == [(5, 15), (5, 15), (26, 26)]


def test_a_part_inside_a_longer_one_does_not_end_it() -> None:
    assert found([(0, 0, 50), (0, 3, 4), (0, 55, 60)], 10) == [(0, 60)] * 3


def test_of_no_rows_there_are_no_sessions() -> None:
    assert found([], 3) == []
