"""Where arriving rows are sent: once to each distinct partition that some access to their store wants them in.

Spark looks the partitions up, in expressions over what it hands over anyway, and repeats a row for each of them. What a
task gets beside the row is one small number: the partition, whether the row is at home there, and, where keys are
split, which accesses it is there for. All else follows from the keys.

A row is at home where its first access wants it. If none does (its keys are NULL, no selection holds) it is sent
anywhere, since it has to be counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from plait.kernels.compiled import Int64s
from plait.kernels.hashing import key_group_of
from plait.operators.column_names import SENT, TAU, bit_masks
from plait.operators.ingest.deriving import Derivation, derived
from plait.operators.ingest.projection import IngestSpec
from plait.plan.key_groups import Access, Generation, KeyGroupTable
from plait.plan.model import Store

_BITS_FROM = 24
"""The number's lowest bit says whether the row is at home, those up to here the partition, the others the accesses."""

_MOST_SMALL = 1 << 14
_NOWHERE = "CAST(array() AS ARRAY<INT>)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """How Spark sends the rows of a source, as SQL over its numbered columns. `found`: (name, expression) of the
    partition, or partitions, that each access wants a row in; `home`: over these, the partition it is at home in,
    called ``home``; `places`: all of them; `told`: what the task is told, where ``place`` is one of them, None if that
    follows from the rows.
    """

    partitions: int
    found: tuple[tuple[str, str], ...]
    home: str
    places: str
    told: str | None


def are_sent(spec: IngestSpec, generation: Generation) -> bool:
    """Tell whether tables send the rows of a source; if not, they go by the partitioning of their store."""
    return any(generation.accesses_of(store.id) for store, _ in spec.stores)


def sending_of(spec: IngestSpec, generation: Generation) -> Sending:
    """Return how the rows of a source are sent, one of whose stores is reached by tables."""
    store = next(store for store, _ in spec.stores if generation.accesses_of(store.id))
    return _Writer(spec, generation, store).sending()


def is_told(spec: IngestSpec, generation: Generation) -> bool:
    """Tell whether tasks are told of each row where it was sent: not if only one access wants them and no key is split,
    because then it follows from the rows.
    """
    accesses = [access for store, _ in spec.stores for access in generation.accesses_of(store.id)]
    return len(accesses) > 1 or any(generation.splits_keys_of(store.id) for store, _ in spec.stores)


class _Writer:
    """Writes SQL for the rows of one store."""

    def __init__(self, spec: IngestSpec, generation: Generation, store: Store) -> None:
        self._spec, self._generation, self._store = spec, generation, store
        numbers, repeated = {name: f"c{place}" for place, (name, _) in enumerate(spec.projection)}, dict(spec.aliases)
        self._columns = numbers | {name: numbers[other] for name, other in repeated.items()}
        self._splits = generation.splits_keys_of(store.id)

    def sending(self) -> Sending:
        """Return how rows are sent that the accesses to the store want."""
        accesses = self._generation.accesses_of(self._store.id)
        names = [f"p{place}" for place in range(len(accesses))]
        found = tuple((name, self._places_of(access)) for name, access in zip(names, accesses, strict=True))
        partitions = self._generation.partitions
        anywhere = f"CAST(pmod(xxhash64({self._columns[TAU]}), {partitions}) AS INT)"
        firsts = [f"get({name}, 0)" if self._splits else name for name in names]
        every = ", ".join(("array(home)" if self._splits else "home", *names))
        places = f"flatten(array({every}))" if self._splits else f"array_compact(array({every}))"
        told = None
        if is_told(self._spec, self._generation):
            told = "CAST(place AS BIGINT) * 2 + CASE WHEN place = home THEN 1L ELSE 0L END"
            if self._splits:
                there = (f"CASE WHEN array_contains({name}, place) THEN" for name in names)
                bits = (f"{each} {2 << place + _BITS_FROM}L ELSE 0L END" for place, each in enumerate(there))
                told = " + ".join((told, *bits))
            elif partitions < _MOST_SMALL:
                told = f"CAST({told} AS SMALLINT)"
        return Sending(
            partitions=partitions,
            found=found,
            home=f"coalesce({', '.join(firsts)}, {anywhere})",
            places=f"array_distinct({places})",
            told=told,
        )

    def _places_of(self, access: Access) -> str:
        """Return where an access wants a row: a partition or NULL; where keys are split, an array."""
        key = self._columns[access.key]
        wanted, table = f"{key} IS NOT NULL{self._selected(access)}", self._generation.table_of(access.name)
        group = f"CAST(shiftright(shiftrightunsigned(xxhash64({key}), 32) * {table.groups}L, 32) AS INT)"
        place = f"element_at({_array(table.partitions[: table.groups])}, {group} + 1)"
        if not self._splits:
            return f"CASE WHEN {wanted} THEN {place} END"
        parts = "".join(f" WHEN {key} = CAST('{number}' AS BIGINT) THEN {sql}" for number, sql in self._parts_of(table))
        spread = f"CASE{parts} ELSE array({place}) END" if parts else f"array({place})"
        return f"CASE WHEN {wanted} THEN {spread} ELSE {_NOWHERE} END"

    def _parts_of(self, table: KeyGroupTable) -> Iterator[tuple[int, str]]:
        """Yield (hot key, where its rows go). Those that are spread go by what is in them, not by turns: a task that
        runs twice must send a row twice to the same partition.
        """
        first = table.groups
        for split in table.splits:
            parts = table.partitions[first : first + split.parts]
            first += split.parts
            if split.spread == self._store.id:
                told = sorted({self._columns[TAU], *(self._columns[key.name] for key in self._store.keys)})
                turn = f"CAST(pmod(xxhash64({', '.join(told)}), {split.parts}) AS INT)"
                yield split.key, f"array(element_at({_array(parts)}, {turn} + 1))"
            else:
                yield split.key, _array(tuple(dict.fromkeys(parts)))

    def _selected(self, access: Access) -> str:
        """Return the condition that one of an access's selections holds, if Spark evaluates all of them."""
        held = self._spec.selections
        if held in ((), ("true",)) or not set(access.selections) <= set(held) or "true" in access.selections:
            return ""
        masks = bit_masks(held, access.selections)
        tests = (f"({self._columns[word]} & {mask}L) <> 0L" for word, mask in masks.items())
        return f" AND ({' OR '.join(tests)})"


def _array(numbers: tuple[int, ...]) -> str:
    return f"array({', '.join(map(str, numbers))})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What is known of rows that were sent: which are at home, the partition of each, and what it is there for."""

    is_home: npt.NDArray[np.bool_]
    partition: Int64s
    bits: Int64s


def told_of(table: pa.Table) -> Sent:
    """Return what tasks were told of rows (`SENT`)."""
    told = np.asarray(table[SENT].cast(pa.int64()).to_numpy(), dtype=np.int64)
    return Sent(
        is_home=(told & 1).astype(np.bool_),
        partition=(told & ((1 << _BITS_FROM) - 1)) >> 1,
        bits=told >> _BITS_FROM,
    )


def with_sent(batch: pa.RecordBatch, spec: IngestSpec, generation: Generation, turn: int) -> pa.RecordBatch:
    """Return rows with what tasks would be told of them (`SENT`), where that follows from the rows: all are at home.
    The columns have the names of the spec that Spark hands them over for.
    """
    (access,) = (access for store, _ in spec.stores for access in generation.accesses_of(store.id))
    table, column = generation.table_of(access.name), batch.column(dict(spec.aliases).get(access.key, access.key))
    keys = np.asarray(column.fill_null(0).to_numpy(zero_copy_only=False), dtype=np.int64)
    is_there = column.is_valid().to_numpy(zero_copy_only=False)
    places = np.array(table.partitions, dtype=np.int64)[key_group_of(keys, table.groups)]
    partition = np.where(is_there, places, turn % generation.partitions)
    told = number_of(partition, np.ones(len(keys), np.int64), np.zeros(len(keys), np.int64))
    return batch.append_column(SENT, pa.array(told))


def sent_rows(
    batches: Iterable[pa.RecordBatch], spec: IngestSpec, how: Derivation | None, generation: Generation, turn: int
) -> Iterator[pa.RecordBatch]:
    """Yield rows that tables have sent, with their columns as the task makes them, and where they were sent."""
    names = [name for name, _ in spec.projection]
    told = [SENT] if is_told(spec, generation) else []
    for batch in batches:
        named = pa.RecordBatch.from_arrays(batch.columns, names=[*names, *told])
        sent = named if told else with_sent(named, spec, generation, turn)
        if how is None:
            yield sent
            continue
        for made in derived([sent.select(names)], how):
            yield made.append_column(SENT, sent.column(SENT))


def number_of(partition: Int64s, is_home: Int64s, bits: Int64s) -> Int64s:
    """Return the number that tells where rows were sent, as Spark computes it."""
    return partition * 2 + is_home + (bits << _BITS_FROM)


__all__ = ["Sending", "Sent", "are_sent", "is_told", "number_of", "sending_of", "sent_rows", "told_of", "with_sent"]
