"""The rows of a query's relations with all that decides about them, as frames that Spark joins."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame
from typing_extensions import assert_never

from plait.errors import OptionError
from plait.operators.ingest.projection import tau_sql
from plait.query.model import Operand, Query, Relation, Source, SourceExpression, Stream
from plait.query.predicates import Band, Equality, Predicate, Residual, operands_of
from plait.spelling import backquoted

BATCH: Final = "taken_by_batch"
"""The column of a source's frame that says which batch took a row; NULL: none has yet."""

FOR_EVER: Final = (1 << 62) - 1
"""What closes later than any event time."""

_TEXT_OR_COLUMN = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`(\d+)`", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationFrame:
    """The rows of a relation, each with columns of these names: `tau` (microseconds; of a table 0), `batch`, `late`,
    ``s0`` ... (whether each selection holds) and ``o0`` ... (what predicates read of it). All names begin with
    `prefix`.
    """

    relation: Relation
    frame: DataFrame
    prefix: str
    selections: tuple[SourceExpression, ...]
    operands: tuple[SourceExpression, ...]

    def column(self, name: str) -> str:
        """Return one of these columns as SQL has it."""
        return f"{self.prefix}{name}"

    def operand(self, expression: SourceExpression) -> str:
        """Return what a predicate reads."""
        return self.column(f"o{self.operands.index(expression)}")

    def selection(self, expression: SourceExpression) -> str:
        """Return whether a selection holds."""
        return self.column(f"s{self.selections.index(expression)}")

    @property
    def closes(self) -> str:
        """When the window of a row is over, as SQL."""
        window = self.relation.window_us
        if self.relation.is_table or window is None:
            return f"{FOR_EVER}L"
        return f"({self.column('tau')} + {window}L)"

    @property
    def newest(self) -> str:
        """The event time as far as windows care: that of a table is before all others."""
        return f"-{FOR_EVER}L" if self.relation.is_table else self.column("tau")


Bars = Mapping[int, int]
"""Of a stream the event time before which rows of a batch were late, by batch."""


def relation_frame(
    query: Query, alias: str, source: Source, rows: DataFrame, bars: Bars, where: str | None = None
) -> RelationFrame:
    """Return the rows of a relation, of those that satisfy `where` if that is given. `rows`: of its source, with
    `BATCH`.
    """
    relation = query.relation(alias)
    prefix = f"r{[each.alias for each in query.relations].index(alias)}_"
    selections = dict.fromkeys(relation.selections)
    selections |= dict.fromkeys(
        each.expression for step in query.joins for each in step.conditions if each.relation == alias
    )
    operands = tuple(dict.fromkeys(each.expression for each in _operands(query) if each.relation == alias))
    tau = relation_tau(source)
    items = {
        "tau": tau,
        "batch": BATCH,
        "late": _late(tau, bars) if isinstance(source, Stream) else "FALSE",
        **{f"s{number}": f"coalesce({each.sql}, FALSE)" for number, each in enumerate(selections)},
        **{f"o{number}": each.sql for number, each in enumerate(operands)},
    }
    frame = rows if where is None else rows.where(where)
    made = frame.selectExpr(*(f"{sql} AS {backquoted(prefix + name)}" for name, sql in items.items()))
    return RelationFrame(relation=relation, frame=made, prefix=prefix, selections=tuple(selections), operands=operands)


def relation_tau(source: Source) -> str:
    """Return event time in microseconds as SQL; a wall-clock time is read as UTC, as it is everywhere."""
    if not isinstance(source, Stream):
        return "0L"
    types = {column.name: column.type for column in source.schema or ()}
    type_ = types.get(source.time) if source.computed is None else source.computed.type
    tau = tau_sql(source)
    return f"unix_micros(CAST({tau} AS TIMESTAMP))" if type_ == "timestamp_ntz" else f"CAST({tau} AS BIGINT)"


def _late(tau: str, bars: Bars) -> str:
    """Return whether a row was late, as SQL: one branch for each stretch of batches with one bar."""
    branches, before = [], None
    for batch in sorted(bars, reverse=True):
        if bars[batch] != before:
            branches.append((batch, bars[batch]))
        else:
            branches[-1] = (batch, bars[batch])
        before = bars[batch]
    if not branches:
        return "FALSE"
    cases = " ".join(f"WHEN {BATCH} >= {batch} THEN {tau} < {bar}L" for batch, bar in branches)
    return f"coalesce(CASE {cases} END, FALSE)"


def _operands(query: Query) -> Iterable[Operand]:
    for predicates in (query.predicates, *(step.predicates for step in query.joins)):
        for predicate in predicates:
            yield from operands_of(predicate)


def predicate_sql(predicate: Predicate[Operand], column: Callable[[Operand], str]) -> str:
    """Return a predicate as SQL over the columns of its operands. Raises OptionError for a function of the
    program's.
    """
    match predicate:
        case Equality():
            return f"{column(predicate.left)} = {column(predicate.right)}"
        case Band():
            left, right = (_number(side, column(side)) for side in (predicate.left, predicate.right))
            bounds = ((predicate.low, ">="), (predicate.high, "<="))
            texts = [f"{right} - {left} {sign} {bound:.17g}" for bound, sign in bounds if bound is not None]
            return " AND ".join(texts) or "TRUE"
        case Residual():
            if predicate.is_function:
                raise OptionError(
                    f"the predicate {predicate.sql}() is the program's own, which Spark does not know; ask about a row "
                    "of a query without it"
                )
            return _with_columns(predicate, column)
        case _:
            assert_never(predicate)


def _with_columns(residual: Residual[Operand], column: Callable[[Operand], str]) -> str:
    def placed(match: re.Match[str]) -> str:
        return match[0] if match[1] is None else column(residual.operands[int(match[1])])

    return f"({_TEXT_OR_COLUMN.sub(placed, residual.text)})"


def _number(side: Operand, column: str) -> str:
    """Return what a band compares: a count of days or microseconds, or the number itself."""
    match side.type:
        case "date":
            return f"CAST(unix_date({column}) AS DECIMAL(38, 0))"
        case "timestamp" | "timestamp_ntz":
            return f"CAST(unix_micros(CAST({column} AS TIMESTAMP)) AS DECIMAL(38, 0))"
        case "double":
            return f"CAST({column} AS DOUBLE)"
        case _:
            return f"CAST({column} AS DECIMAL(38, 0))"


__all__ = ["BATCH", "FOR_EVER", "Bars", "RelationFrame", "predicate_sql", "relation_frame", "relation_tau"]
