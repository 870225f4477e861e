"""For which values of a column a condition holds that does nothing but compare it with constants.

Constants cut the values of a column into **classes**: what is below all of them, what equals the first, what lies
between it and the second, and so on, and NULL. Such a condition is the same for all values of a class, so that hundreds
of them come down to finding the class of a value once. How values are ordered, and what is equal, is Spark's: NaN is
the largest number and equals itself, -0.0 is 0.0, texts are compared by their bytes. Whatever would be compared in
another type than the column's, or rounded to become one, is left to Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Final, Literal, TypeAlias

from typing_extensions import assert_never

from plait.query.remembering import remembered
from plait.query.types import common_type
from plait.sql.lexis.literals import NOTHING, literal
from plait.sql.lexis.literals import Literal as Constant
from plait.sql.lexis.numbers import INTEGERS, TIMES, decimal_size, is_decimal
from plait.sql.lexis.operations import Operation, Tokens, taken_apart
from plait.sql.lexis.tokens import Token, tokens_of, without_outer_parentheses

Bound: TypeAlias = int | float | bytes
"""A constant as values of the column are: whole numbers, days, microseconds, unscaled decimals and truth values are
int, doubles are float, texts are the bytes of their UTF-8.
"""

_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_LONG_DIGITS: Final = 18
_MAX_DIGITS: Final = 38
_EPOCH: Final = datetime(1970, 1, 1)
_US: Final = timedelta(microseconds=1)
_FLIPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Compared:
    """Whether the value is below a bound, at most it, or equal to it; NULL if it is NULL."""

    kind: Literal["<", "<=", "="]
    bound: Bound


@dataclass(frozen=True, slots=True)
class Unknown:
    """NULL, whatever the value: it is compared with NULL."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Whether the value is NULL."""


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite; of NULL it is NULL."""

    part: Test


@dataclass(frozen=True, slots=True)
class Sure:
    """Whether something is true: of NULL it is not."""

    part: Test


@dataclass(frozen=True, slots=True)
class Connected:
    """AND or OR of several."""

    kind: Literal["AND", "OR"]
    parts: tuple[Test, ...]


Test: TypeAlias = Compared | Unknown | Missing | Not | Sure | Connected
"""A condition on one column, in the three truth values of SQL."""


def is_classed(type_: str) -> bool:
    """Tell whether columns of a type have classes: their values are int64, doubles or bytes."""
    size = decimal_size(type_) if is_decimal(type_) else None
    is_short = size is not None and size[0] <= _LONG_DIGITS
    return is_short or type_ in (*INTEGERS, *TIMES, "date", "boolean", "float", "double", "string")


@remembered(1 << 14)  # with every query that comes or goes all are asked for again
def class_test(sql: str, column: str, type_: str) -> Test | None:
    """Return what a condition asks of the value of the only column that it reads, of this type; None if that is more
    than how it compares with constants.
    """
    return _Reader(sql, column, type_).read(tokens_of(sql)) if is_classed(type_) else None


def bounds_of(test: Test) -> Iterator[Bound]:
    """Yield the constants of a test."""
    match test:
        case Compared(bound=bound):
            yield bound
        case Unknown() | Missing():
            pass
        case Not(part=part) | Sure(part=part):
            yield from bounds_of(part)
        case Connected(parts=parts):
            for part in parts:
                yield from bounds_of(part)
        case _:
            assert_never(test)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads conditions on a column. Each method returns None for what it cannot read."""

    text: str
    column: str
    type: str

    def read(self, tokens: Sequence[Token]) -> Test | None:
        inner = without_outer_parentheses(tokens)
        operation = taken_apart(self.text, inner)
        if operation is None:
            return self._leaf(inner)
        match operation.kind:
            case "AND" | "OR" as kind:
                parts = [self.read(part) for part in operation.parts]
                read = tuple(part for part in parts if part is not None)
                return Connected(kind, read) if len(read) == len(parts) else None
            case "NOT":
                return _not(self.read(operation.parts[0]))
            case "=" | "==" | "<=>" | "<" | "<=" | ">" | ">=" | "<>" | "!=" as kind:
                return self._compared(kind, *operation.parts)
            case "BETWEEN" | "NOT BETWEEN" | "IN" | "NOT IN":
                return self._among(operation)
            case "IS DISTINCT":
                same = self._compared("<=>", *operation.parts)
                return _not(same) if operation.pieces[0] else same
            case "IS NULL" | "IS NOT NULL" | "IS TRUE" | "IS NOT TRUE" | "IS FALSE" | "IS NOT FALSE" as kind:
                return self._constant(kind, operation.parts[0])
            case _:
                return None

    def _leaf(self, tokens: Tokens) -> Test | None:
        is_truth = self._is_column(tokens) and self.type == "boolean"
        return Compared("=", 1) if is_truth else None

    def _is_column(self, tokens: Tokens) -> bool:
        inner = without_outer_parentheses(tokens)
        return len(inner) == 1 and inner[0].kind == "quoted" and inner[0].value == self.column

    def _compared(self, kind: str, left: Tokens, right: Tokens) -> Test | None:
        if self._is_column(right) and not self._is_column(left):
            kind, left, right = _FLIPPED.get(kind, kind), right, left
        constant = self._literal(right) if self._is_column(left) else None
        if constant is None:
            return None
        if constant.type == NOTHING:
            return Missing() if kind == "<=>" else Unknown()
        bound = _bound(constant, self.type)
        if bound is None:
            return None
        match kind:
            case "<=>":
                return Sure(Compared("=", bound))
            case "=" | "==":
                return Compared("=", bound)
            case "<>" | "!=":
                return Not(Compared("=", bound))
            case "<":
                return Compared("<", bound)
            case "<=":
                return Compared("<=", bound)
            case ">":
                return Not(Compared("<=", bound))
            case _:
                return Not(Compared("<", bound))

    def _among(self, operation: Operation) -> Test | None:
        value, *others = operation.parts
        if operation.kind.endswith("BETWEEN"):
            tests = [self._compared(">=", value, others[0]), self._compared("<=", value, others[1])]
        else:
            tests = [self._compared("=", value, other) for other in others]
        read = tuple(test for test in tests if test is not None)
        if len(read) < len(tests):
            return None
        whole = Connected("AND" if operation.kind.endswith("BETWEEN") else "OR", read)
        return Not(whole) if operation.kind.startswith("NOT") else whole

    def _constant(self, kind: str, tokens: Tokens) -> Test | None:
        if kind.endswith("NULL") and self._is_column(tokens):
            found: Test = Missing()
        else:
            test = self.read(tokens)
            if test is None:
                return None
            if kind.endswith("NULL"):
                found = Not(Sure(Connected("OR", (test, Not(test)))))
            else:
                found = Sure(Not(test) if kind.endswith("FALSE") else test)
        return Not(found) if "NOT" in kind else found

    def _literal(self, tokens: Tokens) -> Constant | None:
        """Return a constant, a number perhaps with a sign."""
        inner = without_outer_parentheses(tokens)
        operation = taken_apart(self.text, inner)
        if operation is None:
            return literal(self.text, inner)
        # One sign only: -(-2147483648) is an error to Spark.
        constant = (
            literal(self.text, without_outer_parentheses(operation.parts[0])) if operation.kind == "SIGN" else None
        )
        if constant is None or not isinstance(constant.value, Decimal):
            return None
        sign = operation.pieces[0].strip()
        if sign == "+":
            return constant
        return Constant(type=constant.type, value=-constant.value) if sign == "-" else None


def _not(test: Test | None) -> Test | None:
    return None if test is None else Not(test)


def _bound(constant: Constant, type_: str) -> Bound | None:
    """Return a constant as a value of the column's type; None if Spark compares the two in another way than by that."""
    value = constant.value
    if isinstance(value, bool):
        return int(value) if type_ == "boolean" else None
    if isinstance(value, Decimal):
        return _number(constant.type, value, type_)
    if not isinstance(value, str):
        return None
    if type_ == "string" and constant.type == "string":
        return _utf8(value)
    if constant.type == "date" and type_ == "date":
        moment = _moment(value)
        return None if moment is None else (moment - _EPOCH).days
    if type_ in TIMES and constant.type in (type_, "date"):
        moment = _moment(value)
        return None if moment is None else (moment - _EPOCH) // _US
    return None


def _number(constant_type: str, value: Decimal, type_: str) -> Bound | None:
    if constant_type == "float":
        return None
    if type_ in ("float", "double"):
        return float(value) if common_type(type_, constant_type) == "double" else None
    column, constant = decimal_size(type_), decimal_size(constant_type)
    if column is None or constant is None:
        return None
    digits = max(column[0] - column[1], constant[0] - constant[1]) + max(column[1], constant[1])
    unscaled = Fraction(value) * 10 ** column[1]
    if digits > _MAX_DIGITS or unscaled.denominator != 1 or not _SMALLEST <= unscaled <= _LARGEST:
        return None
    return int(unscaled)


def _utf8(text: str) -> bytes | None:
    try:
        return text.encode()
    except UnicodeEncodeError:  # half a pair of surrogates, which Spark has a way of its own with
        return None


def _moment(text: str) -> datetime | None:
    for form in ("%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d"):
        try:
            return datetime.strptime(text.replace("T", " "), form)
        except ValueError:
            continue
    return None


__all__ = [
    "Bound",
    "Compared",
    "Connected",
    "Missing",
    "Not",
    "Sure",
    "Test",
    "Unknown",
    "bounds_of",
    "class_test",
    "is_classed",
]
