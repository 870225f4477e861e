"""Build the network: go from every starting member through all sets of members that a probe order may have joined.

For each pattern of n members and each of its streams, breadth first by the size of the set: at most 2ⁿ sets, each
extended by n members or by any intermediate result beside it. Arcs that another pattern has made already are not made
again: nodes are known by content, so whatever two patterns have in common is explored twice but stands there once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from plait.optimizer.multi_query.network import Intermediate, Network, ProbedStore
from plait.optimizer.multi_query.patterns import Asked, ContentSizes, Pattern
from plait.optimizer.options import PlanOptions
from plait.query.masks import Mask, positions

Wanted: TypeAlias = Callable[[float, float], bool]
"""(rows, bytes) of an intermediate → whether the search may materialize it."""


class _Bits:
    """Bits for members and joins: the content of a set is the bits of all that is in it."""

    def __init__(self) -> None:
        self._bits: dict[object, int] = {}

    def bit(self, thing: object) -> int:
        """Return the bit of a thing, the same for an equal thing."""
        return self._bits.setdefault(thing, 1 << len(self._bits))


class _Explored:
    """One pattern: its sets of members, with everything about them computed once."""

    def __init__(self, pattern: Pattern, bits: _Bits, sizes: ContentSizes) -> None:
        self.pattern = pattern
        self.neighbours = pattern.neighbours()
        self.sizes = sizes.of(pattern)
        self.streams = pattern.streams
        self.paces = [sizes.cardinality.pace(pattern.extent(position)) for position in range(len(pattern.members))]
        self.member_bits = tuple(bits.bit(member) for member in pattern.members)
        self.joins: list[list[tuple[Mask, int]]] = [[] for _ in pattern.members]
        for join in pattern.joins:
            content = (pattern.members[join.left], pattern.members[join.right], join.between)
            self.joins[join.left].append((1 << join.right, bits.bit(content)))
        self._contents: dict[Mask, int] = {0: 0}
        self._near: dict[Mask, Mask] = {}

    def content(self, mask: Mask) -> int:
        """Return the bits of the members and of all joins between them."""
        known = self._contents.get(mask)
        if known is None:
            first, rest = (mask & -mask).bit_length() - 1, mask & (mask - 1)
            known = self.content(rest) | self.member_bits[first]
            for other, bit in self.joins[first]:
                if other & rest:
                    known |= bit
            self._contents[mask] = known
        return known

    def near(self, mask: Mask) -> Mask:
        """Return the members outside that are joined with one inside."""
        known = self._near.get(mask)
        if known is None:
            known = 0
            for position in positions(mask):
                known |= self.neighbours[position]
            known &= ~mask
            self._near[mask] = known
        return known

    def connected(self) -> list[Mask]:
        """Return the connected sets of at least two members and not all of them, smaller ones first."""
        return [mask for mask in self.pattern.connected() if 1 < mask.bit_count() < len(self.pattern.members)]

    def arriving(self, start: int, mask: Mask) -> float:
        """Return the tuples of this set that one probe path holds, |⋈ X| / streams, per second of event time.

        Sizes are those of windows, so only per second can steps be added up whose starting relations have different
        ones.
        """
        return self.sizes.size(mask) / (mask & self.streams).bit_count() * self.paces[start]

    def pace(self, mask: Mask) -> float:
        """Return how many times per second as many tuples are joined as the set holds: each of its streams does its
        part.
        """
        streams = positions(mask & self.streams)
        return sum(self.paces[start] for start in streams) / len(streams)

    def border(self, mask: Mask, at_random: Collection[str]) -> list[tuple[Mask, tuple[int, str]]]:
        """Return (member outside, key inside) of every equality across the border; keys by (place inside, name).

        Keys of the sources `at_random` are left out: they partition nothing.
        """
        place = {position: index for index, position in enumerate(positions(mask))}
        crossing = []
        for join in self.pattern.joins:
            for inside, outside, side in ((join.left, join.right, 0), (join.right, join.left, 1)):
                is_across = inside in place and outside not in place
                if is_across and self.pattern.members[inside].store not in at_random:
                    crossing += [(1 << outside, (place[inside], pair[side].name)) for pair in join.keys]
        return crossing


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unit:
    """What a step may probe: some members, those next to them, their store, the equalities across their border."""

    mask: Mask
    near: Mask
    store: int
    border: list[tuple[Mask, tuple[int, str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Inside:
    """Where the orders that fill an intermediate run: in these sets, up to `mask`."""

    explored: _Explored
    mask: Mask

    @property
    def member_bits(self) -> tuple[int, ...]:
        """Return the bit of each member."""
        return tuple(self.explored.member_bits[position] for position in positions(self.mask))


class _Growing:
    """The network while it grows, as lists."""

    def __init__(self) -> None:
        self.nodes: dict[tuple[int, int], int] = {}
        self.level: list[int] = []
        self.arcs: dict[tuple[int, int], int] = {}
        self.tail: list[int] = []
        self.head: list[int] = []
        self.store: list[int] = []
        self.cost: list[float] = []
        self.known: list[tuple[int, ...]] = []

    def node(self, start: int, content: int, level: int) -> int:
        """Return the node, made if it is new."""
        index = self.nodes.setdefault((start, content), len(self.level))
        if index == len(self.level):
            self.level.append(level)
        return index

    def add(self, tail: int, head: int, store: int, cost: float, known: tuple[int, ...]) -> None:
        """Add an arc that is not there yet."""
        self.arcs[tail, head] = len(self.tail)
        self.tail.append(tail)
        self.head.append(head)
        self.store.append(store)
        self.cost.append(cost)
        self.known.append(known)


class Explorer:
    """Builds the network of some patterns.

    `wanted` may keep intermediates out of it; `widths` are the bytes of one row by source.
    """

    def __init__(self, options: PlanOptions, sizes: ContentSizes, widths: Mapping[str, float], wanted: Wanted) -> None:
        self._options, self._sizes, self._widths, self._wanted = options, sizes, widths, wanted
        self._at_random = options.at_random
        self._bits = _Bits()
        self._growing = _Growing()
        self._source_stores: dict[str, int] = {}
        self._intermediates: dict[int, int | None] = {}
        self._filled: dict[int, tuple[Intermediate, _Inside]] = {}
        self._parallelism: list[int] = []
        self._choices: list[dict[tuple[int, str], int]] = []
        self._renumbered: list[tuple[int, _Explored]] = []

    def network(self, asked: tuple[Asked, ...]) -> Network:
        """Return the network of these patterns."""
        explored = [_Explored(each.pattern, self._bits, self._sizes) for each in asked]
        for index, each in enumerate(explored):
            self._explore(index, each)
        while self._renumbered:
            self._explore(*self._renumbered.pop(0))
        return self._frozen(asked, explored)

    def _explore(self, index: int, each: _Explored) -> None:
        singles = [self._source(each, position) for position in range(len(each.pattern.members))]
        units = [unit for mask in each.connected() for unit in self._intermediate(index, each, mask)]
        for start in positions(each.streams):
            self._explore_from(each, start, singles, units)

    def _explore_from(self, each: _Explored, start: int, singles: list[_Unit], units: list[_Unit]) -> None:
        """Go through all sets that can be joined so far, smaller ones first; every probe but an explicit cross join
        follows an equality.
        """
        everything = each.pattern.everything
        levels: list[set[Mask]] = [set() for _ in range(len(each.pattern.members) + 1)]
        levels[1].add(1 << start)
        for level in levels:
            for mask in sorted(level):
                near = each.near(mask) or everything & ~mask
                probed = [unit for unit in singles if unit.mask & near]
                probed += [unit for unit in units if not unit.mask & mask and unit.near & mask]
                for unit in probed:
                    self._arc(each, start, mask, unit)
                    levels[(mask | unit.mask).bit_count()].add(mask | unit.mask)

    def _arc(self, each: _Explored, start: int, mask: Mask, unit: _Unit) -> None:
        growing, begin, joined = self._growing, each.member_bits[start], mask | unit.mask
        tail = growing.node(begin, each.content(mask), mask.bit_count())
        head = growing.node(begin, each.content(joined), joined.bit_count())
        if (tail, head) in growing.arcs:
            return
        choices = self._choices[unit.store]
        known = {choices.setdefault(key, len(choices)) for outside, key in unit.border if outside & mask}
        growing.add(tail, head, unit.store, each.arriving(start, mask), tuple(sorted(known)))

    def _source(self, each: _Explored, position: int) -> _Unit:
        source, mask = each.pattern.members[position].store, 1 << position
        if source not in self._source_stores:
            self._source_stores[source] = self._add_store(self._options.parallelism_of(source))
        return _Unit(
            mask=mask,
            near=each.near(mask),
            store=self._source_stores[source],
            border=each.border(mask, self._at_random),
        )

    def _intermediate(self, index: int, each: _Explored, mask: Mask) -> tuple[_Unit, ...]:
        """Return the intermediate of these members, if there may be one."""
        if not mask & each.streams:
            return ()
        inside = self._numbered(each, mask)
        content = inside.explored.content(inside.mask)
        if content not in self._intermediates:
            self._intermediates[content] = self._new_intermediate(index, each, mask, inside)
        store = self._intermediates[content]
        if store is None:
            return ()
        return (_Unit(mask=mask, near=each.near(mask), store=store, border=each.border(mask, self._at_random)),)

    def _numbered(self, each: _Explored, mask: Mask) -> _Inside:
        """Return where the intermediate's own probe orders run: in this pattern, unless ordinals have to change."""
        kept = positions(mask)
        if not any(each.pattern.members[position].ordinal for position in kept):
            return _Inside(explored=each, mask=mask)
        part = each.pattern.part(mask)
        if part.members == tuple(each.pattern.members[position] for position in kept):
            return _Inside(explored=each, mask=mask)
        explored = _Explored(part, self._bits, self._sizes)
        return _Inside(explored=explored, mask=part.everything)

    def _new_intermediate(self, index: int, each: _Explored, mask: Mask, inside: _Inside) -> int | None:
        members = [each.pattern.members[position] for position in positions(mask)]
        rows = inside.explored.sizes.size(inside.mask)
        width = sum(self._widths[member.store] for member in members)
        if not self._wanted(rows, rows * width):
            return None
        store = self._add_store(self._options.partitions_of_join([member.store for member in members], rows))
        made = Intermediate(
            asked=index,
            mask=mask,
            member_bits=inside.member_bits,
            rows=rows,
            rows_per_s=rows * each.pace(mask),
            bytes=rows * width,
            fills=(),
        )
        self._filled[store] = (made, inside)
        if inside.explored is not each:
            self._renumbered.append((index, inside.explored))
        return store

    def _add_store(self, parallelism: int) -> int:
        self._parallelism.append(parallelism)
        self._choices.append({})
        return len(self._parallelism) - 1

    def _frozen(self, asked: tuple[Asked, ...], explored: list[_Explored]) -> Network:
        growing = self._growing
        goals = tuple(
            tuple(
                growing.node(each.member_bits[start], each.content(each.pattern.everything), len(each.pattern.members))
                for start in positions(each.streams)
            )
            for each in explored
        )
        stores = tuple(self._frozen_store(store) for store in range(len(self._parallelism)))
        level = np.array(growing.level, dtype=np.int64)
        tail = np.array(growing.tail, dtype=np.int64)
        order = np.argsort(level[tail], kind="stable")
        known = [growing.known[arc] for arc in order]
        return Network(
            asked=asked,
            member_bits=tuple(each.member_bits for each in explored),
            join_bits=tuple(
                tuple((1 << left | right, bit) for left, joins in enumerate(each.joins) for right, bit in joins)
                for each in explored
            ),
            nodes=tuple(growing.nodes),
            members=level,
            goals=goals,
            stores=stores,
            tail=tail[order],
            head=np.array(growing.head, dtype=np.int64)[order],
            store=np.array(growing.store, dtype=np.int64)[order],
            cost=np.array(growing.cost, dtype=np.float64)[order],
            known=np.array([choice for choices in known for choice in choices], dtype=np.int64),
            known_from=np.concatenate(([0], np.cumsum([len(choices) for choices in known], dtype=np.int64))),
        )

    def _frozen_store(self, store: int) -> ProbedStore:
        intermediate = None
        if store in self._filled:
            made, inside = self._filled[store]
            each, content = inside.explored, inside.explored.content(inside.mask)
            fills = tuple(
                self._growing.node(each.member_bits[start], content, inside.mask.bit_count())
                for start in positions(inside.mask & each.streams)
            )
            intermediate = replace(made, fills=fills)
        return ProbedStore(
            parallelism=self._parallelism[store], choices=len(self._choices[store]), intermediate=intermediate
        )
