"""Trees with many rows are taken side by side some after the others; a tree never in two pieces."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plait.operators.traversal.abreast import Abreast, Reached
from plait.operators.traversal.probe_task import Start
from tests.unit.state.builders import described

BUCKET = described(store="s", path="s", rows=1_000)


@pytest.mark.parametrize(
    ("capacity", "expected"),
    [
        (16 * 1_000, [[0, 0, 1, 2, 3]]),
        (16 * 30, [[0, 0, 1], [2, 3]]),
        (16 * 25, [[0, 0], [1, 2], [3]]),
        (1, [[0, 0], [1], [2], [3]]),
    ],
)
def test_as_many_trees_start_together_as_their_rows_allow(
    monkeypatch: pytest.MonkeyPatch, capacity: int, expected: list[list[int]]
) -> None:
    together: list[list[int]] = []

    def noted(_: Abreast, starts: list[Start]) -> Iterator[Reached]:
        together.append([number for number, *_ in starts])
        return iter(())

    monkeypatch.setattr(Abreast, "_levels_of", noted)
    ahead = Abreast.__new__(Abreast)
    ahead._capacity = capacity
    ahead._starts = [(number, BUCKET, low, low + 10) for number, low in ((0, 0), (0, 10), (1, 0), (2, 0), (3, 0))]
    assert list(ahead.levels()) == []
    assert together == expected
