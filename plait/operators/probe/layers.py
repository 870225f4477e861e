"""Where partial results go by the tables that stored rows were put in place by, and what they find there.

The rows of a store lie in **layers**: number 0 those that no table has placed, then one for each generation. A partial
result goes once to each distinct partition that some layer wants it in, and takes along for which; there it meets what
these layers have in that partition, and nothing else (`plait.plan.key_groups`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from plait.kernels.compiled import Int64s
from plait.kernels.dispatching import dispatch
from plait.kernels.hashing import key_group_of
from plait.operators.column_names import SERVES
from plait.operators.probe.partials import Partials
from plait.plan.accesses import by_name, texts_of
from plait.plan.key_groups import UNWANTED, Access, Generation, KeyGroupTable
from plait.plan.model import Member, Probed, Step
from plait.query.predicates import Equality
from plait.state.model import Bucket

UNPLACED: Final = 0
"""The layer of rows that no table has placed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """The generations under which rows are stored, and copies of rows by store. `layers`: which of them a store has
    rows in; a store that is not in it has none that tables have placed.
    """

    generations: tuple[Generation, ...]
    copies: Mapping[str, tuple[Bucket, ...]]
    layers: Mapping[str, tuple[int, ...]]

    @classmethod
    def of(cls, generations: tuple[Generation, ...], buckets: Iterable[Bucket], copies: Iterable[Bucket]) -> Tables:
        """Return what there is to know of these rows and their copies."""
        numbers = {each.first_batch: number for number, each in enumerate(generations, 1)}
        layers: dict[str, set[int]] = {}
        for bucket in buckets:
            placed = UNPLACED if bucket.generation is None else numbers.get(bucket.generation, UNPLACED)
            layers.setdefault(bucket.store, set()).add(placed)
        copied: dict[str, list[Bucket]] = {}
        for bucket in copies:
            copied.setdefault(bucket.store, []).append(bucket)
        return cls(
            generations=generations,
            copies={store: tuple(of_store) for store, of_store in copied.items()},
            layers={store: tuple(sorted(of_store)) for store, of_store in layers.items()},
        )

    @property
    def partitions(self) -> int:
        """How many partitions a generation has at most."""
        return max((each.partitions for each in self.generations), default=1)

    def layers_of(self, store: str) -> tuple[int, ...]:
        """Return the layers in which a store has rows."""
        return self.layers.get(store, (UNPLACED,))

    def layer_of(self, bucket: Bucket) -> int:
        """Return the layer of a bucket."""
        for number, each in enumerate(self.generations, 1):
            if each.first_batch == bucket.generation:
                return number
        return UNPLACED


class Way(NamedTuple):
    """By which key a step goes in a generation: the equality, and the access that it gives."""

    equality: Equality[Probed]
    access: Access


def way_of(step: Step, generation: Generation) -> Way | None:
    """Return by which key a step goes; None if it has to look for rows at home, in all partitions."""
    if step.parts:
        return None
    selections = texts_of(step.member.selection)
    for equality in by_name(step.equalities):
        access = generation.access(step.member.store, equality.right.name, selections)
        if access is not None:
            return Way(equality, access)
    return None


class Sent(NamedTuple):
    """Partial results on their way to a partition. `layers`: a bit for each that they meet there."""

    partition: int
    layers: int
    partials: Partials


def places_in(partials: Partials, step: Step, generation: Generation) -> Int64s:
    """Return where partial results, which have all keys, go for a generation: int64[partials, columns]."""
    way = way_of(step, generation)
    if way is None:
        return np.broadcast_to(np.arange(generation.partitions), (partials.count, generation.partitions))
    table, (keys, _) = generation.table_of(way.access.name), partials.of(way.equality.left)
    turns = np.arange(partials.count)
    return table.meeting_places(keys, key_group_of(keys, table.groups), turns, step.member.store)


def sent_to(partials: Partials, places: Mapping[int, Int64s], partitions: int) -> Iterator[Sent]:
    """Yield partial results once for each distinct partition. `places`: where they go for each layer."""
    if not partials.count or not places:
        return
    wanted = np.concatenate(list(places.values()), axis=1)
    bits = np.concatenate([np.full(each.shape[1], 1 << layer) for layer, each in places.items()])
    found = dispatch(wanted, bits, partitions)
    order = np.lexsort((found.bits, found.partition))
    rows, partition, layers = found.row[order], found.partition[order], found.bits[order]
    if not len(rows):
        return
    starts = np.flatnonzero(np.diff(partition, prepend=-1) | np.diff(layers, prepend=-1))
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(rows)], strict=True):
        together = rows[start:stop].astype(np.int32)
        chosen = partials if len(together) == partials.count else partials.at(together)
        yield Sent(int(partition[start]), int(layers[start]), chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """Which starting tuples meet the rows of their own generation where tables have sent them, without going further:
    `anywhere`, in this partition or where their copies are, and `here`.
    """

    anywhere: npt.NDArray[np.bool_]
    here: npt.NDArray[np.bool_]


def met_where_sent(partials: Partials, start: Member, step: Step, bucket: Bucket, generation: Generation) -> Met | None:
    """Return which tuples of a bucket (the `partials`, which have all keys) are in the partition where they have to be
    for their first step; None if its key is not one that they were sent by.

    They are if both sides have one table. Of a hot key one side is spread and the other lies in every part: they meet
    in each, once. Where both are spread, or none, they have to be sent as any other partial result.
    """
    way = way_of(step, generation)
    if way is None or way.equality.left.at != 0:
        return None
    own = generation.access(start.store, way.equality.left.name, texts_of(start.selection))
    table = generation.table_of(way.access.name)
    if own is None or own.name not in table.operators:
        return None
    keys, _ = partials.of(way.equality.left)
    places = np.array(table.partitions, dtype=np.int64)
    here = places[key_group_of(keys, table.groups)] == bucket.partition
    anywhere = np.ones(partials.count, np.bool_)
    for split in table.splits:
        hot, sides = keys == split.key, (start.store, step.member.store)
        if [side == split.spread for side in sides].count(True) != 1 or not partials.positions[0].has(SERVES):
            anywhere &= ~hot
        else:
            serves, _ = partials.positions[0].int64(SERVES)
            here = np.where(hot, (serves & generation.bit_of(own)) != 0, here)
    return Met(anywhere=anywhere, here=here & anywhere)


def left_over(places: Int64s, met: Met) -> Int64s:
    """Return the places of those partial results that have not met where they were sent."""
    return np.where(met.anywhere[:, None], UNWANTED, places)


class Found(NamedTuple):
    """A bucket in which partial results look. `serving`: a bit that a row must have to be found; 0: none."""

    bucket: Bucket
    serving: int


def placed_buckets(
    buckets: Iterable[Bucket], step: Step, partition: int, layers: int, tables: Tables
) -> Iterator[Found]:
    """Yield those of the buckets of a step's store, copies among them, that partial results find in a partition they
    have gone to for these layers; those that no table has placed are left out.
    """
    ways = [None, *(way_of(step, generation) for generation in tables.generations)]
    for bucket in buckets:
        layer = tables.layer_of(bucket)
        if layer == UNPLACED or not layers >> layer & 1 or bucket.partition != partition:
            continue
        way, generation = ways[layer], tables.generations[layer - 1]
        if way is not None:
            yield Found(bucket, _serving(generation, generation.table_of(way.access.name), way.access))
        elif not bucket.is_copy:
            yield Found(bucket, 0)


def _serving(generation: Generation, table: KeyGroupTable, access: Access) -> int:
    """Return the bit that tells that a row is there for an access, where its partition does not tell: a row that is
    there for something else may have a hot key, and is in one of its other parts too.
    """
    return generation.bit_of(access) if table.splits else 0


__all__ = [
    "UNPLACED",
    "Found",
    "Met",
    "Sent",
    "Tables",
    "left_over",
    "met_where_sent",
    "placed_buckets",
    "places_in",
    "sent_to",
    "way_of",
]
