"""Sets of relations as bit masks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from plait.query.masks import connected_levels, has_more_sets, positions


@given(st.data())
def test_every_connected_set_is_found_once_and_no_other(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 6))
    pairs = [(i, j) for i in range(count) for j in range(i) if data.draw(st.booleans())]
    neighbours = [sum(1 << (j if i == each else i) for i, j in pairs if each in (i, j)) for each in range(count)]
    found = [mask for level in connected_levels(neighbours) for mask in level]
    assert sorted(found) == [mask for mask in range(1, 1 << count) if _is_connected(mask, neighbours)]
    assert [mask.bit_count() for mask in found] == sorted(mask.bit_count() for mask in found)
    sets = len(found) if (1 << count) - 1 in found else (1 << count) - 1
    assert [has_more_sets(neighbours, most) for most in (sets - 1, sets)] == [True, False]


def _is_connected(mask: int, neighbours: list[int]) -> bool:
    reached = mask & -mask
    while True:
        grown = reached
        for position in positions(reached):
            grown |= neighbours[position] & mask
        if grown == reached:
            return reached == mask
        reached = grown
