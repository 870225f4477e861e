"""What a query with outer, semi and anti joins means, as one DuckDB statement over stored rows, join by join.

A row of the joins so far carries the row of each relation by its number, NULL where the relation has none, and

- `newest` and `closes`: the largest τ of its members, and the smallest τ + W: what joins it must lie between;
- `sure`: the event time the watermark must have passed for the row to be certain, the latest of all decisions that some
  relation has no partner for it; no partner can come for a row once the watermark has passed what it `closes` at;
- `fresh`: one of its members arrived in this batch, or for a semi join all partners did;
- `bare`: some relation has no row. What is not bare is found when its last member arrives, without this statement.

A row belongs to this batch if it is certain now and was not before: `sure` has just been passed, or it is `fresh`.
Tempting and wrong: to look at unmatched rows of one join alone. Whether (a, nothing) is a row decides what matches c,
so every join takes what the one before it has made certain.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from typing_extensions import assert_never

from plait.operators.probe.partials import NO_HIGH, NO_LOW
from plait.plan.relations import key_of, operand_name
from plait.query.model import Condition, JoinStep, Operand, Query
from plait.query.partners import KEEPS_LEFT, KEEPS_RIGHT, TESTS, LeftPart, has_stream, left_parts
from plait.query.predicates import Band, Equality, Predicate, Residual, operands_of

_TEXT_OR_OPERAND = re.compile(r"'(?:[^']|'')*'|\"(?P<operand>\d+)\"")
_TYPES: Final = re.compile(r"boolean|tinyint|smallint|int|bigint|float|double|decimal\(\d+,\d+\)|string|date|timestamp")
_NAMED_OTHERWISE: Final = {
    re.compile(r"timestamp_ntz"): "TIMESTAMP",
    re.compile(r"interval (day|hour|minute|second).*"): "INTERVAL",
    re.compile(r"binary"): "BLOB",
}
"""What DuckDB calls types of Spark's that it has by other names."""
_AT_ONCE: Final = f"CAST({NO_LOW} AS BIGINT)"
_META: Final = ("newest", "closes", "sure", "fresh", "bare")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What the watermark has passed: rows that are certain at `last_us` and were not before `since_us` are found.

    `is_past`: the rows looked at arrived at any time, so that of those which time decides only `since_us` tells whether
    they are wanted.
    """

    since_us: int
    last_us: int
    is_past: bool = False


def compared_columns(query: Query, alias: str) -> tuple[str, ...]:
    """Return the stored columns of a relation that the joins of a query compare, ordered by name."""
    names: set[str] = set()
    for predicate in (each for step in query.joins for each in step.predicates):
        match predicate:
            case Equality():
                keys = [key_of(side) for side in (predicate.left, predicate.right) if side.relation == alias]
                names.update(name for key in keys for name in (key.name, key.value_name) if name is not None)
            case Band():
                sides = (side for side in (predicate.left, predicate.right) if side.relation == alias)
                names.update(key_of(side, predicate.order).name for side in sides)
            case Residual():
                names.update(operand_name(each) for each in predicate.operands if each.relation == alias)
            case _:
                assert_never(predicate)
    return tuple(sorted(names))


def table_name(position: int) -> str:
    """Return what the rows of the relation at this position in FROM are called."""
    return f"relation {position}"


def column_name(position: int, name: str) -> str:
    """Return what a column of the relation at this position is called, there and in all joins of it."""
    return f"{position}.{name}"


def only_tested(query: Query) -> frozenset[str]:
    """Return the relations that semi and anti joins look into: they have no columns in results."""
    return frozenset(step.alias for step in query.joins if step.kind in TESTS)


def finds_core(query: Query) -> bool:
    """Tell whether results in which each relation has a row are found by arrivals, and not by this statement."""
    return not only_tested(query)


def certain_sql(query: Query, span: Span, empty: Collection[str] = ()) -> str:
    """Return the statement: a row number or NULL for each relation that has columns, in the order of FROM. `empty`:
    relations without rows, of whose columns nobody knows the types.
    """
    writer = _Writer(query, span, empty)
    return writer.statement()


class _Writer:
    def __init__(self, query: Query, span: Span, empty: Collection[str]) -> None:
        self._query, self._span, self._empty = query, span, empty
        self._at = {relation.alias: position for position, relation in enumerate(query.relations)}
        self._numbers: Mapping[str, Mapping[str, str]] = {
            alias: {name: f"s{number}" for number, name in enumerate(compared_columns(query, alias))}
            for alias in self._at
        }
        self._keeps_right = any(step.kind in KEEPS_RIGHT for step in query.joins)
        self._parts: list[str] = []

    def statement(self) -> str:
        self._parts = [f"x0 AS MATERIALIZED ({self._numbered(self._first())})"]
        last = [step for step in self._query.joins if step.kind is not None][-1]
        for number, (step, part) in enumerate(left_parts(self._query), start=1):
            rows = self._step(step, part, f"x{number - 1}", is_last=step is last)
            self._parts.append(f"x{number} AS MATERIALIZED ({self._numbered(rows)})")
        shown = [alias for alias in self._at if alias not in only_tested(self._query)]
        columns = ", ".join(self._column(alias, "i") for alias in shown)
        at_once = f"sure = {_AT_ONCE}" if self._span.is_past else "fresh"
        wanted = f"(sure >= {self._span.since_us} OR {at_once})" + (" AND bare" if finds_core(self._query) else "")
        return f"WITH {', '.join(self._parts)} SELECT {columns} FROM x{len(self._query.joins)} WHERE {wanted}"

    def _first(self) -> str:
        alias = self._query.relations[0].alias
        return f"SELECT *, {self._alone(alias, _AT_ONCE, 'FALSE')} FROM {_quoted(table_name(0))}"

    def _alone(self, alias: str, sure: str, bare: str) -> str:
        """Return what a row of one relation carries."""
        values = (self._column(alias, "tau"), self._column(alias, "until"), sure, self._column(alias, "new"), bare)
        return ", ".join(f"{value} AS {name}" for value, name in zip(values, _META, strict=True))

    def _numbered(self, rows: str) -> str:
        """Number the rows, without those that can be part of nothing new.

        Where no join keeps rows of its right side, whatever becomes of a row is certain once the watermark has passed
        what it closes at, and nothing that arrives later can meet it.
        """
        here = "" if self._keeps_right else f" WHERE greatest(sure, closes) >= {self._span.since_us} OR fresh"
        return f"SELECT *, row_number() OVER () AS number FROM ({rows}){here}"

    def _step(self, step: JoinStep, part: LeftPart, left: str, *, is_last: bool) -> str:
        if step.kind is None:
            return f"SELECT * EXCLUDE (number) FROM {left} x WHERE {self._holds(step)}"
        right = _quoted(table_name(self._at[step.alias]))
        pairs = f"pairs {self._at[step.alias]}"
        if step.kind in TESTS:
            return self._tested(step, part, left, right, pairs)
        wanted = " AND x.bare" if is_last and finds_core(self._query) else ""
        found = [self._joined(step, f"{left} x JOIN {right} y ON {self._matches(step)}{wanted}")]
        if step.kind != "inner":
            self._pairs(step, left, right, pairs)
        if step.kind in KEEPS_LEFT:
            found.append(self._without_partner(step, part, left, pairs))
        if step.kind in KEEPS_RIGHT:
            found.append(self._without_left(step, part, right, pairs))
        return " UNION ALL BY NAME ".join(found)

    def _joined(self, step: JoinStep, source: str) -> str:
        tau, until, new = (f"y.{self._column(step.alias, name)}" for name in ("tau", "until", "new"))
        return (
            f"SELECT x.* EXCLUDE (number, newest, closes, fresh), y.*, greatest(x.newest, {tau}) AS newest, "
            f"least(x.closes, {until}) AS closes, x.fresh OR {new} AS fresh FROM {source}"
        )

    def _pairs(self, step: JoinStep, left: str, right: str, pairs: str) -> None:
        """Let it be known which rows have partners. A plain join is looked up by equal keys whatever else it asks."""
        i, new = self._column(step.alias, "i"), self._column(step.alias, "new")
        rows = f"SELECT x.number, y.{i} AS i, y.{new} AS fresh FROM {left} x JOIN {right} y ON {self._matches(step)}"
        due = "" if step.kind in KEEPS_RIGHT else f" WHERE {self._due(step)}"
        self._parts.append(f"{_quoted(pairs)} AS MATERIALIZED ({rows}{due})")

    def _due(self, step: JoinStep) -> str:
        """Say of which rows of the left part it matters whether they have a partner."""
        is_decided = step.kind == "semi" or self._query.relation(step.alias).is_table
        return "TRUE" if is_decided else f"x.closes <= {self._span.last_us}"

    def _without_partner(self, step: JoinStep, part: LeftPart, left: str, pairs: str) -> str:
        sure = "x.sure" if self._query.relation(step.alias).is_table else "greatest(x.sure, x.closes)"
        return (
            f"SELECT x.* EXCLUDE (number, sure, bare), {sure} AS sure, TRUE AS bare FROM {left} x "
            f"WHERE {self._due(step)} AND x.number NOT IN (SELECT number FROM {_quoted(pairs)})"
        )

    def _without_left(self, step: JoinStep, part: LeftPart, right: str, pairs: str) -> str:
        alias = step.alias
        i, until = self._column(alias, "i"), self._column(alias, "until")
        if has_stream(self._query, part.aliases):
            lag = part.lag_us or 0
            sure = f"CASE WHEN {until} > {NO_HIGH - lag} THEN {NO_HIGH} ELSE {until} + {lag} END"
        else:
            sure = _AT_ONCE
        carried = self._alone(alias, sure, "TRUE")
        return (
            f"SELECT * FROM (SELECT y.*, {carried} FROM {right} y WHERE y.{i} NOT IN (SELECT i FROM {_quoted(pairs)})) "
            f"WHERE sure <= {self._span.last_us}"
        )

    def _tested(self, step: JoinStep, part: LeftPart, left: str, right: str, pairs: str) -> str:
        self._pairs(step, left, right, pairs)
        if step.kind == "anti":
            return self._without_partner(step, part, left, pairs)
        first = f"x.number NOT IN (SELECT number FROM {_quoted(pairs)} WHERE NOT fresh)"
        return (
            f"SELECT x.* EXCLUDE (number, fresh), x.fresh OR {first} AS fresh FROM {left} x "
            f"WHERE x.number IN (SELECT number FROM {_quoted(pairs)})"
        )

    def _matches(self, step: JoinStep) -> str:
        """Return ON with the window condition: each part is within its own windows already."""
        tau, until = (f"y.{self._column(step.alias, name)}" for name in ("tau", "until"))
        return f"{self._holds(step)} AND x.newest <= {until} AND {tau} <= x.closes"

    def _holds(self, step: JoinStep) -> str:
        texts = (*map(self._predicate, step.predicates), *map(self._condition, step.conditions))
        return " AND ".join(f"({text})" for text in dict.fromkeys(texts)) or "TRUE"

    def _condition(self, condition: Condition) -> str:
        alias = condition.relation
        waiting = self._query.relation(alias).waiting
        kept = () if waiting is None else waiting.conditions
        is_row = f"{self._column(alias, 'i')} IS NOT NULL"
        holds = self._column(alias, f"c{kept.index(condition.expression)}") if condition.expression in kept else "TRUE"
        return f"CASE WHEN {is_row} THEN {holds} ELSE {str(condition.holds_of_nothing).upper()} END"

    def _predicate(self, predicate: Predicate[Operand]) -> str:
        is_empty = any(operand.relation in self._empty for operand in operands_of(predicate))
        match predicate:
            case Equality():
                return "FALSE" if is_empty else " AND ".join(self._equal(predicate))
            case Band():
                return "FALSE" if is_empty else " AND ".join(self._within(predicate)) or "TRUE"
            case Residual():  # which may be true of NULLs
                return self._evaluated(predicate)
            case _:
                assert_never(predicate)

    def _equal(self, equality: Equality[Operand]) -> Iterator[str]:
        left, right = key_of(equality.left), key_of(equality.right)
        names = ((left.name, right.name), (left.value_name, right.value_name))
        for one, other in names:
            if one is not None and other is not None:
                ours = self._stored(equality.left.relation, one)
                yield f"{ours} = {self._stored(equality.right.relation, other)}"

    def _within(self, band: Band[Operand]) -> Iterator[str]:
        """Yield the bounds that are the predicate itself: others only help to look up, and it is there as well."""
        sides = (self._stored(side.relation, key_of(side, band.order).name) for side in (band.left, band.right))
        left, right = sides
        for bound, sign in ((band.low, ">="), (band.high, "<=")):
            if bound == 0:
                yield f"{right} {sign} {left}"
            elif bound is not None and band.order == "integer":
                yield f"CAST({right} AS HUGEINT) - {left} {sign} {int(bound)}"

    def _evaluated(self, residual: Residual[Operand]) -> str:
        columns = [
            _null(each) if each.relation in self._empty else self._stored(each.relation, operand_name(each))
            for each in residual.operands
        ]

        def placed(match: re.Match[str]) -> str:
            operand = match["operand"]
            return match[0] if operand is None else columns[int(operand)]

        return _TEXT_OR_OPERAND.sub(placed, residual.sql)

    def _stored(self, alias: str, name: str) -> str:
        return self._column(alias, self._numbers[alias][name])

    def _column(self, alias: str, name: str) -> str:
        return _quoted(column_name(self._at[alias], name))


def _null(operand: Operand) -> str:
    """Return NULL of the operand's type, by which DuckDB tells what is done with it; of any type if it has no such."""
    type_ = operand.type or ""
    for pattern, name in _NAMED_OTHERWISE.items():
        if pattern.fullmatch(type_):
            return f"CAST(NULL AS {name})"
    return f"CAST(NULL AS {type_})" if _TYPES.fullmatch(type_) else "NULL"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


__all__ = ["Span", "certain_sql", "column_name", "compared_columns", "finds_core", "only_tested", "table_name"]
