"""What an expression over one relation is where an outer join has no row of it: all its columns are NULL.

Most operations make NULL of NULL. What does not (IS NULL, coalesce, AND, OR, CASE) is looked into as far as a few rules
go; of what they do not decide nothing is claimed.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import sqlglot
from sqlglot import exp

Nothing: TypeAlias = Literal["null", "true", "false", "value", "unknown"]
"""``value``: a constant that is not NULL, whichever it is."""

_STRICT: Final = (
    exp.Binary,
    exp.Neg,
    exp.BitwiseNot,
    exp.Cast,
    exp.Lower,
    exp.Upper,
    exp.Length,
    exp.Abs,
    exp.Substring,
    exp.Trim,
    exp.Extract,
    exp.Year,
    exp.Month,
    exp.Day,
    exp.Round,
    exp.Floor,
    exp.Ceil,
    exp.TimestampTrunc,
    exp.TsOrDsAdd,
    exp.DateAdd,
    exp.Interval,
    exp.Bracket,
)
"""Operations that are NULL as soon as one operand is."""

_NOT: Final[dict[Nothing, Nothing]] = {"true": "false", "false": "true", "null": "null"}


def of_nothing(sql: str) -> Nothing:
    """Return what Spark SQL over columns of one relation is if all of them are NULL.

    >>> [of_nothing(sql) for sql in ("`a` > 5", "`a` IS NULL", "`a` IS NOT NULL OR `b` = 1", "coalesce(`a`, 3) = 3")]
    ['null', 'true', 'null', 'unknown']
    """
    try:
        return _value(sqlglot.parse_one(sql, dialect="spark"))
    except sqlglot.errors.SqlglotError:
        return "unknown"


def _value(node: exp.Expr) -> Nothing:
    if isinstance(node, exp.Paren | exp.Alias):
        return _value(node.this)
    if isinstance(node, exp.Column):
        return "null"
    if isinstance(node, exp.Dot | exp.Between):  # 5 BETWEEN 6 AND NULL is false
        return "null" if _value(node.this) == "null" else "unknown"
    if isinstance(node, exp.Null):
        return "null"
    if isinstance(node, exp.Boolean):
        return "true" if node.this else "false"
    if isinstance(node, exp.Literal):
        return "value"
    if isinstance(node, exp.And | exp.Or):
        return _connected(node)
    if isinstance(node, exp.Not):
        return _NOT.get(_value(node.this), "unknown")
    if isinstance(node, exp.Is | exp.NullSafeEQ | exp.NullSafeNEQ):
        return _identity(node)
    if isinstance(node, exp.Coalesce):
        return next((each for each in map(_value, (node.this, *node.expressions)) if each != "null"), "null")
    if isinstance(node, exp.Case):
        return _of_branches(node)
    if isinstance(node, exp.In):
        return "null" if _value(node.this) == "null" and node.args.get("query") is None else "unknown"
    if isinstance(node, _STRICT):
        return "null" if "null" in map(_value, node.iter_expressions()) else "unknown"
    return "unknown"


def _of_branches(node: exp.Case) -> Nothing:
    """Return what CASE WHEN is: the first branch that is taken, if that can be told."""
    for branch in node.args["ifs"] if node.this is None else ():
        asked = _value(branch.this)
        if asked == "true":
            return _value(branch.args["true"])
        if asked not in ("false", "null"):
            return "unknown"
    otherwise = node.args.get("default")
    return "unknown" if node.this is not None else "null" if otherwise is None else _value(otherwise)


def _connected(node: exp.And | exp.Or) -> Nothing:
    sides = _value(node.this), _value(node.expression)
    decides: Nothing = "false" if isinstance(node, exp.And) else "true"
    if decides in sides:
        return decides
    if not set(sides) <= {"true", "false", "null"}:
        return "unknown"
    return "null" if "null" in sides else sides[0]


def _identity(node: exp.Is | exp.NullSafeEQ | exp.NullSafeNEQ) -> Nothing:
    left, right = _value(node.this), _value(node.expression)
    if "unknown" in (left, right) or "null" not in (left, right):
        return "unknown"
    is_same = left == right
    return "true" if is_same != isinstance(node, exp.NullSafeNEQ) else "false"


__all__ = ["Nothing", "of_nothing"]
