"""Find the rows of queries with outer, semi and anti joins that a batch has made certain.

What is certain is a function of what is stored and of how far the watermark has moved, and of nothing else: nothing is
remembered of a row beside itself, so plans, merges and restarts cannot lose or repeat one. Rows are kept for as long as
that takes (`plait.query.partners`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from plait.errors import PredicateError
from plait.operators.close.certain_sql import (
    Span,
    certain_sql,
    column_name,
    compared_columns,
    only_tested,
    table_name,
)
from plait.operators.column_names import ROW, TAU
from plait.operators.evaluating import database, naive
from plait.operators.probe.partials import NO_HIGH, NO_LOW, plus_window
from plait.operators.probe.reader import Reader
from plait.operators.probe.selections import carries, with_selections
from plait.plan.model import Plan, Selection
from plait.plan.relations import projected_columns, store_for, waiting_selections
from plait.query.model import ColumnRef, Query, Relation, Waiting
from plait.query.partners import has_stream, left_parts
from plait.state.buckets import OpenBucket
from plait.state.model import Bucket, SourceProgress

Indices = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What is stored once a batch has taken rows in. `fresh`: its own buckets; `before`: those of earlier ones; both as
    `reader` has seen them.
    """

    reader: Reader
    before: tuple[Bucket, ...]
    fresh: tuple[Bucket, ...]


def mark_of_query(query: Query, sources: Iterable[SourceProgress]) -> int | None:
    """Return the event time before which no row of any stream of the query can come in time any more; None: there is
    none. It never falls, whatever streams join: rows that were late once stay so.
    """
    bars = {each.source: each.late_before_us for each in sources}
    marks = [bars.get(relation.source) for relation in query.relations if not relation.is_table]
    known = [mark for mark in marks if mark is not None]
    return min(known) if len(known) == len(marks) else None


def span_of(query: Query, before: Iterable[SourceProgress], after: Iterable[SourceProgress]) -> Span:
    """Return what a batch after which the streams are where `after` says has made certain."""
    since, until = mark_of_query(query, before), mark_of_query(query, after)
    return Span(
        since_us=NO_LOW + 1 if since is None else since,
        last_us=NO_LOW if until is None else until - 1,
    )


def may_have_rows(query: Query, span: Span) -> bool:
    """Tell whether a batch can have made anything certain: the watermark has moved, or some join decides at once."""
    if span.last_us >= span.since_us:
        return True
    return any(
        step.kind == "semi"
        or (step.alias and query.relation(step.alias).is_table)
        or not has_stream(query, part.aliases)
        for step, part in left_parts(query)
    )


def certain_rows(
    query: Query, plan: Plan, stored: Stored, span: Span, columns: Mapping[ColumnRef, pa.DataType]
) -> pa.RecordBatch | None:
    """Return the joined rows that are certain now and were not before, with these columns; None if there are none.

    Raises PredicateError if a join predicate cannot be computed for some pair.
    """
    import duckdb

    if not may_have_rows(query, span):
        return None
    kept = [_kept(query, relation, plan, stored) for relation in query.relations]
    cursor = database().cursor()
    for position, rows in enumerate(kept):
        cursor.register(table_name(position), rows.table(position))
    try:
        empty = {rows.relation.alias for rows in kept if not rows.opened}
        found = cursor.sql(certain_sql(query, span, empty)).to_arrow_table()
    except duckdb.Error as error:
        raise PredicateError(
            f"query '{query.name}': its joins cannot be computed for some rows ({str(error).splitlines()[0]}); guard "
            "the values they fail for, with a condition or with try_divide, nullif or coalesce"
        ) from error
    result = _gathered(query, kept, found, columns) if found.num_rows else None
    for rows in kept:
        rows.release()
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """The stored rows of a relation: of each bucket those in `chosen`, one after the other."""

    relation: Relation
    waiting: Waiting
    compared: tuple[str, ...]
    opened: tuple[OpenBucket, ...]
    chosen: tuple[Indices, ...]
    is_fresh: tuple[bool, ...]

    def table(self, position: int) -> pa.Table:
        """Return what the joins read of the rows, under the names they have in the statement."""
        columns = {
            "i": pa.array(np.arange(sum(map(len, self.chosen)), dtype=np.int32)),
            "new": _joined([pa.array(np.full(len(rows), fresh)) for rows, fresh in self._fresh()], pa.bool_()),
            **self._times(),
        }
        for number, name in enumerate(self.compared):
            columns[f"s{number}"] = _alike([naive(piece) for piece in self.column(name)])
        for number, selection in enumerate(waiting_selections(self.waiting)[1:]):
            columns[f"c{number}"] = _joined(self._holds(selection), pa.bool_())
        return pa.table({column_name(position, name): column for name, column in columns.items()})

    def _fresh(self) -> Iterable[tuple[Indices, bool]]:
        return zip(self.chosen, self.is_fresh, strict=True)

    def _times(self) -> dict[str, pa.ChunkedArray]:
        if self.relation.is_table:
            count = sum(map(len, self.chosen))
            return {"tau": pa.array(np.full(count, NO_LOW)), "until": pa.array(np.full(count, NO_HIGH))}
        taus = [opened.int64(TAU)[rows] for opened, rows in zip(self.opened, self.chosen, strict=True)]
        untils = [plus_window(tau, self.waiting.window_us) for tau in taus]
        return {
            "tau": _joined(list(map(pa.array, taus)), pa.int64()),
            "until": _joined(list(map(pa.array, untils)), pa.int64()),
        }

    def column(self, name: str) -> list[pa.Array]:
        """Return a stored column, piece by piece."""
        return [opened.take(rows, (name,)).column(0) for opened, rows in zip(self.opened, self.chosen, strict=True)]

    def _holds(self, selection: Selection) -> list[pa.Array]:
        return [
            pa.array(_truth(opened, selection)[rows]) for opened, rows in zip(self.opened, self.chosen, strict=True)
        ]

    def gathered(self, name: str, type_: pa.DataType, numbers: pa.Array) -> pa.Array:
        """Return a column of the rows with these numbers, NULL where there is none."""
        pieces, ends = [], list(accumulate(map(len, self.chosen)))
        wanted = numbers.to_numpy(zero_copy_only=False)
        places = np.full(len(numbers), -1, np.int64)
        present = np.flatnonzero(~np.isnan(wanted.astype(np.float64)))
        taken = 0
        for opened, rows, end in zip(self.opened, self.chosen, ends, strict=True):
            here = present[(wanted[present] >= end - len(rows)) & (wanted[present] < end)]
            if len(here):
                own = (wanted[here].astype(np.int64) - (end - len(rows))).astype(np.int32)
                pieces.append(opened.take(rows[own], (name,)).column(0))
                places[here] = taken + np.arange(len(here))
                taken += len(here)
        values = _joined([piece if piece.type == type_ else piece.cast(type_) for piece in pieces], type_)
        return (
            values.combine_chunks().take(pa.array(places, mask=places < 0)) if taken else pa.nulls(len(places), type_)
        )

    def release(self) -> None:
        """End the use of the buckets."""
        for opened in self.opened:
            opened.release()


def _kept(query: Query, relation: Relation, plan: Plan, stored: Stored) -> _Kept:
    waiting = relation.waiting
    assert waiting is not None, f"{relation.alias} of query {query.name} is kept by nobody"
    store = store_for(plan, query.name, relation.source)
    selections = waiting_selections(waiting)
    compared = compared_columns(query, relation.alias)
    needed = {*compared, *projected_columns(query, relation.alias)}
    opened: list[OpenBucket] = []
    fresh: list[bool] = []
    for buckets, is_fresh in ((stored.before, False), (stored.fresh, True)):
        for bucket in buckets:
            if bucket.store == store and _answers(bucket, selections, needed):
                opened.append(stored.reader.open(bucket))
                fresh.append(is_fresh)
    return _Kept(
        relation=relation,
        waiting=waiting,
        compared=compared,
        opened=tuple(opened),
        chosen=tuple(np.flatnonzero(_truth(each, selections[0])).astype(np.int32) for each in opened),
        is_fresh=tuple(fresh),
    )


def _answers(bucket: Bucket, selections: Collection[Selection], columns: Iterable[str]) -> bool:
    """Tell whether a bucket says all that the joins ask; one that was written for earlier queries may not."""
    known = frozenset(bucket.layout.selections)
    return all(each.sql in known for each in selections) and all(carries(bucket, name) for name in columns)


def _truth(opened: OpenBucket, selection: Selection) -> npt.NDArray[np.bool_]:
    column = with_selections(opened, (selection.column,)).column(selection.column)
    truth: npt.NDArray[np.bool_] = column.to_numpy(zero_copy_only=False)
    return truth


def _alike(pieces: list[pa.Array]) -> pa.ChunkedArray:
    """Return the pieces as one column; what nobody compares with anything has any type."""
    type_ = pieces[0].type if pieces else pa.null()
    return _joined([piece if piece.type == type_ else piece.cast(type_) for piece in pieces], type_)


def _joined(pieces: list[pa.Array], type_: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array(pieces, type_)


def _gathered(
    query: Query, kept: list[_Kept], found: pa.Table, columns: Mapping[ColumnRef, pa.DataType]
) -> pa.RecordBatch:
    shown = [relation.alias for relation in query.relations if relation.alias not in only_tested(query)]
    by_alias = {each.relation.alias: each for each in kept}
    numbers = {alias: found.column(place).combine_chunks() for place, alias in enumerate(shown)}
    arrays = [
        by_alias[ref.relation].gathered(ref.column, type_, numbers[ref.relation]) for ref, type_ in columns.items()
    ]
    names = [ref.name for ref in columns]
    if not arrays:
        arrays, names = [pa.nulls(found.num_rows)], [ROW]
    return pa.RecordBatch.from_arrays(arrays, names=names)


__all__ = ["Stored", "certain_rows", "mark_of_query", "span_of"]
