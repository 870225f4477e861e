"""Random join predicates that are no equality, as Spark SQL and as Python functions of the joined row."""

from __future__ import annotations

import datetime
import math
import random
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tests.property.expressions import Expression, apply, derived, either, equal, greater
from tests.property.values import BY_NAME

_WHOLE, _FRACTIONS = frozenset("til"), frozenset("f")
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

Pair = tuple[Expression, Expression]


def near(left: pa.Array, right: pa.Array) -> pa.Array:
    """Tell which whole numbers are at most one apart: the predicate that cases register."""
    return pc.less_equal(pc.abs(pc.subtract(left.cast(pa.int64()), right.cast(pa.int64()))), 1)


PREDICATES: Mapping[str, Callable[..., pa.Array]] = MappingProxyType({"near": near})


def random_theta(
    rng: random.Random, left: list[Expression], right: list[Expression], times: Pair | None, spans_us: list[int]
) -> Expression:
    """Return a predicate over two relations, given their columns. `times`: their event times, if both are streams."""
    pairs = [(a, b) for a in left for b in right if _may_meet(a, b)]
    if times is not None and rng.random() < 0.25:
        return _in_time(rng, *_either_way(rng, times), rng.choice(spans_us))
    a, b = _either_way(rng, rng.choice(pairs))
    makers: list[Callable[[], Expression]] = [lambda: _comparison(rng, a, b)] * 2
    numbers = [pair for pair in pairs if {pair[0].kind, pair[1].kind} <= _WHOLE]
    fractions = [pair for pair in pairs if {pair[0].kind, pair[1].kind} <= _FRACTIONS | _WHOLE and pair not in numbers]
    texts = [pair for pair in pairs if pair[0].kind == pair[1].kind == "s"]
    if numbers:
        makers += [
            lambda: _band(rng, *_either_way(rng, rng.choice(numbers)), "3", 3),
            lambda: _between(rng, *_either_way(rng, rng.choice(numbers))),
            lambda: _near(*_either_way(rng, rng.choice(numbers))),
            lambda: _sum(rng, *_either_way(rng, rng.choice(numbers))),
        ]
    if fractions:
        makers += [
            lambda: _band(rng, *_either_way(rng, rng.choice(fractions)), "2.5D", 2.5),
            lambda: _distance(*_either_way(rng, rng.choice(fractions)), *rng.choice(numbers or fractions)),
        ]
    if texts:
        makers += [lambda: _like(rng, *_either_way(rng, rng.choice(texts)))] * 2
    makers += [lambda: _same(a, b), lambda: _alternatives(rng, pairs), lambda: _missing(rng, a, b)]
    return rng.choice(makers)()


def _may_meet(a: Expression, b: Expression) -> bool:
    """Tell whether two columns may be compared; a wide decimal with a float is refused: Spark and DuckDB round."""
    return BY_NAME[a.kind].group == BY_NAME[b.kind].group and not (
        {a.kind, b.kind} > {"e"} and {a.kind, b.kind} & {"f", "r"}
    )


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


def _band(rng: random.Random, a: Expression, b: Expression, width: str, limit: float) -> Expression:
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
        )
    )
    return apply(text, function, a, b, kind="b")


def _near(a: Expression, b: Expression) -> Expression:
    return apply("near({0}, {1})", lambda x, y: abs(x - y) <= 1, a, b, kind="b")


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


def _like(rng: random.Random, a: Expression, b: Expression) -> Expression:
    """Match patterns made of first letters, among them % and _ (a backslash at the end would be an error)."""
    first = apply("substring({0}, 1, 1)", lambda v: v[:1], b, kind="s")
    pattern = apply("('%' || {0} || '%')", lambda v: f"%{v}%", first, kind="s")
    pattern = rng.choice((pattern, first, apply("({0} || '%')", lambda v: v + "%", first, kind="s")))
    sign = rng.choice(("LIKE", "LIKE", "NOT LIKE"))
    return apply(f"{{0}} {sign} {{1}}", lambda v, p: _is_like(v, p) == (sign == "LIKE"), a, pattern, kind="b")


def _is_like(value: str, pattern: str) -> bool:
    parts = {"%": ".*", "_": "."}
    return re.fullmatch("".join(parts.get(each, re.escape(each)) for each in pattern), value, re.DOTALL) is not None


def _same(a: Expression, b: Expression) -> Expression:
    def same(x: Any, y: Any) -> bool:
        return (x is None and y is None) if x is None or y is None else equal(x, y)

    if a.kind != b.kind:
        return apply("{0} <> {1}", lambda x, y: not equal(x, y), a, b, kind="b")
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
    """Return a predicate between event times: bounds on one side or on both, with and without offsets."""
    span = datetime.timedelta(microseconds=span_us)
    shown = f"INTERVAL {span_us} MICROSECONDS"
    text, function = rng.choice(
        (
            ("{0} <= {1}", lambda x, y: x <= y),
            ("{0} < {1}", lambda x, y: x < y),
            (f"{{0}} BETWEEN {{1}} - {shown} AND {{1}}", lambda x, y: y - span <= x <= y),
            (f"{{0}} >= {{1}} - {shown} AND {{0}} <= {{1}} + {shown}", lambda x, y: y - span <= x <= y + span),
            (f"{{0}} + {shown} > {{1}}", lambda x, y: x + span > y),
            (f"{{0}} BETWEEN {{1}} AND {{1}} + {shown}", lambda x, y: y <= x <= y + span),
        )
    )
    return apply(text, function, a, b, kind="b")
