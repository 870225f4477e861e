"""Bounds on the difference of two columns, read from a join predicate: what a sorted index can look up.

Three shapes have one: ``A < B`` (any order), ``A - B < c`` and ``abs(A - B) < c``, also under NOT. An operand ``b.ts +
INTERVAL 5 MINUTES`` is taken for ``b.ts`` and a constant, so that all bounds on one pair of columns meet in one range.

Between integers, dates and timestamps the bounds are the predicate itself (Spark's overflow errors aside). Between
fractional numbers they are bounds of what Spark computes in doubles: who looks up ``left + bound`` must allow for
2^-49 of the largest of the three numbers. Only ``A <= B`` of values that doubles hold exactly is the predicate itself;
a strict ``A < B`` has the bound 0, too. ``A - B > c`` has none there: two infinities make NaN, the largest number.
NULLs satisfy no bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, Literal, TypeAlias

from typing_extensions import assert_never

from plait.query.model import Operand, OrderedType, SourceExpression, band_between
from plait.query.predicates import Band, Residual
from plait.query.types import common_type, ordered_type
from plait.sql.lexis.literals import INTERVAL, literal
from plait.sql.lexis.literals import Literal as Constant
from plait.sql.lexis.numbers import INTEGERS, TIMES, decimal_size, is_decimal, is_fractional
from plait.sql.lexis.operations import Tokens, taken_apart
from plait.sql.lexis.operators import Kind
from plait.sql.lexis.tokens import Token, rendered, tokens_of, without_outer_parentheses

TypeOf = Callable[[Operand], str]
Recognized: TypeAlias = tuple[Band[Operand], bool]
"""A band, and whether it is all of the predicate."""

DAY_US: Final = 86_400_000_000
_DOUBLE_DIGITS: Final = 15
_LARGEST: Final = 2**53

Sign: TypeAlias = Literal["<", "<=", ">", ">=", "="]
Unit: TypeAlias = Literal["int", "number", "double", "date", "timestamp", "days", "interval"]

_MIRRORED: Final[Mapping[Sign, Sign]] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Term:
    operand: Operand
    type: str
    sign: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sum:
    """Operands, added or subtracted, and a constant. `unit` says what the sum is.

    ``int``; ``number``, a constant with decimals; ``date`` and ``timestamp``, counted from 1970 in days and
    microseconds; ``days`` between dates; ``interval``, in microseconds; ``double``.
    """

    unit: Unit
    constant: Fraction
    terms: tuple[_Term, ...] = ()


def band_of(
    residual: Residual[Operand], type_of: TypeOf, order: Sequence[str], *, is_utc: bool = True
) -> Recognized | None:
    """Return the band a predicate implies, and whether it is all of it; None if there is none.

    Its `left` is of the relation that comes first in `order`. `is_utc`: every day of the session's time zone has 24
    hours.
    """
    tokens = tokens_of(residual.text)
    return _Reader(residual, type_of, order, is_utc=is_utc).read(tokens)


def peeled(operand: Operand, type_of: TypeOf, *, is_utc: bool = True) -> tuple[Operand, Fraction]:
    """Split an operand into a base and the constant that is added to it, in the unit of its type."""
    text = operand.expression.sql
    tokens = tokens_of(text)
    shift = _offset(text, tokens)
    if shift is None:
        return operand, Fraction(0)
    base_tokens, sign, offset = shift
    sql = rendered(text, without_outer_parentheses(base_tokens), {})
    base = replace(operand, expression=SourceExpression(sql=sql, columns=operand.expression.columns))
    step = _step(type_of(base), type_of(operand), offset, is_utc=is_utc)
    if step is None:
        return operand, Fraction(0)
    whole, constant = peeled(base, type_of, is_utc=is_utc)
    return whole, constant + sign * step


def _offset(text: str, tokens: Sequence[Token]) -> tuple[Tokens, int, Constant] | None:
    """Return base, sign and literal of ``base ± literal``, ``literal + base`` and ``date_add(base, literal)``."""
    operation = taken_apart(text, tokens)
    if operation is None or len(operation.parts) != 2:
        return None
    sign = {"+": 1, "-": -1, "date_add": 1, "dateadd": 1, "date_sub": -1}.get(operation.name or operation.kind)
    if sign is None:
        return None
    left, right = operation.parts
    offset = signed_literal(text, right)
    if offset is not None:
        return left, sign, offset
    offset = signed_literal(text, left) if operation.kind == "+" else None
    return None if offset is None else (right, sign, offset)


def signed_literal(text: str, tokens: Sequence[Token]) -> Constant | None:
    """Return a literal that may have a sign."""
    inner = without_outer_parentheses(tokens)
    if not (inner[0].is_symbol("-", "+") and len(inner) > 1):
        return literal(text, inner)
    constant = signed_literal(text, inner[1:])
    if constant is None or constant.value is None or isinstance(constant.value, bool | str):
        return None
    return replace(constant, value=-constant.value) if inner[0].is_symbol("-") else constant


def _step(base: str, whole: str, offset: Constant, *, is_utc: bool) -> Fraction | None:
    """Return the constant in the unit of the base's type, None if adding it is more than adding a number."""
    if offset.value is None or isinstance(offset.value, bool | str):
        return None
    value = Fraction(offset.value)
    if base in INTEGERS and whole in INTEGERS:
        return value if offset.type in INTEGERS else None
    if base == whole == "date":
        days = value if offset.type in INTEGERS else value / DAY_US
        return days if days.denominator == 1 else None
    if base == whole and base in TIMES and offset.type == INTERVAL:
        return value if is_utc or abs(value) < DAY_US else None
    if base == whole == "double" and (offset.type in INTEGERS or is_fractional(offset.type)):
        return value
    sizes = (decimal_size(base), decimal_size(offset.type))
    if is_decimal(base) and is_decimal(whole) and sizes[0] and sizes[1]:
        digits = max(size[0] - size[1] for size in sizes if size) + max(size[1] for size in sizes if size)
        return value if digits < 38 else None
    return None


class _Reader:
    """Reads one predicate."""

    def __init__(self, residual: Residual[Operand], type_of: TypeOf, order: Sequence[str], *, is_utc: bool) -> None:
        self._residual, self._type_of, self._order, self._is_utc = residual, type_of, order, is_utc

    def read(self, tokens: Sequence[Token], *, negated: bool = False) -> Recognized | None:
        operation = taken_apart(self._residual.text, tokens)
        if operation is None:
            return None
        if operation.kind == "NOT":
            return self.read(operation.parts[0], negated=not negated)
        written = _sign_of(operation.kind, negated=negated)
        if written is None:
            return None
        left, right = operation.parts
        for value, sign, bound in ((left, written, right), (right, _MIRRORED[written], left)):
            inside = taken_apart(self._residual.text, value)
            if inside is not None and inside.name == "abs" and len(inside.parts) == 1:
                return self._distance(inside.parts[0], sign, bound)
        first, second = self._sum(left), self._sum(right)
        return None if first is None or second is None else self._comparison(first, written, second)

    def _distance(self, inside: Tokens, sign: Sign, bound: Tokens) -> Recognized | None:
        """Read ``abs(inside) sign bound``."""
        distance, limit = self._sum(inside), self._sum(bound)
        if distance is None or limit is None or limit.terms or sign not in ("<", "<="):
            return None
        opposite = replace(limit, constant=-limit.constant)
        above = self._comparison(distance, sign, limit, is_finite=True)
        below = self._comparison(distance, _MIRRORED[sign], opposite, is_finite=True)
        if above is None or below is None:
            return None
        bands = (above[0], below[0])
        low = next((band.low for band in bands if band.low is not None), math.inf)
        high = next((band.high for band in bands if band.high is not None), -math.inf)
        return (replace(above[0], low=low, high=high), above[1] and below[1]) if low <= high else None

    def _comparison(self, left: _Sum, sign: Sign, right: _Sum, *, is_finite: bool = False) -> Recognized | None:
        """Read ``left sign right``. `is_finite`: something else says that it is no difference of infinities."""
        difference = self._added(left, right, -1)
        if difference is None or len(difference.terms) != 2:
            return None
        minus, plus = sorted(difference.terms, key=lambda term: term.sign)
        if (minus.sign, plus.sign) != (-1, 1) or minus.operand.relation == plus.operand.relation:
            return None
        if difference.unit in ("int", "days", "interval"):
            type_ = ordered_type(common_type(minus.type, plus.type))
            return self._oriented(minus, plus, _whole_bounds(sign, -difference.constant), type_, is_all=True)
        is_direct = len(left.terms) == len(right.terms)
        is_finite = is_finite or is_direct or sign == "=" or ("<" in sign) == bool(left.terms)
        if difference.unit != "double" or not is_finite:
            return None
        is_all = is_direct and not difference.constant and sign in ("<=", ">=") and _is_double(minus.type, plus.type)
        return self._oriented(minus, plus, _double_bounds(sign, -difference.constant), "double", is_all=is_all)

    def _oriented(
        self,
        minus: _Term,
        plus: _Term,
        bounds: tuple[float | None, float | None] | None,
        type_: OrderedType | None,
        *,
        is_all: bool,
    ) -> Recognized | None:
        if bounds is None or type_ is None or any(abs(bound or 0) > _LARGEST for bound in bounds):
            return None
        low, high = bounds
        if self._order.index(minus.operand.relation) > self._order.index(plus.operand.relation):
            minus, plus = plus, minus
            low, high = (None if high is None else 0 - high), (None if low is None else 0 - low)
        return band_between(minus.operand, plus.operand, type_, low, high), is_all

    def _sum(self, tokens: Sequence[Token]) -> _Sum | None:
        inner = without_outer_parentheses(tokens)
        if len(inner) == 1 and inner[0].kind == "quoted":
            return self._operand(self._residual.operands[int(inner[0].value)])
        constant = signed_literal(self._residual.text, inner)
        if constant is not None:
            return _constant_sum(constant)
        operation = taken_apart(self._residual.text, inner)
        if operation is None:
            return None
        parts = [self._sum(part) for part in operation.parts]
        if operation.kind in ("+", "-") and parts[0] is not None and parts[1] is not None:
            zoned = "timestamp" in (parts[0].unit, parts[1].unit) and not self._is_utc
            return None if zoned else self._added(parts[0], parts[1], 1 if operation.kind == "+" else -1)
        if operation.name in ("datediff", "date_diff") and len(parts) == 2 and parts[0] is not None:
            days = None if parts[1] is None else self._added(parts[0], parts[1], -1)
            return replace(days, unit="int") if days is not None and days.unit == "days" else None
        return None

    def _operand(self, operand: Operand) -> _Sum | None:
        base, added = peeled(operand, self._type_of, is_utc=self._is_utc)
        type_ = self._type_of(base)
        unit: Unit = (
            "timestamp" if type_ in TIMES else "date" if type_ == "date" else "int" if type_ in INTEGERS else "double"
        )
        if unit == "double" and not is_fractional(type_):
            return None
        return _Sum(unit=unit, constant=added, terms=(_Term(operand=base, type=type_, sign=1),))

    def _added(self, left: _Sum, right: _Sum, sign: int) -> _Sum | None:
        if {left.unit, right.unit} == {"date", "timestamp"} and self._is_utc:
            left, right = _as_timestamp(left), _as_timestamp(right)
        if {left.unit, right.unit} == {"days", "interval"}:
            left, right = _as_days(left), _as_days(right)
        unit = _unit_of_sum(left, right, sign)
        if unit is None:
            return None
        terms = (*left.terms, *(replace(term, sign=sign * term.sign) for term in right.terms))
        return _Sum(unit=unit, constant=left.constant + sign * right.constant, terms=terms)


def _constant_sum(constant: Constant) -> _Sum | None:
    if constant.value is None or isinstance(constant.value, bool | str):
        return None
    unit: Unit = "int" if constant.type in INTEGERS else "interval" if constant.type == INTERVAL else "number"
    return _Sum(unit="double" if constant.type in ("float", "double") else unit, constant=Fraction(constant.value))


def _as_timestamp(sum_: _Sum) -> _Sum:
    return replace(sum_, unit="timestamp", constant=sum_.constant * DAY_US) if sum_.unit == "date" else sum_


def _as_days(sum_: _Sum) -> _Sum:
    return replace(sum_, unit="days", constant=sum_.constant / DAY_US) if sum_.unit == "interval" else sum_


def _sign_of(kind: Kind, *, negated: bool) -> Sign | None:
    """Return the sign of a comparison that says where a value lies, turned round if it is negated."""
    match kind:
        case "<":
            return ">=" if negated else "<"
        case "<=":
            return ">" if negated else "<="
        case ">":
            return "<=" if negated else ">"
        case ">=":
            return "<" if negated else ">="
        case "=" | "==":
            return None if negated else "="
        case _:
            return None


def _unit_of_sum(left: _Sum, right: _Sum, sign: int) -> Unit | None:
    units = {left.unit, right.unit}
    if units <= {"int", "number", "double"}:
        return "double" if "double" in units else "int" if "int" in units else "number"
    if left.unit == right.unit:
        match left.unit:
            case "date":
                return "days" if sign < 0 else None
            case "timestamp":
                return "interval" if sign < 0 else None
            case _:
                return left.unit
    if (left.unit, right.unit) in (("date", "int"), ("timestamp", "interval")) and not right.terms:
        return left.unit
    return None


def _whole_bounds(sign: Sign, limit: Fraction) -> tuple[int | None, int | None] | None:
    """Return the whole numbers that are ``sign limit``."""
    below, above = math.floor(limit), math.ceil(limit)
    match sign:
        case "<":
            return None, above - 1
        case "<=":
            return None, below
        case ">":
            return below + 1, None
        case ">=":
            return above, None
        case "=":
            return (below, above) if below == above else None
        case _:
            assert_never(sign)


def _double_bounds(sign: Sign, limit: Fraction) -> tuple[float | None, float | None]:
    """Return doubles between which everything is that is ``sign limit`` once rounded."""
    low = high = float(limit)
    if limit:
        low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    return (None if "<" in sign else low), (None if ">" in sign else high)


def _is_double(left: str, right: str) -> bool:
    """Tell whether Spark compares these types as doubles, or as numbers that doubles tell apart."""
    if common_type(left, right) in ("float", "double"):
        return True
    sizes = (decimal_size(left), decimal_size(right))
    return all(size is not None and size[0] <= _DOUBLE_DIGITS for size in sizes)
