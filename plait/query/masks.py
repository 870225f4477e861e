"""Sets of relations as bit masks, and which of them hang together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

Mask: TypeAlias = int
"""A set: bit i is the relation at position i."""


def positions(mask: Mask) -> tuple[int, ...]:
    """Return the positions in a set, ascending.

    >>> positions(0b1011)
    (0, 1, 3)
    """
    members = []
    while mask:
        low = mask & -mask
        members.append(low.bit_length() - 1)
        mask ^= low
    return tuple(members)


def connected_levels(neighbours: Sequence[Mask]) -> Iterator[set[Mask]]:
    """Yield the connected sets of a graph by their size, single relations first.

    `neighbours` are those of each position. Whatever is connected stays so without one of its leaves, so each set of a
    level is one of the level before and a neighbour of it: none is missed, and at most 2ⁿ are looked at, n of them
    neighbours.

    >>> [sorted(level) for level in connected_levels((0b010, 0b101, 0b010))]
    [[1, 2, 4], [3, 6], [7]]
    """
    level = {1 << position for position in range(len(neighbours))}
    while level:
        yield level
        level = {
            mask | 1 << position
            for mask in level
            for inside in positions(mask)
            for position in positions(neighbours[inside] & ~mask)
        }


def has_more_sets(neighbours: Sequence[Mask], most: int) -> bool:
    """Tell whether whoever joins one relation after the other, connected ones first, may come to more sets than that:
    to the connected ones; to any where not all relations are connected.

    >>> chain = (0b010, 0b101, 0b010)
    >>> [has_more_sets(chain, most) for most in (5, 6)], has_more_sets((0, 0, 0), 6)
    ([True, False], True)
    """
    seen, level = 0, set[Mask]()
    for level in connected_levels(neighbours):
        seen += len(level)
        if seen > most:
            return True
    is_connected = (1 << len(neighbours)) - 1 in level
    return not is_connected and 1 << len(neighbours) > most + 1
