"""The search space: for every starting member, a network over the sets of members joined so far.

A *node* is (starting member, what has been joined), both by content, so queries that compute the same thing meet there.
An *arc* is a step: it probes one store and leads to a larger node. A probe order is a path from the node of its
starting member alone to the node of the whole query; the same goes for the orders that fill an intermediate store,
whose paths end at its members. Every arc makes the set larger, so there are no cycles, neither here nor among
intermediate stores that fill each other.

The paper enumerates orders, of which there are up to n! for a set of n; the sets they run through are at most 2ⁿ.
Nothing is lost: of the orders through one node all may take the cheapest way there, so an optimal choice of arcs is a
tree for each starting member, and the paths of a tree are probe orders with common prefixes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from plait.optimizer.multi_query.patterns import Asked
from plait.query.masks import Mask

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Intermediate:
    """An intermediate store: the members `mask` of the pattern at `asked`, the first of those that contain it.

    `fills` holds the node that every stream among its members has to reach, `member_bits` the bits of the members in
    the content of these nodes. It holds `rows` and keeps `rows_per_s` new ones per second of event time.
    """

    asked: int
    mask: Mask
    member_bits: tuple[int, ...]
    rows: float
    rows_per_s: float
    bytes: float
    fills: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbedStore:
    """A store that arcs probe. `choices` counts its possible partitioning keys. None: the store of a source."""

    parallelism: int
    choices: int
    intermediate: Intermediate | None

    @property
    def is_open(self) -> bool:
        """Whether its partitioning matters and there is more than one possibility."""
        return self.parallelism > 1 and self.choices > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Arcs as arrays, ordered such that the arcs into a node come before the arcs out of it.

    By arc: `tail` and `head` are nodes, `store` an index of `stores`, `cost` is |⋈X| / streams, the probe tuples if
    every tuple knows its partition; `known[known_from[a]:known_from[a + 1]]` are the partitioning keys that arc a
    knows, as choices of its store. `nodes` are (bit of the starting member, bits of all members and joins), `members`
    counts their members. `member_bits` are those of each pattern's members, `join_bits` those of its joins, with the
    two members they connect. A root is the node of a starting member alone. `goals` has for each pattern the nodes its
    orders end in, by position of the starting stream; a pattern of one member ends where it starts.
    """

    asked: tuple[Asked, ...]
    member_bits: tuple[tuple[int, ...], ...]
    join_bits: tuple[tuple[tuple[Mask, int], ...], ...]
    nodes: tuple[tuple[int, int], ...]
    members: Ints
    goals: tuple[tuple[int, ...], ...]
    stores: tuple[ProbedStore, ...]
    tail: Ints
    head: Ints
    store: Ints
    cost: Floats
    known: Ints
    known_from: Ints

    @property
    def is_root(self) -> npt.NDArray[np.bool_]:
        """Return for each node whether nothing has been joined there yet."""
        return np.equal(self.members, 1)

    def content(self, pattern: int, mask: Mask) -> int:
        """Return the bits of some members of a pattern and of all joins between them."""
        bits = sum(bit for position, bit in enumerate(self.member_bits[pattern]) if mask >> position & 1)
        return bits + sum(bit for pair, bit in self.join_bits[pattern] if pair & mask == pair)
