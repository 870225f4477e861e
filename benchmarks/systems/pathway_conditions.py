"""Conditions of queries in Pathway's terms: comparisons of columns, literals and simple arithmetic.

A condition is read with the types of its columns at hand, since Pathway knows a time, a date or a decimal as an integer
only. It is put together with Python's own operators, which Pathway's expressions answer to as well as numbers do.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timezone
from typing import Any, Literal

from benchmarks.systems.pathway_types import Kind, Typed
from benchmarks.systems.task import UnableError

_DAY_US = 86_400_000_000
_UNITS_US = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": _DAY_US,
    "week": 7 * _DAY_US,
}
_TOKEN = re.compile(
    r"\s*(?:(?P<column>[a-z_]\w*\.[a-z_]\w*)|(?P<number>\d+(?:\.\d+)?)|'(?P<text>(?:[^']|'')*)'"
    r"|(?P<word>[a-z_]\w*)|(?P<sign><=|>=|<>|!=|[-+*%=<>(),]))",
    re.IGNORECASE,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A part of a condition. `literal`: it is text that stands there, and may turn out to be a time."""

    expression: Any
    typed: Typed
    literal: str | None = None

    @property
    def kind(self) -> Kind:
        """What it is."""
        return self.typed.kind


def _choose(condition: Any, then: Any, otherwise: Any) -> Any:
    return then if condition else otherwise


@dataclass(slots=True, kw_only=True)
class Condition:
    """Reads one condition. `columns`: values by ``relation.column``; `choose`: if_else of the expressions."""

    text: str
    columns: Mapping[str, Value]
    choose: Callable[[Any, Any, Any], Any] = _choose
    rejects_null: bool = field(default=True, init=False)
    """Whether a row with NULL in one of the columns cannot meet the condition; known once it has been read."""
    _tokens: list[tuple[str, str]] = field(default_factory=list, init=False)
    _at: int = field(default=0, init=False)

    def read(self) -> Any:
        """Return the condition as an expression. Raises UnableError for what Pathway is not asked here."""
        self._tokens, self._at = self._split(), 0
        value = self._disjunction()
        if self._at < len(self._tokens):
            raise self._unable(f"'{self._tokens[self._at][1]}'")
        return self._boolean(value).expression

    def _split(self) -> list[tuple[str, str]]:
        found, at, text = [], 0, self.text.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise self._unable(f"'{text[at:].strip()}'")
            kind = str(match.lastgroup)
            content = match.group(kind)
            found.append((kind, content.lower() if kind == "word" else content))
            at = match.end()
        return found

    def _unable(self, what: str) -> UnableError:
        return UnableError(
            f"{what} in the condition '{self.text}' is not translated for Pathway: expected comparisons of columns, "
            "literals and simple arithmetic"
        )

    def _takes(self, *contents: str) -> str | None:
        """Return the next word or sign if it is one of these, and pass it."""
        if self._at < len(self._tokens):
            kind, content = self._tokens[self._at]
            if kind in ("word", "sign") and content in contents:
                self._at += 1
                return content
        return None

    def _expect(self, content: str) -> None:
        if self._takes(content) is None:
            raise self._unable(f"what stands where '{content}' was expected")

    def _next(self) -> tuple[str, str]:
        if self._at == len(self._tokens):
            raise self._unable("the end")
        self._at += 1
        return self._tokens[self._at - 1]

    def _boolean(self, value: Value) -> Value:
        if value.kind != "boolean":
            raise self._unable(f"a {value.kind} as a condition")
        return value

    def _truth(self, expression: Any) -> Value:
        return Value(expression=expression, typed=Typed(kind="boolean"))

    def _disjunction(self) -> Value:
        left = self._conjunction()
        while self._takes("or"):
            self.rejects_null = False
            right = self._boolean(self._conjunction())
            left = self._truth(self._boolean(left).expression | right.expression)
        return left

    def _conjunction(self) -> Value:
        left = self._negation()
        while self._takes("and"):
            right = self._boolean(self._negation())
            left = self._truth(self._boolean(left).expression & right.expression)
        return left

    def _negation(self) -> Value:
        if not self._takes("not"):
            return self._comparison()
        self.rejects_null = False
        return self._truth(operator.eq(self._boolean(self._negation()).expression, False))

    def _comparison(self) -> Value:
        left = self._sum()
        if sign := self._takes(*_COMPARISONS):
            return self._compare(sign, left, self._sum())
        if self._takes("between"):
            low = self._sum()
            self._expect("and")
            above, below = self._compare(">=", left, low), self._compare("<=", left, self._sum())
            return self._truth(above.expression & below.expression)
        if self._takes("in"):
            return self._one_of(left)
        return left

    def _one_of(self, left: Value) -> Value:
        self._expect("(")
        found = self._compare("=", left, self._sum()).expression
        while self._takes(","):
            found = found | self._compare("=", left, self._sum()).expression
        self._expect(")")
        return self._truth(found)

    def _compare(self, sign: str, left: Value, right: Value) -> Value:
        left, right = self._alike(left, right)
        return self._truth(_COMPARISONS[sign](left.expression, right.expression))

    def _alike(self, left: Value, right: Value) -> tuple[Value, Value]:
        """Return both in the same unit."""
        left, right = self._as_read(left, right.kind), self._as_read(right, left.kind)
        if left.kind == right.kind == "number":
            scale = max(left.typed.scale, right.typed.scale)
            return _scaled(left, scale), _scaled(right, scale)
        kinds = {left.kind, right.kind}
        if kinds == {"date", "time"}:
            return _as_time(left), _as_time(right)
        if kinds == {"number", "double"}:
            return _as_double(left), _as_double(right)
        if len(kinds) > 1:
            raise self._unable(f"a {left.kind} beside a {right.kind}")
        return left, right

    def _as_read(self, value: Value, other: Kind) -> Value:
        """Return text that stands beside a time or a date as what it says."""
        if value.literal is None or other not in ("time", "date"):
            return value
        return self._moment(value.literal, "time" if len(value.literal) > len("2000-01-01") else "date")

    def _moment(self, text: str, kind: Literal["time", "date"]) -> Value:
        try:
            if kind == "date":
                return Value(expression=(date.fromisoformat(text) - _EPOCH.date()).days, typed=Typed(kind="date"))
            found = datetime.fromisoformat(text)
        except ValueError as error:
            raise self._unable(f"'{text}' as a {kind}") from error
        since = (found if found.tzinfo else found.replace(tzinfo=timezone.utc)) - _EPOCH
        micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
        return Value(expression=micros, typed=Typed(kind="time"))

    def _sum(self) -> Value:
        left = self._product()
        while sign := self._takes("+", "-"):
            left = self._add(sign, left, self._product())
        return left

    def _add(self, sign: str, left: Value, right: Value) -> Value:
        apply = operator.add if sign == "+" else operator.sub
        if right.kind == "interval" and left.kind in ("time", "date"):
            moment = _as_time(left)
            return replace(moment, expression=apply(moment.expression, right.expression))
        if sign == "+" and left.kind == "interval" and right.kind in ("time", "date"):
            return self._add(sign, right, left)
        kinds = {left.kind, right.kind}
        if not kinds <= {"number", "double"} and kinds not in ({"interval"}, {"time"}):
            raise self._unable(f"a {left.kind} {sign} a {right.kind}")
        if kinds == {"time"} and sign == "+":
            raise self._unable("the sum of two times")
        left, right = self._alike(left, right)
        kind = Typed(kind="interval") if kinds == {"time"} else left.typed
        return Value(expression=apply(left.expression, right.expression), typed=kind)

    def _product(self) -> Value:
        left = self._signed()
        while sign := self._takes("*", "%"):
            right = self._signed()
            if not {left.kind, right.kind} <= {"number", "double"}:
                raise self._unable(f"a {left.kind} {sign} a {right.kind}")
            left = self._multiply(left, right) if sign == "*" else self._remainder(left, right)
        return left

    def _multiply(self, left: Value, right: Value) -> Value:
        if left.kind != right.kind:
            left, right = self._alike(left, right)
        kind = replace(left.typed, scale=left.typed.scale + right.typed.scale)
        return Value(expression=left.expression * right.expression, typed=kind)

    def _remainder(self, left: Value, right: Value) -> Value:
        """Return SQL's remainder, which has the sign of the dividend; Python's and Pathway's has the divisor's."""
        left, right = self._alike(left, right)
        if left.kind != "number":
            raise self._unable("a remainder of floating point")
        divisor = abs(right.expression)
        dividend = left.expression
        found = self.choose(dividend < 0, -(-dividend % divisor), dividend % divisor)
        return Value(expression=found, typed=left.typed)

    def _signed(self) -> Value:
        if not self._takes("-"):
            return self._atom()
        value = self._signed()
        if value.kind not in ("number", "double", "interval"):
            raise self._unable(f"minus a {value.kind}")
        return replace(value, expression=-value.expression)

    def _atom(self) -> Value:
        if self._takes("("):
            value = self._disjunction()
            self._expect(")")
            return value
        kind, content = self._next()
        if kind == "column" and content in self.columns:
            return self.columns[content]
        if kind == "number":
            whole, _, fraction = content.partition(".")
            return Value(expression=int(whole + fraction), typed=Typed(kind="number", scale=len(fraction)))
        if kind == "text":
            text = content.replace("''", "'")
            return Value(expression=text, typed=Typed(kind="text"), literal=text)
        if kind == "word":
            return self._word(content)
        raise self._unable(f"'{content}'")

    def _word(self, word: str) -> Value:
        if word in ("true", "false"):
            return self._truth(word == "true")
        if word == "interval":
            return self._interval()
        if word in ("date", "timestamp") and self._at < len(self._tokens) and self._tokens[self._at][0] == "text":
            return self._moment(self._next()[1], "date" if word == "date" else "time")
        if word == "abs" and self._takes("("):
            value = self._sum()
            self._expect(")")
            if value.kind in ("number", "double", "interval"):
                return replace(value, expression=abs(value.expression))
        raise self._unable(f"'{word}'")

    def _interval(self) -> Value:
        _, content = self._next()
        words = content.lower().split()
        if len(words) == 1:
            words.append(self._next()[1])
        count, unit = words if len(words) == 2 else ("", "")
        micros = _UNITS_US.get(unit.removesuffix("s"))
        if micros is None or not re.fullmatch(r"-?\d+", count):
            raise self._unable(f"the interval '{content}'")
        return Value(expression=int(count) * micros, typed=Typed(kind="interval"))


def _scaled(value: Value, scale: int) -> Value:
    more = scale - value.typed.scale
    if more == 0:
        return value
    return Value(expression=value.expression * 10**more, typed=replace(value.typed, scale=scale))


def _as_double(value: Value) -> Value:
    if value.kind == "double":
        return value
    return Value(expression=value.expression / 10**value.typed.scale, typed=Typed(kind="double"))


def _as_time(value: Value) -> Value:
    if value.kind == "time":
        return value
    return Value(expression=value.expression * _DAY_US, typed=Typed(kind="time"))
