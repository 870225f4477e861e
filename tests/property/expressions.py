"""Expressions that exist twice: as Spark SQL text and as a Python function of the joined row.

The second form is what makes the nested loop an independent oracle. Only constructs whose meaning is the same in Spark
and DuckDB are here; the following are left out on purpose: division and floor (result types differ), ``concat`` (DuckDB
skips NULLs, hence ``||``), arithmetic on extreme integers (both overflow, with different errors), texts that cannot be
read as what they are compared with (an error in both), locale dependent text functions beyond ASCII.
"""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tests.property.values import CALENDAR, NESTED, SPANS

Row = dict[str, dict[str, Any]]
"""alias → column → value."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Expression:
    """`columns`: the (alias, column) pairs it reads. `sql` renders it, given how each is written; `value` evaluates.

    `template`: its text, with ``{n}`` for the n-th of `operands`. `label`: what the generator calls it.
    """

    columns: tuple[tuple[str, str], ...]
    sql: Callable[[Callable[[str, str], str]], str]
    value: Callable[[Row], Any]
    kind: str
    small: bool = True
    operands: tuple[Expression, ...] = ()
    template: str | None = None
    label: str = ""


def column(alias: str, name: str, kind: str, small: bool) -> Expression:
    """Return a plain column."""
    return Expression(
        columns=((alias, name),),
        sql=lambda ref: ref(alias, name),
        value=lambda row: row[alias][name],
        kind=kind,
        small=small,
    )


def literal(text: str, value: Any, kind: str) -> Expression:
    """Return a constant."""
    return Expression(columns=(), sql=lambda ref: text, value=lambda row: value, kind=kind)


def apply(
    template: str, function: Callable[..., Any], *operands: Expression, kind: str, strict: bool = True
) -> Expression:
    """Return `function` of the operands, written as `template` with ``{0}``...; `strict`: NULL if any operand is."""

    def value(row: Row) -> Any:
        values = [operand.value(row) for operand in operands]
        return None if strict and any(found is None for found in values) else function(*values)

    return Expression(
        columns=tuple(dict.fromkeys(pair for operand in operands for pair in operand.columns)),
        sql=lambda ref: template.format(*(operand.sql(ref) for operand in operands)),
        value=value,
        kind=kind,
        operands=operands,
        template=template,
    )


def comparable(left: Any, right: Any) -> tuple[Any, Any]:
    """Return both values in their common type, as Spark casts them."""
    if isinstance(left, str) != isinstance(right, str):
        left, right = (_read_as(left, right), right) if isinstance(left, str) else (left, _read_as(right, left))
    if isinstance(left, float) or isinstance(right, float):
        return float(left), float(right)
    if isinstance(left, datetime.datetime) != isinstance(right, datetime.datetime):
        return instant(left), instant(right)
    return left, right


def _read_as(text: str, other: Any) -> Any:
    """Return a text as what it is compared with."""
    match other:
        case bool():
            return text.lower() == "true"
        case int():
            return int(text)
        case float() | Decimal():
            return float(text)
        case bytes():
            return text.encode()
        case _:
            return datetime.datetime.fromisoformat(text)


def instant(value: Any) -> Any:
    """Return a date as the timestamp at its beginning."""
    return value if isinstance(value, datetime.datetime) else datetime.datetime(value.year, value.month, value.day)


def equal(left: Any, right: Any) -> bool:
    """Compare as Spark and DuckDB do: NaN equals NaN, -0.0 equals 0.0."""
    left, right = comparable(left, right)
    return bool(left == right) or (isinstance(left, float) and math.isnan(left) and math.isnan(right))


def greater(left: Any, right: Any) -> bool:
    """Compare as Spark and DuckDB do: NaN is above every other number."""
    left, right = comparable(left, right)
    if isinstance(left, float) and math.isnan(left):
        return not math.isnan(right)
    return bool(left > right) and not (isinstance(right, float) and math.isnan(right))


def both(*operands: Any) -> bool | None:
    """Return the three-valued conjunction."""
    return False if False in operands else None if None in operands else True


def either(*operands: Any) -> bool | None:
    """Return the three-valued disjunction."""
    return True if True in operands else None if None in operands else False


def drawn_by_kind(rng: random.Random, pairs: list[tuple[Expression, Expression]]) -> tuple[Expression, Expression]:
    """Return a pair of operands, of rare kinds as often as of frequent ones."""
    kind = rng.choice(sorted({side.kind for pair in pairs for side in pair}))
    return rng.choice([pair for pair in pairs if kind in (pair[0].kind, pair[1].kind)])


def equality(left: Expression, right: Expression) -> Expression:
    """Return ``left = right``."""
    return apply("{0} = {1}", equal, left, right, kind="b")


INTEGERS, DECIMALS = frozenset("gtilyx"), frozenset("dej")
DATES, INSTANTS = frozenset("aw"), frozenset("mznq")
_WALL_CLOCK = frozenset("nq")
_DAY = datetime.timedelta(days=1)


def _midnight(value: datetime.datetime) -> datetime.datetime:
    return datetime.datetime(value.year, value.month, value.day)


def fields(operand: Expression) -> list[Callable[[], Expression]]:
    """Return what can be had of a nested value."""
    match operand.kind:
        case "record":
            return [
                lambda: apply("{0}.f", lambda v: v["f"], operand, kind="i"),
                lambda: apply("{0}.s", lambda v: v["s"], operand, kind="s"),
            ]
        case "list":
            return [lambda: apply("array_size({0})", len, operand, kind="i")]
        case _:
            return [lambda: apply("{0}['a']", lambda v: dict(v).get("a"), operand, kind="i")]


def derived(operand: Expression, rng: random.Random) -> Expression:
    """Return some function of `operand`; the operand itself where its kind has none that is safe."""
    kind = operand.kind
    choices: list[Callable[[], Expression]] = []
    if kind in INTEGERS and operand.small:
        choices += [
            lambda: apply("{0} + 1", lambda v: v + 1, operand, kind=kind),
            lambda: apply("({0} - 2)", lambda v: v - 2, operand, kind=kind),
            lambda: apply("{0} % 5", lambda v: int(math.fmod(v, 5)), operand, kind=kind),
            lambda: apply("abs({0})", abs, operand, kind=kind),
            lambda: apply("-{0}", lambda v: -v, operand, kind=kind),
            lambda: apply("{0} * 2", lambda v: v * 2, operand, kind=kind),
            lambda: apply(
                "CASE WHEN {0} > 2 THEN {0} ELSE 0 END",
                lambda v: v if (v or 0) > 2 else 0,
                operand,
                kind=kind,
                strict=False,
            ),
            lambda: apply(
                "CAST({0} AS DECIMAL(10,2))", lambda v: Decimal(v).quantize(Decimal("0.01")), operand, kind="d"
            ),
        ]
    if kind in INTEGERS:
        choices += [
            lambda: apply("coalesce({0}, 0)", lambda v: 0 if v is None else v, operand, kind=kind, strict=False),
            lambda: apply("CAST({0} AS BIGINT)", lambda v: v, operand, kind="l" if operand.small else "x"),
            lambda: apply("CAST({0} AS DOUBLE)", float, operand, kind="f"),
            lambda: apply("CAST({0} AS STRING)", str, operand, kind="s"),
        ]
    if kind in DECIMALS:
        choices += [
            lambda: apply("-{0}", lambda v: -v, operand, kind=kind),
            lambda: apply("{0} + 1", lambda v: v + 1, operand, kind=kind),
            lambda: apply("CAST({0} AS DOUBLE)", float, operand, kind="f"),
            lambda: apply(
                "coalesce({0}, 0)", lambda v: Decimal(0) if v is None else v, operand, kind=kind, strict=False
            ),
        ]
    if kind == "f":
        choices += [
            lambda: apply("{0} * 2", lambda v: v * 2, operand, kind=kind),
            lambda: apply("-{0}", lambda v: -v, operand, kind=kind),
            lambda: apply("abs({0})", abs, operand, kind=kind),
            lambda: apply("coalesce({0}, 0.0)", lambda v: 0.0 if v is None else v, operand, kind=kind, strict=False),
        ]
    if kind == "s":
        choices += [
            lambda: apply("lower({0})", str.lower, operand, kind=kind),
            lambda: apply("UPPER({0})", str.upper, operand, kind=kind),
            lambda: apply("trim({0})", lambda v: v.strip(" "), operand, kind=kind),
            lambda: apply("substring({0}, 1, 1)", lambda v: v[:1], operand, kind=kind),
            lambda: apply("{0} || 'x'", lambda v: v + "x", operand, kind=kind),
            lambda: apply("length({0})", len, operand, kind="i"),
            lambda: apply("coalesce({0}, '')", lambda v: "" if v is None else v, operand, kind=kind, strict=False),
        ]
    if kind == "a":
        choices += [lambda: apply("date_add({0}, 1)", lambda v: v + _DAY, operand, kind=kind)]
    if kind in DATES:
        choices += [
            lambda: apply("CAST({0} AS TIMESTAMP)", instant, operand, kind="m" if kind == "a" else "z"),
            lambda: apply("CAST({0} AS TIMESTAMP_NTZ)", instant, operand, kind="n" if kind == "a" else "q"),
            lambda: apply("day({0})", lambda v: v.day, operand, kind="i"),
        ]
    if kind in INSTANTS:
        instants, wall_clock = ("m", "n") if operand.small else ("z", "q")
        other, type_ = (instants, "TIMESTAMP") if kind in _WALL_CLOCK else (wall_clock, "TIMESTAMP_NTZ")
        choices += [
            lambda: apply("date_trunc('DAY', {0})", _midnight, operand, kind=instants),
            lambda: apply("CAST({0} AS DATE)", datetime.datetime.date, operand, kind="a" if operand.small else "w"),
            lambda: apply(f"CAST({{0}} AS {type_})", lambda v: v, operand, kind=other),
        ]
    if kind in SPANS:
        choices += [
            lambda: apply("(-{0})", lambda v: -v, operand, kind="span"),
            lambda: apply("{0} * 2", lambda v: v * 2, operand, kind="span"),
            lambda: apply("{0} + {0}", lambda v: v + v, operand, kind=kind),
        ]
    if kind in CALENDAR:
        choices += [
            lambda: apply("(-{0})", lambda v: -v, operand, kind="age"),
            lambda: apply("{0} + {0}", lambda v: v + v, operand, kind=kind),
        ]
    if kind in NESTED:
        choices += fields(operand)
    if kind == "b":
        choices += [lambda: apply("(NOT {0})", lambda v: not v, operand, kind=kind)]
    return rng.choice(choices)() if choices else operand
