"""The stored rows of one relation of a query with outer, semi and anti joins, and what is read of those looked at.

A bucket is opened only when some of its rows are asked for, and of its columns only those are read that are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from plait.operators.close.certain_sql import Span, column_name, compared_columns
from plait.operators.column_names import TAU
from plait.operators.evaluating import naive
from plait.operators.probe.partials import NO_HIGH, NO_LOW, Partials, Position, Rows, plus_window
from plait.operators.probe.reader import Reader
from plait.operators.probe.selections import carries, selection_words, with_selections
from plait.plan.model import Member, Plan, Selection
from plait.plan.relations import projected_columns, store_for, waiting_selections
from plait.query.model import Query, Relation, Waiting
from plait.state.buckets import OpenBucket
from plait.state.model import Bucket

Mask: TypeAlias = npt.NDArray[np.bool_]
Chosen: TypeAlias = Mapping[int, Mask]
"""Rows of a relation: of the bucket at a place those marked (bool[rows]); of a bucket that is not there none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What is stored once a batch has taken rows in. `fresh`: its own buckets; `before`: those of earlier ones; both as
    `reader` has seen them.
    """

    reader: Reader
    before: tuple[Bucket, ...]
    fresh: tuple[Bucket, ...]


@dataclass(slots=True, kw_only=True)
class Side:
    """The buckets of a relation that say all that its joins ask, those of this batch `is_fresh`. `member`: what of
    their rows the joins see; `compared`: the columns they read; `rows`: those that are looked at, by place.
    """

    relation: Relation
    waiting: Waiting
    member: Member
    compared: tuple[str, ...]
    buckets: tuple[Bucket, ...]
    is_fresh: tuple[bool, ...]
    reader: Reader
    rows: dict[int, Rows] = field(default_factory=dict)
    _opened: dict[int, OpenBucket] = field(default_factory=dict)

    def open(self, place: int) -> OpenBucket:
        """Return a bucket mapped into memory."""
        if place not in self._opened:
            self._opened[place] = self.reader.open(self.buckets[place])
        return self._opened[place]

    def release(self) -> None:
        """End the use of the buckets."""
        for opened in self._opened.values():
            opened.release()

    @property
    def opened(self) -> int:
        """How many buckets have been looked into."""
        return len(self._opened)

    def everything(self, places: Iterable[int] | None = None) -> Chosen:
        """Return all rows, or those of some buckets."""
        return _marked(self._selected, range(len(self.buckets)) if places is None else places)

    def fresh(self) -> Chosen:
        """Return the rows of this batch."""
        return self.everything(place for place, is_fresh in enumerate(self.is_fresh) if is_fresh)

    def closing(self, span: Span) -> Chosen:
        """Return the rows whose windows end in a span."""
        window = self.waiting.window_us
        if self.relation.is_table or window is None:
            return {}

        def closes(place: int) -> Mask:
            untils = plus_window(self.open(place).int64(TAU), window)
            return self._selected(place) & (untils >= span.since_us) & (untils <= span.last_us)

        return _marked(closes, self._around(span.since_us - window, span.last_us - window))

    def within(self, low_us: int, high_us: int) -> Chosen:
        """Return the rows whose event time lies in ``[low, high]``; all rows of a table do."""
        if self.relation.is_table:
            return self.everything()

        def lies(place: int) -> Mask:
            taus = self.open(place).int64(TAU)
            return self._selected(place) & (taus >= max(low_us, NO_LOW)) & (taus <= min(high_us, NO_HIGH))

        return _marked(lies, self._around(low_us, high_us))

    def _around(self, low_us: int, high_us: int) -> Iterator[int]:
        """Yield the buckets that have rows of event times in ``[low, high]``."""
        for place, bucket in enumerate(self.buckets):
            oldest, newest = bucket.tau_min, bucket.tau_max
            if oldest is not None and newest is not None and oldest <= high_us and newest >= low_us:
                yield place

    def _selected(self, place: int) -> Mask:
        opened = self.open(place)
        words, mask = selection_words(opened, self.member)
        return np.ones(opened.bucket.rows, np.bool_) if words is None else (words & mask) != 0

    def probing(self, rows: Mapping[int, Rows], keys: tuple[str, ...]) -> Partials:
        """Return rows, by bucket, as they look for others by these keys."""
        columns = [
            pa.concat_arrays([_taken(self.open(place), those, name) for place, those in rows.items()]) for name in keys
        ]
        count = sum(map(len, rows.values()))
        if self.relation.is_table:
            newest, high = np.full(count, NO_LOW), np.full(count, NO_HIGH)
        else:
            newest = np.concatenate([self.open(place).int64(TAU)[those] for place, those in rows.items()])
            high = plus_window(newest, self.waiting.window_us)
        block = pa.RecordBatch.from_arrays(columns, names=list(keys))
        return Partials(count=count, positions=(Position(block=block),), newest=newest, high=high)

    def look_at(self, chosen: Chosen) -> None:
        """Let these be the rows that are looked at."""
        self.rows = rows_of(chosen)

    @property
    def count(self) -> int:
        """How many rows are looked at."""
        return sum(map(len, self.rows.values()))

    def table(self, position: int) -> pa.Table:
        """Return what the joins read of the rows, under the names they have in the statement."""
        columns = {
            "i": pa.array(np.arange(self.count, dtype=np.int32)),
            "new": _joined([pa.array(np.full(len(self.rows[at]), self.is_fresh[at])) for at in self.rows], pa.bool_()),
            **self._times(),
        }
        for number, name in enumerate(self.compared):
            columns[f"s{number}"] = _alike([naive(piece) for piece in self._column(name)])
        for number, selection in enumerate(waiting_selections(self.waiting)[1:]):
            columns[f"c{number}"] = _joined(self._holds(selection), pa.bool_())
        return pa.table({column_name(position, name): column for name, column in columns.items()})

    def _times(self) -> dict[str, pa.ChunkedArray]:
        if self.relation.is_table:
            return {"tau": pa.array(np.full(self.count, NO_LOW)), "until": pa.array(np.full(self.count, NO_HIGH))}
        taus = [self.open(place).int64(TAU)[rows] for place, rows in self.rows.items()]
        untils = [plus_window(tau, self.waiting.window_us) for tau in taus]
        return {
            "tau": _joined(list(map(pa.array, taus)), pa.int64()),
            "until": _joined(list(map(pa.array, untils)), pa.int64()),
        }

    def _column(self, name: str) -> list[pa.Array]:
        if not self.rows and self.buckets:  # of no rows, which have a type all the same
            return [self.open(0).batch.column(name).slice(0, 0)]
        return [_taken(self.open(place), rows, name) for place, rows in self.rows.items()]

    def _holds(self, selection: Selection) -> list[pa.Array]:
        return [pa.array(_truth(self.open(place), selection)[rows]) for place, rows in self.rows.items()]

    def gathered(self, name: str, type_: pa.DataType, numbers: pa.Array) -> pa.Array:
        """Return a column of the rows with these numbers, NULL where there is none."""
        pieces, ends = [], accumulate(map(len, self.rows.values()))
        wanted = numbers.fill_null(-1).to_numpy(zero_copy_only=False)
        places = np.full(len(wanted), -1, np.int64)
        taken = 0
        for (place, rows), end in zip(self.rows.items(), ends, strict=True):
            here = np.flatnonzero((wanted >= end - len(rows)) & (wanted < end))
            if len(here):
                own = rows[wanted[here] - (end - len(rows))]
                pieces.append(self.open(place).batch.column(name).take(pa.array(own)))
                places[here] = taken + np.arange(len(here))
                taken += len(here)
        values = _joined([piece if piece.type == type_ else piece.cast(type_) for piece in pieces], type_)
        return (
            values.combine_chunks().take(pa.array(places, mask=places < 0)) if taken else pa.nulls(len(places), type_)
        )


def side_of(query: Query, relation: Relation, plan: Plan, stored: Stored) -> Side:
    """Return what is stored of a relation; nothing of it is opened yet."""
    waiting = relation.waiting
    assert waiting is not None, f"{relation.alias} of query {query.name} is kept by nobody"
    store = store_for(plan, query.name, relation.source)
    selections = waiting_selections(waiting)
    compared = compared_columns(query, relation.alias)
    needed = {*compared, *projected_columns(query, relation.alias)}
    held = [
        (bucket, is_fresh)
        for buckets, is_fresh in ((stored.before, False), (stored.fresh, True))
        for bucket in buckets
        if bucket.store == store and bucket.rows and _answers(bucket, selections, needed)
    ]
    return Side(
        relation=relation,
        waiting=waiting,
        member=Member(store=store, ordinal=0, selection=selections[0], window_us=waiting.window_us),
        compared=compared,
        buckets=tuple(bucket for bucket, _ in held),
        is_fresh=tuple(is_fresh for _, is_fresh in held),
        reader=stored.reader,
    )


def rows_of(chosen: Chosen) -> dict[int, Rows]:
    """Return the numbers of rows, by bucket, of those that have any."""
    found = {place: np.flatnonzero(chosen[place]).astype(np.int32) for place in sorted(chosen)}
    return {place: rows for place, rows in found.items() if len(rows)}


def united(one: Chosen, other: Chosen) -> Chosen:
    """Return the rows of both."""
    both = {place: one[place] | other[place] for place in one.keys() & other.keys()}
    return {**one, **other, **both}


def without(one: Chosen, other: Chosen) -> Chosen:
    """Return the rows of the first that are not among the second."""
    return {place: mask & ~other[place] if place in other else mask for place, mask in one.items()}


def some(chosen: Chosen) -> Chosen:
    """Return the same rows without the buckets of which there is none."""
    return {place: mask for place, mask in chosen.items() if mask.any()}


def _marked(marks: Callable[[int], Mask], places: Iterable[int]) -> Chosen:
    return some({place: marks(place) for place in places})


def _answers(bucket: Bucket, selections: Collection[Selection], columns: Iterable[str]) -> bool:
    """Tell whether a bucket says all that the joins ask; one that was written for earlier queries may not."""
    known = frozenset(bucket.layout.selections)
    return all(each.sql in known for each in selections) and all(carries(bucket, name) for name in columns)


def _truth(opened: OpenBucket, selection: Selection) -> Mask:
    column = with_selections(opened, (selection.column,)).column(selection.column)
    truth: Mask = column.to_numpy(zero_copy_only=False)
    return truth


def _taken(opened: OpenBucket, rows: Rows, name: str) -> pa.Array:
    """Return a column of rows that ascend: as many as there are, are all."""
    column = opened.batch.column(name)
    return column if len(rows) == len(column) else column.take(pa.array(rows))


def _alike(pieces: list[pa.Array]) -> pa.ChunkedArray:
    """Return the pieces as one column; what nobody compares with anything has any type."""
    type_ = pieces[0].type if pieces else pa.null()
    return _joined([piece if piece.type == type_ else piece.cast(type_) for piece in pieces], type_)


def _joined(pieces: list[pa.Array], type_: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array(pieces, type_)


__all__ = ["Chosen", "Mask", "Side", "Stored", "rows_of", "side_of", "some", "united", "without"]
