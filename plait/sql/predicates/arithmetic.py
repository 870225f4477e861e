"""Sums, products and quotients of numbers, of the types and the values that Spark gives them."""

from __future__ import annotations

from plait.sql.lexis.numbers import FLOATING, INTEGERS, decimal_size, exact_type, is_decimal
from plait.sql.lexis.operators import Arithmetic
from plait.sql.predicates.coercions import Untranslatable, Value, common_type_of, converted


def of_numbers(kind: Arithmetic, left: Value, right: Value) -> Value:
    """Write an operation of two numbers. Raises Untranslatable where the two may fail or round differently."""
    if kind in ("/", "%", "DIV") and not right.never_zero:
        raise Untranslatable(
            f"{kind} fails in Spark where the divisor is zero",
            "use try_divide(x, y) or x / nullif(y, 0)" if kind == "/" else "divide by nullif(y, 0)",
        )
    if kind == "/":
        return quotient(left, right)
    if is_decimal(left.type) or is_decimal(right.type):
        exact = exact_type(kind, left.type, right.type)
        if exact is None and not {left.type, right.type} & set(FLOATING):
            raise Untranslatable(f"{kind} of {left.type} and {right.type} is rounded", "cast to double first")
        if exact is not None:
            return _exact(kind, left, right, exact)
    type_ = "double" if {left.type, right.type} & set(FLOATING) else common_type_of((left, right), kind)
    type_ = left.type if left.type == right.type else type_
    operator = {"DIV": "//"}.get(kind, kind)
    if kind == "DIV":
        if type_ not in INTEGERS:
            raise Untranslatable(f"DIV of {type_} is not translated", "use / and floor() in one relation")
        type_ = "bigint"
    return Value(
        sql=f"({converted(left, type_)} {operator} {converted(right, type_)})",
        type=type_,
        never_negative=_never_negative(kind, left, right),
    )


def _never_negative(kind: Arithmetic, left: Value, right: Value) -> bool:
    """Tell whether a sum or product cannot be below zero; a whole number that overflows is an error."""
    is_square = kind == "*" and left.sql == right.sql
    return is_square or (kind in ("+", "*") and left.never_negative and right.never_negative)


def _exact(kind: Arithmetic, left: Value, right: Value, type_: str) -> Value:
    if kind not in ("+", "-", "*"):
        raise Untranslatable(f"{kind} of decimals is not translated", "cast both to double")
    if kind == "*":
        # DuckDB multiplies in 18 digits as long as both factors fit there, whatever the product needs.
        sizes = decimal_size(type_), decimal_size(left.type)
        wide = f"DECIMAL({sizes[0][0]},{sizes[1][1]})" if sizes[0] and sizes[1] else ""
        sides = [f"CAST({left.sql} AS {wide})", f"CAST({right.sql} AS {_as_decimal(right)})"]
    else:
        sides = [converted(side, type_) for side in (left, right)]
    return Value(
        sql=f"CAST({sides[0]} {kind} {sides[1]} AS {type_.upper()})",
        type=type_,
        never_negative=_never_negative(kind, left, right),
    )


def quotient(left: Value, right: Value) -> Value:
    """Write ``left / right``, for a divisor that is not zero."""
    if (is_decimal(left.type) or is_decimal(right.type)) and not {left.type, right.type} & set(FLOATING):
        raise Untranslatable("the quotient of decimals is rounded", "cast one of them to double")
    return Value(sql=f"({converted(left, 'double')} / {converted(right, 'double')})", type="double")


def _as_decimal(value: Value) -> str:
    size = decimal_size(value.type)
    return value.type.upper() if is_decimal(value.type) or size is None else f"DECIMAL({size[0]},{size[1]})"
