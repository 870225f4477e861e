"""What Spark does not come to: parts of a condition that cannot be computed for rows which earlier parts settle.

Spark evaluates AND, OR and IN from the left and stops where the result is certain; NULL is not. Where the left operand
of a comparison or of arithmetic is NULL, it leaves the right one out. DuckDB evaluates all of it, in an order of its
own, except for CASE. So CASE is written where a part that Spark may leave out can fail, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Final, Literal

from plait.sql.lexis.numbers import FLOATING, INTEGERS
from plait.sql.lexis.operations import Operation
from plait.sql.predicates.coercions import Value

_STRICT: Final = frozenset(
    ("=", "==", "<", "<=", ">", ">=", "<>", "!=", "+", "-", "*", "/", "%", "DIV", "&", "|", "^", "||")
) | {"LIKE", "BETWEEN", "IN"}
_FAILING_CALLS: Final = frozenset(("abs", "date_add", "dateadd", "date_sub", "datediff", "date_diff"))
"""They overflow; so may what a number of days is added to."""


def connected(kind: Literal["AND", "OR"], parts: Sequence[Value]) -> Value:
    """Write conditions that are all boolean, so that each is evaluated only where those before do not settle it."""
    groups: list[list[Value]] = []
    for part in parts:
        if groups and not part.can_fail:
            groups[-1].append(part)
        else:
            groups.append([part])
    whole = _joined(kind, parts)
    if len(groups) == 1:
        return Value(sql=whole, type="boolean", can_fail=parts[0].can_fail)
    settled = ("NOT {}", "FALSE") if kind == "AND" else ("{}", "TRUE")
    tests = [f"WHEN {settled[0].format(_joined(kind, group))} THEN {settled[1]}" for group in groups[:-1]]
    return Value(sql=f"(CASE {' '.join(tests)} ELSE {whole} END)", type="boolean", can_fail=True)


def _joined(kind: str, parts: Sequence[Value]) -> str:
    return reduce(lambda left, right: f"({left} {kind} {right})", (part.sql for part in parts))


def with_failures(operation: Operation, parts: Sequence[Value], value: Value) -> Value:
    """Return what was written of an operation, unless NULL on its left settles it, and say whether it can fail."""
    kind = operation.kind.removeprefix("NOT ")
    can_fail = value.can_fail or any(part.can_fail for part in parts) or _fails(operation, parts, value)
    sql = value.sql
    if kind in _STRICT and parts[0].literal is None and any(part.can_fail for part in parts[1:]):
        sql = f"(CASE WHEN {parts[0].sql} IS NULL THEN NULL ELSE {sql} END)"
    return replace(value, sql=sql, can_fail=can_fail)


def _fails(operation: Operation, parts: Sequence[Value], value: Value) -> bool:
    """Tell whether DuckDB cannot compute an operation for some of the values that its parts may have."""
    match operation.kind:
        case "+" | "-" | "*" | "%" | "DIV":
            return value.type not in FLOATING
        case "SIGN":
            return operation.pieces[0].strip() == "-" and value.type not in FLOATING
        case "CAST":
            return {parts[0].type, value.type} <= set(INTEGERS) and (
                INTEGERS.index(parts[0].type) > INTEGERS.index(value.type)
            )
        case "LIKE" | "NOT LIKE":  # a pattern that ends with its escape character
            return parts[1].literal is None
        case "CALL":
            return value.type not in FLOATING and (operation.name in _FAILING_CALLS or "error(" in value.sql)
        case _:
            return False


__all__ = ["connected", "with_failures"]
