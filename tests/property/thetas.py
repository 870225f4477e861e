"""Random join predicates that are no equality, as Spark SQL and as Python functions of the joined row."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from tests.property.expressions import (
    DATES,
    DECIMALS,
    INSTANTS,
    INTEGERS,
    Expression,
    apply,
    derived,
    drawn_by_kind,
    either,
    equal,
    greater,
    instant,
)
from tests.property.patterns import like, string_distance
from tests.property.registered import REGISTERED, Registered
from tests.property.values import KINDS, TEXTS_OF_OTHERS, may_meet

_RARELY_COMPARED = frozenset(kind.name for kind in KINDS) - INTEGERS - DECIMALS - INSTANTS - frozenset("sfraw")
_WHOLE, _FLOATING = INTEGERS - frozenset("yx"), frozenset("fr")
_SIGNS: Mapping[str, Callable[[Any, Any], bool]] = MappingProxyType(
    {
        "<": lambda a, b: greater(b, a),
        "<=": lambda a, b: not greater(a, b),
        ">": greater,
        ">=": lambda a, b: not greater(b, a),
        "<>": lambda a, b: not equal(a, b),
        "!=": lambda a, b: not equal(a, b),
    }
)
_EPOCH = datetime.datetime(1970, 1, 1)

Pair = tuple[Expression, Expression]
Maker = Callable[[random.Random, Expression, Expression], Expression]


def random_theta(
    rng: random.Random, left: list[Expression], right: list[Expression], times: Pair | None, spans_us: list[int]
) -> Expression:
    """Return a predicate over two relations, given their columns. `times`: their event times, if both are streams.

    Its `label` is its kind.
    """
    pairs = [(a, b) for a in left for b in right if _may_meet(a, b)]
    if times is not None and rng.random() < 0.2:
        return replace(_in_time(rng, *_either_way(rng, times), rng.choice(spans_us)), label="event times")
    kinds = [(label, weight, fit, make) for label, weight, fit, make in _kinds(pairs, spans_us) if fit]
    ((label, _, fit, make),) = rng.choices(kinds, [weight for _, weight, _, _ in kinds])
    return replace(make(rng, *_either_way(rng, drawn_by_kind(rng, fit))), label=label)


def _kinds(pairs: list[Pair], spans_us: list[int]) -> Iterator[tuple[str, int, list[Pair], Maker]]:
    """Yield the kinds of predicates: (label, weight, the pairs of columns it may be of, how it is made)."""
    numbers = _pairs_of(pairs, _WHOLE)
    fractions = _pairs_of(pairs, _FLOATING | _WHOLE, _FLOATING)
    decimals = _pairs_of(pairs, DECIMALS | _WHOLE, DECIMALS)
    instants = _pairs_of(pairs, INSTANTS | DATES, INSTANTS)
    texts = _pairs_of(pairs, frozenset("s"))
    alike = [pair for pair in pairs if pair[0].kind == pair[1].kind]
    yield "comparison", 2, pairs, _comparison
    yield "comparison of one type", 2, alike, _comparison
    others = [pair for pair in alike if pair[0].kind in _RARELY_COMPARED]
    yield "comparison of other types", 8 if others else 1, others or pairs, _comparison
    yield "comparison of fractions", 2, fractions, _comparison
    yield "comparison of times", 2, [*instants, *_pairs_of(pairs, DATES)], _comparison
    yield "band", 2, numbers, lambda rng, a, b: _band(rng, a, b, "3", 3)
    yield "between", 2, numbers, _between
    yield "arithmetic", 1, numbers, _sum
    yield "guarded division", 1, numbers, _guarded
    yield "band of fractions", 2, fractions, lambda rng, a, b: _band(rng, a, b, "2.5D", 2.5)
    yield "band of decimals", 2, decimals, lambda rng, a, b: _band(rng, a, b, "2.5", Decimal("2.5"))
    yield "between decimals", 3, decimals, _between
    yield "spatial distance", 2, fractions, lambda rng, a, b: _distance(a, b, *rng.choice(numbers or fractions))
    yield "like", 6 if texts else 1, texts or numbers, lambda rng, a, b: like(rng, *_as_texts(a, b))
    yield (
        "string distance",
        4 if texts else 1,
        texts or numbers,
        lambda rng, a, b: string_distance(rng, *_as_texts(a, b)),
    )
    yield "days", 4, _pairs_of(pairs, DATES), _days
    yield "instants", 4, instants, lambda rng, a, b: _in_time(rng, a, b, rng.choice(spans_us))
    yield "equal or both missing", 1, alike, lambda rng, a, b: _same(a, b)
    yield "alternatives", 1, pairs, lambda rng, a, b: _alternatives(rng, pairs)
    yield "missing or more", 1, pairs, _missing
    usable = {"number": numbers, "string": texts, "fraction": fractions, "any": alike}
    for each in REGISTERED:
        weight = {"string": 3, "fraction": 2, "number": 2}.get(each.takes, 1)
        yield each.name, weight, usable[each.takes], _call_of(each)


def labels() -> frozenset[str]:
    """Return what may be the label of a predicate."""
    return frozenset(("event times", *(label for label, *_ in _kinds([], []))))


def _call_of(predicate: Registered) -> Maker:
    def called(rng: random.Random, a: Expression, b: Expression) -> Expression:
        return predicate.called(*(_as_doubles(a, b) if predicate.takes == "fraction" else (a, b)))

    return called


def _pairs_of(pairs: list[Pair], kinds: frozenset[str], among: frozenset[str] | None = None) -> list[Pair]:
    """Return the pairs of columns of these kinds, at least one of them of one `among` them."""
    both = [(pair, {pair[0].kind, pair[1].kind}) for pair in pairs]
    return [pair for pair, found in both if found <= kinds and (among is None or found & among)]


def _may_meet(a: Expression, b: Expression) -> bool:
    """Tell whether two columns may be compared; refused is a wide decimal with a float, because Spark and DuckDB round,
    and a text with anything else, which Spark casts.
    """
    kinds = {a.kind, b.kind}
    is_rounded = bool(kinds & {"e", "big"} and kinds & {"f", "r"})
    return may_meet(a.kind, b.kind) and not is_rounded and (len(kinds) == 1 or not kinds & TEXTS_OF_OTHERS)


def _either_way(rng: random.Random, pair: Pair) -> Pair:
    return pair if rng.random() < 0.5 else pair[::-1]


def _maybe_derived(rng: random.Random, operand: Expression) -> Expression:
    found = derived(operand, rng) if rng.random() < 0.2 else operand
    return found if found.kind == operand.kind else operand


def _comparison(rng: random.Random, a: Expression, b: Expression) -> Expression:
    sign = rng.choice(("<", "<=", ">", ">=", "<>", "!="))
    left, right = _maybe_derived(rng, a), _maybe_derived(rng, b)
    text = f"{{0}} {sign} {{1}}"
    return apply(
        text if rng.random() < 0.9 else f"NOT ({{1}} {_opposite(sign)} {{0}})", _SIGNS[sign], left, right, kind="b"
    )


def _opposite(sign: str) -> str:
    """Return the sign s for which ``a sign b`` is ``NOT (b s a)``."""
    return {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "<>": "=", "!=": "="}[sign]


def _band(rng: random.Random, a: Expression, b: Expression, width: str, limit: float | Decimal) -> Expression:
    sign = rng.choice(("<", "<="))
    return apply(
        f"abs({{0}} - {{1}}) {sign} {width}",
        lambda left, right: _SIGNS[sign](abs(left - right), limit),
        a,
        b,
        kind="b",
    )


def _between(rng: random.Random, a: Expression, b: Expression) -> Expression:
    low, high = rng.choice(((1, 1), (0, 2), (2, -1), (-1, 3)))
    return apply(
        f"{{0}} BETWEEN {{1}} - {low} AND {{1}} + {high}", lambda x, y: y - low <= x <= y + high, a, b, kind="b"
    )


def _sum(rng: random.Random, a: Expression, b: Expression) -> Expression:
    text, function = rng.choice(
        (
            ("{0} + {1} > 3", lambda x, y: x + y > 3),
            ("{0} - {1} <= 1", lambda x, y: x - y <= 1),
            ("{0} * 2 < {1} + 1", lambda x, y: x * 2 < y + 1),
            ("{0} - 1 >= {1} + 2", lambda x, y: x - 1 >= y + 2),
            ("{0} - {1} > 1", lambda x, y: x - y > 1),
            ("-({0} - {1}) < 2", lambda x, y: y - x < 2),
            ("-{0} < {1}", lambda x, y: -x < y),
            ("2 > {1} - {0}", lambda x, y: y - x < 2),
            ("NOT ({0} - {1} < 2)", lambda x, y: x - y >= 2),
            ("{0} - {1} = 1", lambda x, y: x - y == 1),
            ("{0} = {1} + 1", lambda x, y: x == y + 1),
        )
    )
    return apply(text, function, a, b, kind="b")


def _guarded(rng: random.Random, a: Expression, b: Expression) -> Expression:
    """Return a division that is kept from failing where the divisor is zero, so that no order of evaluation matters.
    Some are true of NULL.
    """
    text, function = rng.choice(
        (
            ("try_divide({0}, {1}) > 1", lambda x, y: x / y > 1 if y and x is not None else None),
            ("coalesce(try_divide({0}, {1}), 0) < 1", lambda x, y: (x / y if y and x is not None else 0) < 1),
            ("{0} / nullif({1}, 0) <= 1", lambda x, y: x / y <= 1 if y and x is not None else None),
            ("{0} % nullif({1}, 0) = 1", lambda x, y: x > 0 and x % abs(y) == 1 if y and x is not None else None),
            ("{0} DIV nullif({1}, 0) = 0", lambda x, y: abs(x) < abs(y) if y and x is not None else None),
            (
                "CASE WHEN {1} <> 0 THEN {0} / nullif({1}, 0) > 1 ELSE {0} > 2 END",
                lambda x, y: None if x is None else x / y > 1 if y else x > 2,
            ),
            (
                "if({1} = 0, {0} < 2, {0} % nullif({1}, 0) = 0)",
                lambda x, y: None if x is None or y is None else x % y == 0 if y else x < 2,
            ),
            (
                "({1} <> 0 AND {0} / nullif({1}, 0) > 1)",
                lambda x, y: False if y == 0 else None if x is None or y is None else x / y > 1,
            ),
            (
                "({1} = 0 OR {0} / nullif({1}, 0) > 1)",
                lambda x, y: True if y == 0 else None if x is None or y is None else x / y > 1,
            ),
        )
    )
    return apply(text, function, a, b, kind="b", strict=False)


def _distance(a: Expression, b: Expression, c: Expression, d: Expression) -> Expression:
    def within(x: float, y: float, v: float, w: float) -> bool:
        square = (x - y) * (x - y) + (v - w) * (v - w)
        return greater(9.0, math.sqrt(square) if square == square else square)

    text = "sqrt(({0} - {1}) * ({0} - {1}) + ({2} - {3}) * ({2} - {3})) < 9.0D"
    return apply(
        text, within, *_as_doubles(a, b, *((c, d) if c.columns[0][0] == a.columns[0][0] else (d, c))), kind="b"
    )


def _as_doubles(*operands: Expression) -> list[Expression]:
    return [each if each.kind == "f" else apply("CAST({0} AS DOUBLE)", float, each, kind="f") for each in operands]


def _same(a: Expression, b: Expression) -> Expression:
    def same(x: Any, y: Any) -> bool:
        return (x is None and y is None) if x is None or y is None else equal(x, y)

    return apply("{0} <=> {1}", same, a, b, kind="b", strict=False)


def _alternatives(rng: random.Random, pairs: list[Pair]) -> Expression:
    """Return an OR of equalities and comparisons between the same two relations."""
    parts = []
    for a, b in (rng.choice(pairs), rng.choice(pairs)):
        sign = rng.choice(("=", "=", "<"))
        compare = equal if sign == "=" else _SIGNS["<"]
        parts.append(apply(f"{{0}} {sign} {{1}}", compare, a, b, kind="b"))
    return apply("({0} OR {1})", either, *parts, kind="b", strict=False)


def _missing(rng: random.Random, a: Expression, b: Expression) -> Expression:
    absent = apply("{0} IS NULL", lambda v: v is None, a, kind="b", strict=False)
    return apply("({0} OR {1})", either, absent, _comparison(rng, a, b), kind="b", strict=False)


def _in_time(rng: random.Random, a: Expression, b: Expression, span_us: int) -> Expression:
    """Return a predicate between instants: bounds on one side or on both, with and without offsets."""
    shown = f"INTERVAL {span_us} MICROSECONDS"
    choices: tuple[tuple[str, Callable[[int, int], bool]], ...] = (
        ("{0} <= {1}", lambda x, y: x <= y),
        ("{0} < {1}", lambda x, y: x < y),
        ("NOT ({0} < {1})", lambda x, y: x >= y),
        (f"{{0}} - {{1}} <= {shown}", lambda x, y: x - y <= span_us),
        (f"{{0}} - {{1}} > {shown}", lambda x, y: x - y > span_us),
        (f"{{0}} < {{1}} + {shown}", lambda x, y: x < y + span_us),
        (f"{{0}} BETWEEN {{1}} - {shown} AND {{1}}", lambda x, y: y - span_us <= x <= y),
        (
            f"{{0}} >= {{1}} - {shown} AND {{0}} <= {{1}} + {shown}",
            lambda x, y: y - span_us <= x <= y + span_us,
        ),
        (f"{{0}} + {shown} > {{1}}", lambda x, y: x + span_us > y),
        (f"{{0}} BETWEEN {{1}} AND {{1}} + {shown}", lambda x, y: y <= x <= y + span_us),
    )
    text, function = rng.choice(choices)
    return apply(text, lambda x, y: function(_microseconds(x), _microseconds(y)), a, b, kind="b")


def _microseconds(value: datetime.date) -> int:
    """Return microseconds since the epoch: datetime ends with the year 9999, where an offset may lead beyond."""
    return (instant(value) - _EPOCH) // datetime.timedelta(microseconds=1)


def _as_texts(*operands: Expression) -> list[Expression]:
    return [each if each.kind == "s" else apply("CAST({0} AS STRING)", str, each, kind="s") for each in operands]


def _days(rng: random.Random, a: Expression, b: Expression) -> Expression:
    """Return a predicate between dates."""
    choices: tuple[tuple[str, Callable[[Any, Any], bool]], ...] = (
        ("datediff({0}, {1}) <= 2", lambda x, y: (x - y).days <= 2),
        ("abs(datediff({0}, {1})) < 3", lambda x, y: abs((x - y).days) < 3),
        ("{0} BETWEEN {1} AND date_add({1}, 3)", lambda x, y: 0 <= (x - y).days <= 3),
        ("date_sub({0}, 2) > {1}", lambda x, y: (x - y).days > 2),
        ("{0} <> {1}", lambda x, y: x != y),
    )
    text, function = rng.choice(choices)
    return apply(text, function, a, b, kind="b")
