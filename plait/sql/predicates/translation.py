"""Spark SQL to DuckDB SQL, for predicates between columns of known types.

Every operation is in a list, for some types; anything else is refused, because the two differ in more corners than
anybody knows: errors, rounding, coercions, time zones. What is in the list is compared with Spark in
`tests/spark/test_residual_semantics.py`. Operands arrive as Arrow values of their Spark types, timestamps without a
zone, in UTC. Spark's errors of ANSI mode are errors in DuckDB where arithmetic overflows; division is only translated
where it cannot fail.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal

from typing_extensions import assert_never

from plait.query.types import is_calendar, is_clock
from plait.sql.lexis.literals import INTERVAL, MONTHS, NOTHING, duckdb_type, literal
from plait.sql.lexis.numbers import FLOATING, INTEGERS, TIMES, is_decimal, is_numeric
from plait.sql.lexis.operations import Operation, Tokens, taken_apart
from plait.sql.lexis.operators import (
    Additive,
    Binary,
    Bitwise,
    Comparison,
    ConstantTest,
    NegatedWord,
    PredicateWord,
)
from plait.sql.lexis.tokens import Token, tokens_of, without_outer_parentheses
from plait.sql.predicates.arithmetic import of_numbers
from plait.sql.predicates.coercions import Untranslatable, Value, cast, common_type_of, condition, converted
from plait.sql.predicates.duckdb_functions import FUNCTIONS, INEXACT, STRING
from plait.sql.predicates.guarding import connected, with_failures
from plait.sql.predicates.special_functions import SPECIAL, like

_COMPARISONS: Final[Mapping[Comparison, str]] = {
    "=": "=",
    "==": "=",
    "<>": "<>",
    "!=": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "<=>": "IS NOT DISTINCT FROM",
}
_BITS: Final[Mapping[Bitwise, str]] = {"&": "({} & {})", "|": "({} | {})", "^": "xor({}, {})"}
_DIFFERENCES: Final = ("timestampdiff", "datediff", "date_diff")
_UNITS_US: Final = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}
_DAY_US: Final = _UNITS_US["DAY"]


def condition_of(
    sql: str,
    types: Sequence[str],
    *,
    never_zero: Collection[int] = (),
    time_zone: str | None = None,
    is_exact: bool = False,
) -> Value:
    """Translate a predicate over operands of these types. Raises Untranslatable.

    `never_zero`: the operands that can be divided by. `time_zone`: the session's, None if it is UTC. `is_exact`: as in
    `value_of`.
    """
    value = value_of(sql, types, never_zero=never_zero, time_zone=time_zone, is_exact=is_exact)
    if value.type not in ("boolean", NOTHING):
        raise Untranslatable(f"it is of type {value.type}", "a condition must be true or false")
    return value


def value_of(
    sql: str,
    types: Sequence[str],
    *,
    never_zero: Collection[int] = (),
    time_zone: str | None = None,
    is_exact: bool = False,
) -> Value:
    """Translate an expression of any type; arguments as in `translated`. `is_exact`: refuse what may differ from Spark
    in the last bit.
    """
    tokens = tokens_of(sql)
    return _Translator(sql, types, never_zero, time_zone, is_exact).translate(tokens)


class _Translator:
    def __init__(
        self,
        text: str,
        types: Sequence[str],
        never_zero: Collection[int],
        time_zone: str | None,
        is_exact: bool,
    ) -> None:
        self._text, self._types, self._never_zero, self._time_zone = text, types, never_zero, time_zone
        self._is_exact = is_exact

    def translate(self, tokens: Sequence[Token]) -> Value:
        inner = without_outer_parentheses(tokens)
        operation = taken_apart(self._text, inner)
        return self._leaf(inner) if operation is None else self._operation(operation)

    def _leaf(self, tokens: Sequence[Token]) -> Value:
        if len(tokens) == 1 and tokens[0].kind == "quoted":
            return self._operand(int(tokens[0].value))
        constant = literal(self._text, tokens)
        if constant is None:
            shown = self._text[tokens[0].start : tokens[-1].end]
            raise Untranslatable(f"'{shown}' is no value that both read alike", "write it as a plain literal")
        if constant.type in TIMES and ":" in str(constant.value):
            self._require_utc(f"TIMESTAMP '{constant.value}'")
        nonzero = not isinstance(constant.value, str | bool | None) and constant.value != 0
        return Value(sql=constant.sql, type=constant.type, literal=constant, never_zero=nonzero)

    def _operand(self, operand: int) -> Value:
        """Name an operand. Intervals are numbers: of months as they arrive, else of microseconds."""
        type_, sql = self._types[operand], f'"{operand}"'
        if is_calendar(type_):
            return Value(sql=sql, type=MONTHS)
        if is_clock(type_):
            return Value(sql=f"epoch_us({sql})", type=INTERVAL)
        return Value(sql=sql, type=type_, never_zero=operand in self._never_zero)

    def _operation(self, operation: Operation) -> Value:
        if operation.name in _DIFFERENCES and len(operation.parts) == 3:
            return self._time_between(operation)
        if operation.kind in ("AND", "OR"):
            return self._connected(operation)
        parts = [self.translate(part) for part in operation.parts]
        return with_failures(operation, parts, self._written(operation, parts))

    def _written(self, operation: Operation, parts: Sequence[Value]) -> Value:
        match operation.kind:
            case "=" | "==" | "<=>" | "<" | "<=" | ">" | ">=" | "<>" | "!=" as kind:
                return self.compared(kind, *parts)
            case "AND" | "OR":
                return self._connected(operation)
            case "NOT":
                return _boolean(f"(NOT {condition(parts[0], 'NOT')})")
            case "IS NULL" | "IS NOT NULL" | "IS TRUE" | "IS NOT TRUE" | "IS FALSE" | "IS NOT FALSE" as kind:
                return self.is_constant(kind, parts[0])
            case "IS DISTINCT":
                equal = self.compared("<=>", *parts)
                return _boolean(f"(NOT {equal.sql})") if operation.pieces[0] else equal
            case "BETWEEN" | "IN" | "LIKE" | "ILIKE" | "RLIKE" as kind:
                return self._predicate(kind, parts, operation.pieces[-1])
            case "NOT BETWEEN" | "NOT IN" | "NOT LIKE" | "NOT ILIKE" | "NOT RLIKE" as kind:
                return self._predicate(kind, parts, operation.pieces[-1])
            case "CASE":
                return self._case(operation, parts)
            case "CAST":
                return self._cast(operation, parts[0])
            case "SIGN":
                return self._sign(operation.pieces[0].strip(), parts[0])
            case "CALL":
                return self._call(operation.name, parts)
            case "+" | "-" | "*" | "/" | "%" | "DIV" | "|" | "^" | "&" | "<<" | ">>" | ">>>" | "||" as kind:
                return self._binary(kind, *parts)
            case _:
                assert_never(operation.kind)

    def _require_utc(self, what: str) -> None:
        if self._time_zone is not None:
            raise Untranslatable(
                f"{what} depends on the session's time zone, {self._time_zone}",
                "set spark.sql.session.timeZone to UTC, or compute it per relation",
            )

    def as_type(self, value: Value, type_: str) -> str:
        if value.type == "date" and type_ in TIMES:
            self._require_utc("a date compared with a timestamp")
        if {value.type, type_} == set(TIMES):
            self._require_utc("a timestamp compared with one without a time zone")
        return converted(value, type_)

    def compared(self, kind: Comparison, left: Value, right: Value) -> Value:
        type_ = common_type_of((left, right), kind)
        return _boolean(f"({self.as_type(left, type_)} {_COMPARISONS[kind]} {self.as_type(right, type_)})")

    def _connected(self, operation: Operation) -> Value:
        kind: Literal["AND", "OR"] = "AND" if operation.kind == "AND" else "OR"
        parts = [self.translate(part) for part in self._chain(operation)]
        return connected(kind, [replace(part, sql=condition(part, kind), type="boolean") for part in parts])

    def _chain(self, operation: Operation) -> tuple[Tokens, ...]:
        """Return the conditions of ``a AND b AND c``, so that none is written more than twice."""
        first, *others = operation.parts
        before = taken_apart(self._text, first)
        is_longer = before is not None and before.kind == operation.kind
        return (*(self._chain(before) if before is not None and is_longer else (first,)), *others)

    def is_constant(self, kind: ConstantTest, part: Value) -> Value:
        constant = kind.rsplit(" ", 1)[1]
        if constant == "NULL":
            return _boolean(f"({part.sql} {kind})")
        comparison = "IS DISTINCT FROM" if "NOT" in kind else "IS NOT DISTINCT FROM"
        return _boolean(f"({condition(part, kind)} {comparison} {constant})")

    def _predicate(self, kind: PredicateWord | NegatedWord, parts: Sequence[Value], tail: str) -> Value:
        word = kind.removeprefix("NOT ")
        value, others = parts[0], parts[1:]
        if word == "IN":
            written = self._in(value, others)
        elif word == "BETWEEN":
            low, high = others
            bounds = self.compared(">=", value, low), self.compared("<=", value, high)
            written = connected("AND", (bounds[0], replace(bounds[1], can_fail=high.can_fail))).sql
        elif word == "LIKE":
            written = like(value, others[0], tail)
        else:
            raise Untranslatable(
                f"{word} differs between Spark and DuckDB",
                "use LIKE, contains(), startswith() or endswith() on text that each relation prepares",
            )
        return _boolean(f"(NOT {written})" if kind.startswith("NOT ") else written)

    def _in(self, value: Value, others: Sequence[Value]) -> str:
        type_ = common_type_of((value, *others), "IN")
        sought, among = self.as_type(value, type_), [self.as_type(other, type_) for other in others]
        if any(other.can_fail for other in others[1:]):
            equal = [f"({sought} = {each})" for each in among]
            parts = zip(equal, others, strict=True)
            return connected("OR", [replace(_boolean(sql), can_fail=other.can_fail) for sql, other in parts]).sql
        return f"({sought} IN ({', '.join(among)}))"

    def _case(self, operation: Operation, parts: Sequence[Value]) -> Value:
        words = [piece.split()[-1] if piece.split() else "" for piece in operation.pieces]
        of_value = words[0] == "CASE"
        conditions = [part for part, word in zip(parts, words[:-1], strict=True) if word == "WHEN"]
        results = [part for part, word in zip(parts, words[:-1], strict=True) if word in ("THEN", "ELSE")]
        type_ = common_type_of(results, "CASE")
        if of_value:
            conditions = [self.compared("=", parts[0], condition) for condition in conditions]
        written = [
            f"WHEN {condition(when, 'CASE')} THEN {self.as_type(result, type_)}"
            for when, result in zip(conditions, results, strict=False)
        ]
        otherwise = f" ELSE {self.as_type(results[-1], type_)}" if len(results) > len(conditions) else ""
        return Value(sql=f"(CASE {' '.join(written)}{otherwise} END)", type=type_)

    def _cast(self, operation: Operation, value: Value) -> Value:
        if operation.name.upper() != "CAST":
            raise Untranslatable(f"{operation.name} is not translated", "compute it per relation")
        target = operation.pieces[1].removeprefix(" AS ").removesuffix(")").strip().lower()
        if target in TIMES or value.type in TIMES:
            self._require_utc(f"a cast between {value.type} and {target}")
        return cast(value, target)

    def _sign(self, sign: str, value: Value) -> Value:
        if sign == "~" and value.type in INTEGERS:
            return Value(sql=f"(~{value.sql})", type=value.type)
        if sign == "~" or not (is_numeric(value.type) or value.type == INTERVAL):
            raise Untranslatable(f"{sign} of {value.type} is not translated", "compute it per relation")
        if sign == "+":
            return value
        if value.type in FLOATING or is_decimal(value.type):
            sql = f"(-{value.sql})"
        else:  # a minus sign may widen a constant, where subtraction overflows as it does in Spark
            sql = f"(CAST(0 AS {duckdb_type(value.type)}) - {value.sql})"
        return Value(sql=sql, type=value.type, never_zero=value.never_zero)

    def _call(self, name: str, parts: Sequence[Value]) -> Value:
        if self._is_exact and _may_differ(name, parts):
            raise Untranslatable(f"{name}() may differ from Spark's in the last bit", "leave it to Spark")
        special = SPECIAL.get(name)
        if special is not None:
            value = special(self, parts)
            if value is not None:
                return value
        function = FUNCTIONS.get((name, len(parts)))
        if function is None:
            raise Untranslatable(
                f"{name}() of {len(parts)} arguments is not known to be the same in DuckDB",
                "compute it from one relation at a time",
            )
        for part, taken in zip(parts, function.takes, strict=True):
            if taken == STRING and part.type not in (STRING, NOTHING):
                raise Untranslatable(f"{name}() of {part.type}", "cast it to a string")
        arguments = [self.as_type(part, taken) for part, taken in zip(parts, function.takes, strict=True)]
        if name in ("pow", "power") and parts[1].literal is not None and parts[1].literal.value == 2:
            # So does Java, exactly.
            return Value(sql=f"({arguments[0]} * {arguments[0]})", type=function.gives, never_negative=True)
        if name == "sqrt" and parts[0].never_negative:  # without the test for what has no root
            return Value(sql=f"sqrt({arguments[0]})", type=function.gives, never_negative=True)
        return Value(sql=function.sql.format(*arguments), type=function.gives)

    def _binary(self, kind: Binary, left: Value, right: Value) -> Value:
        types = {left.type, right.type}
        match kind:
            case "||" if types <= {STRING, NOTHING}:
                return Value(sql=f"({left.sql} || {right.sql})", type=STRING)
            case "&" | "|" | "^" if types <= set(INTEGERS):
                type_ = common_type_of((left, right), kind)
                return Value(sql=_BITS[kind].format(self.as_type(left, type_), self.as_type(right, type_)), type=type_)
            case "+" | "-" | "*" | "/" | "%" | "DIV" if all(is_numeric(type_) for type_ in types):
                return of_numbers(kind, left, right)
            case "+" | "-":
                of_times = self.time(kind, left, right)
                if of_times is not None:
                    return of_times
            case _:
                pass
        raise Untranslatable(
            f"{kind} between {left.type} and {right.type} is not translated", "compute it per relation, or cast"
        )

    def time(self, kind: Additive, left: Value, right: Value) -> Value | None:
        if left.type == right.type == INTERVAL:
            return Value(sql=f"({left.sql} {kind} {right.sql})", type=INTERVAL)
        if kind == "+" and left.type == INTERVAL:
            left, right = right, left
        if left.type in TIMES and right.type == INTERVAL:
            if right.literal is None or abs(int(right.literal.value or 0)) >= _DAY_US:
                self._require_utc("a timestamp and an interval of days")
            return Value(sql=f"make_timestamp(epoch_us({left.sql}) {kind} {right.sql})", type=left.type)
        if left.type == "date" and right.type in INTEGERS and right.type != "bigint":
            return Value(sql=f"({left.sql} {kind} {converted(right, 'int')})", type="date")
        if kind == "-" and left.type in TIMES and right.type in TIMES:
            self._require_utc("the difference of timestamps")
            return Value(sql=f"(epoch_us({left.sql}) - epoch_us({right.sql}))", type=INTERVAL)
        if kind == "-" and left.type == right.type == "date":
            return Value(sql=f"(({left.sql} - {right.sql}) * {_DAY_US})", type=INTERVAL)
        return None

    def _time_between(self, operation: Operation) -> Value:
        """Translate ``timestampdiff(unit, start, end)``: whole units, cut off towards zero."""
        unit = self._text[operation.parts[0][0].start : operation.parts[0][-1].end].upper()
        start, end = (self.translate(part) for part in operation.parts[1:])
        if unit not in _UNITS_US or not {start.type, end.type} <= {*TIMES, "date"}:
            raise Untranslatable(
                f"{operation.name}({unit}) from {start.type} to {end.type} is not translated", "use units up to WEEK"
            )
        self._require_utc("the difference of timestamps")
        micros = [f"epoch_us({self.as_type(side, 'timestamp')})" for side in (end, start)]
        return Value(sql=f"(({micros[0]} - {micros[1]}) // {_UNITS_US[unit]})", type="bigint", can_fail=True)


def _boolean(sql: str) -> Value:
    return Value(sql=sql, type="boolean")


def _may_differ(name: str, parts: Sequence[Value]) -> bool:
    """Tell whether a function may give another value than Spark's, if only by its last bit or the sign of a zero."""
    return name in INEXACT or (name in ("greatest", "least") and any(part.type in FLOATING for part in parts))
