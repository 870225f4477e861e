"""Predicates that cases register: each over Arrow arrays, as DuckDB text and as Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tests.property.expressions import Expression, apply


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A predicate of two values. `takes`: "number" (small and whole), "fraction", "string" or "any" (of one type).

    `duckdb` calls its arguments a and b. `strict`: NULL if one of them is.
    """

    name: str
    takes: str
    arrow: Callable[[pa.Array, pa.Array], pa.Array]
    duckdb: str
    python: Callable[[Any, Any], bool | None]
    strict: bool = True

    def called(self, a: Expression, b: Expression) -> Expression:
        """Return the call."""
        return apply(f"{self.name}({{0}}, {{1}})", self.python, a, b, kind="b", strict=self.strict)


def _apart(left: pa.Array, right: pa.Array) -> pa.Array:
    return pc.subtract(left.cast(pa.int64()), right.cast(pa.int64()))


def _near(left: pa.Array, right: pa.Array) -> pa.Array:
    return pc.less_equal(pc.abs(_apart(left, right)), 1)


def _clearly_more(left: pa.Array, right: pa.Array) -> pa.Array:
    apart = _apart(left, right)
    unclear = pc.less_equal(pc.abs(apart), 1)
    return pc.if_else(unclear, pa.scalar(None, pa.bool_()), pc.greater(apart, 0))


def _same_initial(left: pa.Array, right: pa.Array) -> pa.Array:
    return pc.equal(*(pc.utf8_slice_codeunits(side, 0, 1) for side in (left, right)))


def _well_above(left: pa.Array, right: pa.Array) -> pa.Array:
    return pc.greater(pc.subtract(left, right), 1.5)


def _missing_alike(left: pa.Array, right: pa.Array) -> pa.Array:
    return pc.equal(pc.is_null(left), pc.is_null(right))


REGISTERED: tuple[Registered, ...] = (
    Registered(
        name="near",
        takes="number",
        arrow=_near,
        duckdb="abs(a::BIGINT - b::BIGINT) <= 1",
        python=lambda x, y: abs(x - y) <= 1,
    ),
    Registered(
        name="clearly_more",
        takes="number",
        arrow=_clearly_more,
        duckdb="CASE WHEN abs(a::BIGINT - b::BIGINT) > 1 THEN a > b END",
        python=lambda x, y: x > y if abs(x - y) > 1 else None,
    ),
    Registered(
        name="same_initial",
        takes="string",
        arrow=_same_initial,
        duckdb="a[1] = b[1]",
        python=lambda x, y: x[:1] == y[:1],
    ),
    Registered(
        name="well_above",
        takes="fraction",
        arrow=_well_above,
        duckdb="a - b > 1.5 AND NOT isnan(a - b)",
        python=lambda x, y: x - y > 1.5,
    ),
    Registered(
        name="missing_alike",
        takes="any",
        arrow=_missing_alike,
        duckdb="(a IS NULL) = (b IS NULL)",
        python=lambda x, y: (x is None) == (y is None),
        strict=False,
    ),
)

PREDICATES: Mapping[str, Callable[..., pa.Array]] = MappingProxyType({each.name: each.arrow for each in REGISTERED})
