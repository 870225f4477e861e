"""Find the rows of queries with outer, semi and anti joins that a batch has made certain.

What is certain is a function of what is stored and of how far the watermark has moved, and of nothing else: nothing is
remembered of a row beside itself, so plans, merges and restarts cannot lose or repeat one. Rows are kept for as long as
that takes (`plait.query.partners`); looked at are those that matter now (`plait.operators.close.concerned`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa

from plait.errors import Failure, PredicateError
from plait.operators.close.certain_sql import Span, certain_sql, only_tested, table_name
from plait.operators.close.concerned import look_at_concerned
from plait.operators.close.sides import Side, Stored, side_of
from plait.operators.column_names import ROW
from plait.operators.evaluating import database
from plait.operators.probe.partials import NO_LOW
from plait.plan.model import Plan
from plait.query.model import ColumnRef, Query
from plait.query.partners import has_stream, left_parts
from plait.state.model import SourceProgress


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
    if not may_have_rows(query, span):
        return None
    sides = {relation.alias: side_of(query, relation, plan, stored) for relation in query.relations}
    is_decided = look_at_concerned(query, plan, span, sides)
    result = None
    if any(side.count for side in sides.values()):
        found = _alone(query, sides) if is_decided else _stated(query, span, sides)
        result = _gathered(query, sides, found, columns) if found.num_rows else None
    for side in sides.values():
        side.release()
    return result


def _stated(query: Query, span: Span, sides: Mapping[str, Side]) -> pa.Table:
    """Return the joined rows that the statement finds among the rows looked at, a number or NULL for each relation."""
    import duckdb

    cursor = database().cursor()
    for position, side in enumerate(sides.values()):
        cursor.register(table_name(position), side.table(position))
    try:
        empty = {alias for alias, side in sides.items() if not side.buckets}
        return cursor.sql(certain_sql(query, span, empty)).to_arrow_table()
    except duckdb.Error as error:
        reason = (
            f"query '{query.name}': its joins cannot be computed for some rows ({str(error).splitlines()[0]}); guard "
            "the values they fail for, with a condition or with try_divide, nullif or coalesce"
        )
        raise PredicateError(reason, failures=(Failure(query=query.name, reason=reason),)) from error


def _alone(query: Query, sides: Mapping[str, Side]) -> pa.Table:
    """Return a joined row for each row looked at, without the other relation."""
    shown = [alias for alias in sides if alias not in only_tested(query)]
    counts = [sides[alias].count for alias in shown]
    columns = []
    for place, count in enumerate(counts):
        numbers = [pa.nulls(other, pa.int32()) for other in counts]
        numbers[place] = pa.array(np.arange(count, dtype=np.int32))
        columns.append(pa.concat_arrays(numbers))
    return pa.table(columns, names=shown)


def _gathered(
    query: Query, sides: Mapping[str, Side], found: pa.Table, columns: Mapping[ColumnRef, pa.DataType]
) -> pa.RecordBatch:
    shown = [alias for alias in sides if alias not in only_tested(query)]
    numbers = {alias: found.column(place).combine_chunks() for place, alias in enumerate(shown)}
    arrays = [sides[ref.relation].gathered(ref.column, type_, numbers[ref.relation]) for ref, type_ in columns.items()]
    names = [ref.name for ref in columns]
    if not arrays:
        arrays, names = [pa.nulls(found.num_rows)], [ROW]
    return pa.RecordBatch.from_arrays(arrays, names=names)


__all__ = ["certain_rows", "mark_of_query", "span_of"]
