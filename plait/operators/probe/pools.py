"""What steps side by side read of the stores of a batch: all columns and indexes in a few arrays.

Only small stores are read so, and of one layout, because all their rows are copied.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.kernels.compiled import Int64s
from plait.kernels.many_probes import NONE, Columns, Flags
from plait.operators.column_names import SELECTIONS_PER_WORD, UNTIL, bits_name, places_of
from plait.operators.probe.flat_trees import Chosen, Named, Numbers, Place, numbers_of
from plait.operators.probe.partials import part_block, validity_of
from plait.operators.probe.reader import Reader
from plait.operators.probe.selections import with_selections
from plait.plan.model import Selection
from plait.state.buckets import OpenBucket
from plait.state.joined_buckets import description
from plait.state.model import Bucket, Layout

MOST_ROWS: Final = 100_000
"""A store of more rows is not copied."""

_MOST_BYTES: Final = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The rows of a store, in the order of its buckets. `begins`: with which row a bucket begins, by path; `arrived`:
    0 for rows of earlier batches, else 1 and the number of the part whose arrival has made them. `places`: of the
    selections whose bits rows have, by text.
    """

    opened: OpenBucket
    begins: Mapping[str, int]
    arrived: Flags
    places: Mapping[str, int]

    @property
    def layout(self) -> Layout:
        """The layout of all its rows."""
        return self.opened.bucket.layout


def stored_rows(buckets: Sequence[Bucket], reader: Reader, batch: int) -> Stored | None:
    """Return the rows of a store as one; None if they are not of one kind or too many. `batch`: the one at hand."""
    rows = [bucket.rows for bucket in buckets]
    if sum(rows) > MOST_ROWS or sum(bucket.bytes for bucket in buckets) > _MOST_BYTES:
        return None
    if len({reader.kind(bucket) for bucket in buckets}) != 1:
        return None
    opened = reader.open(buckets[0]) if len(buckets) == 1 else reader.open_joined(description(buckets), buckets)
    begins = np.cumsum([0, *rows[:-1]]).tolist()
    arrived = [0 if bucket.batch_max < batch else 1 + (bucket.started_by or 0) for bucket in buckets]
    return Stored(
        opened=opened,
        begins=dict(zip((bucket.path for bucket in buckets), begins, strict=True)),
        arrived=np.repeat(np.array(arrived, np.uint8), rows),
        places=places_of(opened.bucket.layout.selections),
    )


_Kind = TypeVar("_Kind", np.int64, np.int32, np.uint8)


@dataclass(slots=True)
class _Pile:
    """Arrays one behind the other."""

    parts: list[NDArray[np.generic]] = field(default_factory=list)
    size: int = 0

    def add(self, values: NDArray[np.generic]) -> int:
        """Add an array; return where it begins."""
        begin = self.size
        self.parts.append(values)
        self.size += len(values)
        return begin

    def whole(self, kind: type[_Kind]) -> NDArray[_Kind]:
        return np.concatenate(self.parts).astype(kind, copy=False) if self.parts else np.zeros(0, kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Where what has a number begins (`NONE`: it is not there), by number: columns, validity of columns, indexes and
    how many entries they have, words of selections and masks, how rows have arrived. A selection without a word holds
    for all rows; with a mask of 0 it is not known to hold for any.
    """

    column: Int64s
    valid: Int64s
    index: Int64s
    length: Int64s
    word: Int64s
    mask: Int64s
    arrived: Int64s


class Pool:
    """The stores of a batch, of those that can be read as one. `stores`: what they hold; one without rows is not among
    them, but among the `names`.
    """

    def __init__(self, stores: Mapping[str, Stored], names: Iterable[str]) -> None:
        self.stores, self.names = stores, frozenset(names)
        self._values, self._flags, self._key, self._tau, self._row = (_Pile() for _ in range(5))
        self._piled: dict[Hashable, int] = {}
        self._blocks: dict[Hashable, pa.RecordBatch] = {}

    def block(self, place: Place, selected: tuple[str, ...]) -> pa.RecordBatch:
        """Return the rows of a place's store, with the columns named as in the member's own, and those of selections
        that are asked for.
        """
        known = place.store, place.part, place.parts, selected
        block = self._blocks.get(known)
        if block is None:
            opened = self.stores[place.store].opened
            block = with_selections(opened, selected) if place.part is None else part_block(opened.batch, place.part)
            self._blocks[known] = block
        return block

    def where(self, numbers: Numbers) -> Where:
        """Pile up all that has a number, and return where it lies."""
        columns = [self._column(named) for named in numbers.columns]
        indexes = [self._index(named) for named in numbers.indexes]
        chosen = [self._selection(each) for each in numbers.chosen]
        return Where(
            column=numbers_of(begin for begin, _ in columns),
            valid=numbers_of(valid for _, valid in columns),
            index=numbers_of(begin for begin, _ in indexes),
            length=numbers_of(length for _, length in indexes),
            word=numbers_of(word for word, _ in chosen),
            mask=numbers_of(mask for _, mask in chosen),
            arrived=numbers_of(self._arrived(store) for store in numbers.stores),
        )

    def columns(self) -> Columns:
        """Return all that has been piled up."""
        return Columns(
            values=self._values.whole(np.int64),
            flags=self._flags.whole(np.uint8),
            index_key=self._key.whole(np.int64),
            index_tau=self._tau.whole(np.int64),
            index_row=self._row.whole(np.int32),
        )

    def require_untouched(self) -> None:
        """Raise `CheckpointError` if what was read has been written to meanwhile."""
        for stored in self.stores.values():
            stored.opened.require_untouched()

    def _column(self, named: Named) -> tuple[int, int]:
        """Return where a column and its validity begin. Of a store that has no rows nothing is ever read."""
        store, name = named
        stored = self.stores.get(store)
        if stored is None:
            return (0 if store in self.names else NONE), NONE
        if name not in (*stored.layout.carried, UNTIL):
            return NONE, NONE
        valid = validity_of(stored.opened.batch.column(name))
        flags = NONE if valid is None else self._flags.add(valid.view(np.uint8))
        return self._value(stored, name), flags

    def _value(self, stored: Stored, name: str) -> int:
        known = stored.opened.bucket.store, name
        if known not in self._piled:
            self._piled[known] = self._values.add(stored.opened.int64(name))
        return self._piled[known]

    def _index(self, named: Named) -> tuple[int, int]:
        """Return where the index by a key begins, and how many entries it has: none where there is no such key."""
        store, name = named
        stored = self.stores.get(store)
        if stored is None or name not in stored.layout.keys:
            return 0, 0
        index = stored.opened.index((name,))
        self._tau.add(np.zeros(len(index.key), np.int64) if index.tau is None else index.tau)
        self._row.add(np.arange(len(index.key), dtype=np.int32) if index.row is None else index.row)
        return self._key.add(index.key), len(index.key)

    def _selection(self, chosen: Chosen) -> tuple[int, int]:
        """Return where the word of a selection begins, and its mask."""
        store, selection = chosen
        stored = self.stores.get(store)
        if stored is None:
            return NONE, 0
        places = stored.places
        known = [places[each.sql] for each in selection.alternatives if each.sql in places]
        if not known:
            return 0, 0
        if len(places) == 1:
            return NONE, 1
        masks: dict[int, int] = {}
        for place in known:
            word, bit = divmod(place, SELECTIONS_PER_WORD)
            masks[word] = masks.get(word, 0) | 1 << bit
        if len(masks) == 1:
            ((word, mask),) = masks.items()
            return self._value(stored, bits_name(word)), mask
        return self._one_word(stored, selection, masks), 1

    def _one_word(self, stored: Stored, selection: Selection, masks: Mapping[int, int]) -> int:
        """Return where begins what says of each row whether any bit of several words is set."""
        known = stored.opened.bucket.store, selection
        if known not in self._piled:
            words = [(stored.opened.int64(bits_name(word)) & mask) != 0 for word, mask in masks.items()]
            self._piled[known] = self._values.add(np.logical_or.reduce(words).astype(np.int64))
        return self._piled[known]

    def _arrived(self, store: str) -> int:
        stored = self.stores.get(store)
        return 0 if stored is None else self._flags.add(stored.arrived)


__all__ = ["MOST_ROWS", "Pool", "Stored", "Where", "stored_rows"]
