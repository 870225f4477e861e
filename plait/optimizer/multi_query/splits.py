"""Plans of one query that are binary trees: both halves of every set are there, and each side probes the other.

For a query alone, with room for all intermediate stores, no plan is known that beats the best of these. The best one
given all that other queries have chosen is found by dynamic programming, because what it adds is a sum over splits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from plait.optimizer.multi_query.network import Network
from plait.query.masks import Mask, positions


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A set as two: places of smaller sets, and the arcs by which the streams of each half probe the other."""

    halves: tuple[int, int]
    arcs: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSet:
    """A connected set of members: the node of every stream in it, and the ways to split it (none for one member)."""

    nodes: tuple[int, ...]
    splits: tuple[Split, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where things are: nodes of the network by content, and its nodes and arcs (by tail and head) in a problem."""

    content: Mapping[tuple[int, int], int]
    node: Mapping[int, int]
    arc: Mapping[tuple[int, int], int]


def split_sets(network: Network, number: int, places: Places) -> tuple[SplitSet, ...]:
    """Return the connected sets of a pattern, smaller ones first, the last with all its members; () if that is none."""
    pattern, bits = network.asked[number].pattern, network.member_bits[number]
    place: dict[Mask, int] = {}
    nodes: dict[Mask, dict[int, int]] = {}
    sets: list[SplitSet] = []
    for mask in pattern.connected():
        content = network.content(number, mask)
        nodes[mask] = {start: places.content[bits[start], content] for start in positions(mask & pattern.streams)}
        splits = [
            Split(halves=(place[half], place[mask & ~half]), arcs=arcs)
            for half in _halves(mask)
            if half in place and mask & ~half in place
            for arcs in (_arcs(nodes, (half, mask & ~half), places),)
            if arcs is not None
        ]
        if splits or mask & (mask - 1) == 0:
            place[mask] = len(sets)
            sets.append(SplitSet(nodes=tuple(places.node[node] for node in nodes[mask].values()), splits=tuple(splits)))
    return tuple(sets) if pattern.everything in place else ()


def _halves(mask: Mask) -> Iterator[Mask]:
    """Yield one of the two halves of every split of a set: the one with the first member."""
    first, rest = mask & -mask, mask & (mask - 1)
    part = (rest - 1) & rest
    while rest:
        yield first | part
        if not part:
            return
        part = (part - 1) & rest


def _arcs(nodes: Mapping[Mask, Mapping[int, int]], halves: tuple[Mask, Mask], places: Places) -> tuple[int, ...] | None:
    """Return the arcs from the nodes of both halves to those of the whole; None if a store of one is too large."""
    whole = nodes[halves[0] | halves[1]]
    arcs = [
        places.arc.get((places.node[tail], places.node[whole[start]]))
        for half in halves
        for start, tail in nodes[half].items()
    ]
    return None if None in arcs else tuple(arc for arc in arcs if arc is not None)
