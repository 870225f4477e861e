"""Hundreds of conditions on the columns of one stream, of every type that a column can be declared of, as text.

Most compare one column with constants, some of which are values of the column; the others are what no index decides.
The same text means the same to Spark and, translated, to DuckDB; ``-0.0D``, NaN and constants that are no doubles are
compared with doubles and floats, but no constant is compared with a float that is not exactly one: DuckDB would
compare the two as floats.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from plait.query.model import Column
from tests.property.values import BY_NAME

KINDS = ("g", "t", "i", "y", "l", "x", "d", "j", "point", "e", "big", "f", "r", "s", "v", "b", "a", "w", "m", "z", "n")
KINDS += ("q",)
COLUMNS = tuple(Column(name=f"c_{kind}", type=BY_NAME[kind].spark.lower()) for kind in KINDS)

_DOMAIN = 24
_COMPARISONS = ("=", "<", "<=", ">", ">=", "<>", "<=>", "==", "!=")
_OTHERS = (
    "`c_i` < `c_l`",
    "`c_s` LIKE 'a%'",
    "`c_s` LIKE '%b' OR `c_i` = 3",
    "CAST(`c_i` AS STRING) = '1'",
    "`c_i` = 1 OR `c_b`",
    "length(`c_s`) > 1",
    "`c_a` < `c_m`",
    "`c_v` = X'61'",
)


def drawn_rows(rng: random.Random, count: int, *, nulls: float = 0.15) -> pa.Table:
    """Return rows with a value of small domains in every column, or NULL."""
    return pa.table(
        {
            column.name: pa.array(
                [None if rng.random() < nulls else BY_NAME[kind].value(rng.randrange(_DOMAIN)) for _ in range(count)],
                BY_NAME[kind].arrow,
            )
            for column, kind in zip(COLUMNS, KINDS, strict=True)
        }
    )


def drawn_condition(rng: random.Random) -> str:
    """Return a condition on one column, or now and then one that no index decides."""
    if rng.random() < 0.08:
        return rng.choice(_OTHERS)
    kind = rng.choice([each for each in KINDS if each != "v"])
    return _condition(rng, kind, f"`c_{kind}`", 2)


def drawn_selection(rng: random.Random) -> tuple[str, ...]:
    """Return the conjuncts of a selection."""
    return tuple(dict.fromkeys(drawn_condition(rng) for _ in range(rng.choice((1, 1, 1, 2, 2, 3)))))


def _condition(rng: random.Random, kind: str, column: str, depth: int) -> str:
    match rng.randrange(13 if depth else 9):
        case 0:
            return f"{column} IS {rng.choice(('', 'NOT '))}NULL"
        case 1:
            low, high = constant(rng, kind), constant(rng, kind)
            return f"{column} {rng.choice(('', 'NOT '))}BETWEEN {low} AND {high}"
        case 2:
            listed = ", ".join(constant(rng, kind) for _ in range(rng.choice((1, 2, 3, 4, 12))))
            return f"{column} {rng.choice(('', 'NOT '))}IN ({listed})"
        case 3 if kind == "b":
            return column
        case 3 | 4:
            return f"{constant(rng, kind)} {rng.choice(_COMPARISONS)} {column}"
        case 5:
            return f"{column} IS {rng.choice(('', 'NOT '))}DISTINCT FROM {constant(rng, kind)}"
        case 9:
            return f"NOT {_part(rng, kind, column, depth - 1)}"
        case 10 | 11 as drawn:
            parts = [_part(rng, kind, column, depth - 1) for _ in range(2)]
            return (" AND " if drawn == 10 else " OR ").join(parts)
        case 12:
            test = rng.choice(("IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE", "IS NULL", "IS NOT NULL"))
            return f"({_condition(rng, kind, column, depth - 1)}) {test}"
        case _:
            return f"{column} {rng.choice(_COMPARISONS)} {constant(rng, kind)}"


def _part(rng: random.Random, kind: str, column: str, depth: int) -> str:
    """Return a condition as a part of another, half the time as what binds tighter says it is."""
    part = _condition(rng, kind, column, depth)
    return f"({part})" if rng.random() < 0.5 else part


def constant(rng: random.Random, kind: str) -> str:
    """Return a constant to compare a column with: mostly one of its values, sometimes NULL or one of another type."""
    if rng.random() < 0.06:
        return "NULL"
    return rng.choice(tuple(_written(rng, kind, BY_NAME[kind].value(rng.randrange(_DOMAIN)))))


def _written(rng: random.Random, kind: str, value: Any) -> Iterator[str]:
    """Yield the ways to write a constant about as large as a value."""
    match value:
        case bool():
            yield str(value).upper()
        case int():
            yield _signed(value)
            if -(2**31) < value < 2**31:
                yield f"{_signed(value)}L" if value >= 0 else f"-{-value}L"
                yield f"{value}.0"
                yield f"{value}.5"
        case float():
            finite = value if abs(value) < 1e15 else float(rng.randrange(-4, 9))
            yield f"{finite}D" if finite >= 0 else f"-{-finite}D"
            yield f"{finite:.2f}" if finite >= 0 else f"-{-finite:.2f}"
            yield str(int(finite))
        case Decimal():
            yield f"{value:f}"
            yield f"{int(value)}"
        case str():
            yield "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case datetime():
            type_ = "TIMESTAMP_NTZ" if kind in "nq" else "TIMESTAMP"
            yield f"{type_}'{value.isoformat(sep=' ')}'"
            yield f"DATE'{value.date().isoformat()}'"
        case date():
            yield f"DATE'{value.isoformat()}'"
        case _:
            raise TypeError(f"no constant is written for {value!r}")


def _signed(value: int) -> str:
    return str(value) if value > -(2**63) else "-9223372036854775807"


__all__ = ["COLUMNS", "KINDS", "constant", "drawn_condition", "drawn_rows", "drawn_selection"]
