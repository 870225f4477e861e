"""Kinds of columns: their Spark and Arrow types, and small overlapping value domains full of corner cases.

Every kind maps a small non-negative integer to a value, so columns of different kinds meet in many of their values
(the integer 2, the decimal 2.00, the double 2.0) and joins hit.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

_EPOCH = datetime.datetime(1970, 1, 1)
_DAY = datetime.date(2024, 2, 27)
_MIDNIGHT = datetime.datetime(2024, 2, 27)
_STRINGS = (
    *("", "a", "A", "%", "ab", "a_", "b", "B ", "AB", "é", "back\\slash", "It's", "%x_", "🎈"),
    *("1", "2", "-1", "NaN"),
)
_LONGS = (-(2**63), 2**63 - 1, 0, -1, 1, 2**31, -(2**31) - 1, 2**53, 2**53 + 1)
_INTS = (-(2**31), 2**31 - 1, 0, -1, 1, 2**16)
_INFINITE = float("inf")
_DOUBLES = (float("nan"), -0.0, 0.0, _INFINITE, -_INFINITE, 1e308, 9007199254740993.0)
_FLOATS = (float("nan"), -0.0, -_INFINITE, _INFINITE)
_DATES = (datetime.date(9999, 12, 31), datetime.date(1, 1, 1), datetime.date(1970, 1, 1), datetime.date(1969, 12, 31))
_INSTANTS = (
    datetime.datetime(1, 1, 1),
    datetime.datetime(9999, 12, 31, 23, 59, 59, 999999),
    datetime.datetime(1970, 1, 1),
    datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime.datetime(9999, 12, 31),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A column type with values. `group`: kinds of one group may be compared, those of None only within their fields.
    `small`: arithmetic cannot overflow.
    """

    name: str
    spark: str
    arrow: pa.DataType
    group: str | None
    small: bool
    value: Callable[[int], Any]

    @property
    def is_kept(self) -> bool:
        """Whether rows can have such a column in their results; Spark hands intervals of months to nobody."""
        return self.name not in CALENDAR


def may_meet(one: str, other: str) -> bool:
    """Tell whether an equality may compare columns of two kinds, given by name."""
    return BY_NAME[one].group is not None and BY_NAME[one].group == BY_NAME[other].group


def _or_extreme(extremes: tuple[Any, ...], ordinary: Callable[[int], Any]) -> Callable[[int], Any]:
    return lambda index: extremes[index] if index < len(extremes) else ordinary(index - len(extremes))


def _number_text(index: int) -> str:
    return f"  {index - 2} " if index % 5 == 4 else str(index - 2)


KINDS: tuple[Kind, ...] = (
    Kind(name="i", spark="INT", arrow=pa.int32(), group="number", small=True, value=lambda n: n - 2),
    Kind(name="l", spark="BIGINT", arrow=pa.int64(), group="number", small=True, value=lambda n: n - 2),
    Kind(name="y", spark="INT", arrow=pa.int32(), group="number", small=False, value=_or_extreme(_INTS, lambda n: n)),
    Kind(
        name="x", spark="BIGINT", arrow=pa.int64(), group="number", small=False, value=_or_extreme(_LONGS, lambda n: n)
    ),
    Kind(
        name="d",
        spark="DECIMAL(10,2)",
        arrow=pa.decimal128(10, 2),
        group="number",
        small=True,
        value=lambda n: (Decimal(n - 2) / (1 if n % 3 else 4)).quantize(Decimal("0.01")),
    ),
    Kind(
        name="e",
        spark="DECIMAL(22,4)",
        arrow=pa.decimal128(22, 4),
        group="number",
        small=True,
        value=lambda n: (Decimal(n - 2) / (1 if n % 4 else 8) + (0 if n % 7 else 10**15)).quantize(Decimal("0.0001")),
    ),
    Kind(
        name="f",
        spark="DOUBLE",
        arrow=pa.float64(),
        group="number",
        small=True,
        value=_or_extreme(_DOUBLES, lambda n: n / (1 if n % 3 else 2)),
    ),
    Kind(
        name="r",
        spark="FLOAT",
        arrow=pa.float32(),
        group="number",
        small=True,
        value=_or_extreme(_FLOATS, lambda n: n / (1 if n % 3 else 2)),
    ),
    Kind(
        name="j",
        spark="DECIMAL(12,3)",
        arrow=pa.decimal128(12, 3),
        group="number",
        small=True,
        value=lambda n: (Decimal(n - 2) / (1 if n % 3 else 8)).quantize(Decimal("0.001")),
    ),
    Kind(name="g", spark="TINYINT", arrow=pa.int8(), group="number", small=True, value=lambda n: n - 2),
    Kind(name="t", spark="SMALLINT", arrow=pa.int16(), group="number", small=True, value=lambda n: n - 2),
    Kind(
        name="v",
        spark="BINARY",
        arrow=pa.binary(),
        group="binary",
        small=True,
        value=_or_extreme((b"", b"\x00", b"\x00\x00", b"a", b"\xff"), lambda n: bytes([n % 256])),
    ),
    Kind(name="s", spark="STRING", arrow=pa.string(), group="string", small=True, value=_or_extreme(_STRINGS, str)),
    Kind(
        name="a",
        spark="DATE",
        arrow=pa.date32(),
        group="time",
        small=True,
        value=lambda n: _DAY + datetime.timedelta(days=n),
    ),
    Kind(
        name="m",
        spark="TIMESTAMP",
        arrow=pa.timestamp("us"),
        group="time",
        small=True,
        value=lambda n: _MIDNIGHT + datetime.timedelta(days=n // 2, hours=0 if n % 2 else 12),
    ),
    Kind(
        name="w",
        spark="DATE",
        arrow=pa.date32(),
        group="time",
        small=False,
        value=_or_extreme(_DATES, lambda n: _DAY + datetime.timedelta(days=n)),
    ),
    Kind(
        name="z",
        spark="TIMESTAMP",
        arrow=pa.timestamp("us"),
        group="time",
        small=False,
        value=_or_extreme(_INSTANTS, lambda n: _MIDNIGHT + datetime.timedelta(hours=12 * n)),
    ),
    Kind(
        name="n",
        spark="TIMESTAMP_NTZ",
        arrow=pa.timestamp("us"),
        group="time",
        small=True,
        value=lambda n: _MIDNIGHT + datetime.timedelta(days=n // 2, hours=0 if n % 2 else 12),
    ),
    Kind(
        name="q",
        spark="TIMESTAMP_NTZ",
        arrow=pa.timestamp("us"),
        group="time",
        small=False,
        value=_or_extreme(_INSTANTS, lambda n: _MIDNIGHT + datetime.timedelta(hours=12 * n)),
    ),
    Kind(name="b", spark="BOOLEAN", arrow=pa.bool_(), group="boolean", small=True, value=lambda n: n % 2 == 1),
    Kind(
        name="big",
        spark="DECIMAL(38,18)",
        arrow=pa.decimal128(38, 18),
        group="number",
        small=False,
        value=lambda n: (Decimal(n - 2) / (1 if n % 3 else 8)).quantize(Decimal("1e-18")),
    ),
    Kind(
        name="point",
        spark="DECIMAL(5,4)",
        arrow=pa.decimal128(5, 4),
        group="number",
        small=False,
        value=lambda n: (Decimal(n % 17 - 2) / (2 if n % 3 else 8)).quantize(Decimal("0.0001")),
    ),
    Kind(name="ntext", spark="STRING", arrow=pa.string(), group="number", small=True, value=_number_text),
    Kind(
        name="dtext",
        spark="STRING",
        arrow=pa.string(),
        group="time",
        small=True,
        value=lambda n: (_DAY + datetime.timedelta(days=n)).isoformat(),
    ),
    Kind(
        name="btext",
        spark="STRING",
        arrow=pa.string(),
        group="boolean",
        small=True,
        value=lambda n: ("false", "true", "FALSE", "True")[n % 4],
    ),
    Kind(
        name="xtext",
        spark="STRING",
        arrow=pa.string(),
        group="binary",
        small=True,
        value=lambda n: ("", "a", "b", "0")[n % 4],
    ),
    Kind(
        name="span",
        spark="INTERVAL DAY TO SECOND",
        arrow=pa.int64(),
        group="span",
        small=True,
        value=_or_extreme((-1, 0, 1, 86_400_000_000, -(10**17)), lambda n: n * 1_800_000_000),
    ),
    Kind(
        name="hours",
        spark="INTERVAL HOUR",
        arrow=pa.int64(),
        group="span",
        small=True,
        value=lambda n: (n - 2) * 3_600_000_000,
    ),
    Kind(
        name="age",
        spark="INTERVAL YEAR TO MONTH",
        arrow=pa.int32(),
        group="age",
        small=True,
        value=lambda n: (n - 2) * 4,
    ),
    Kind(name="months", spark="INTERVAL MONTH", arrow=pa.int32(), group="age", small=True, value=lambda n: n - 2),
    Kind(
        name="list",
        spark="ARRAY<INT>",
        arrow=pa.list_(pa.int32()),
        group=None,
        small=True,
        value=lambda n: [None if at == 1 else n for at in range(n % 4)],
    ),
    Kind(
        name="record",
        spark="STRUCT<f: INT, s: STRING>",
        arrow=pa.struct([("f", pa.int32()), ("s", pa.string())]),
        group=None,
        small=True,
        value=lambda n: {"f": None if n == 3 else n - 2, "s": _or_extreme(_STRINGS, str)(n)},
    ),
    Kind(
        name="map",
        spark="MAP<STRING, INT>",
        arrow=pa.map_(pa.string(), pa.int32()),
        group=None,
        small=True,
        value=lambda n: [("a", n), ("b", None)][: n % 3],
    ),
)
"""Intervals are numbers here, of microseconds or of months, as they are in Parquet files."""

CALENDAR = frozenset({"age", "months"})
SPANS = frozenset({"span", "hours"})
TEXTS_OF_OTHERS = frozenset({"ntext", "dtext", "btext", "xtext"})
"""Texts that can be read as numbers, dates, truth values or bytes, and are where they are compared with these."""

NESTED = frozenset(kind.name for kind in KINDS if kind.group is None)

BY_NAME = {kind.name: kind for kind in KINDS}


def time_value(kind: Kind, tau_us: int) -> datetime.date:
    """Return τ as a value of a time column."""
    moment = _EPOCH + datetime.timedelta(microseconds=tau_us)
    return moment.date() if kind.spark == "DATE" else moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """How the values of a column are drawn: `size` equally likely values, one `hot` one, some NULLs."""

    size: int
    null_share: float
    hot_share: float

    def draw(self, kind: Kind, rng: random.Random) -> Any:
        """Return one value of this kind, None for NULL."""
        if rng.random() < self.null_share:
            return None
        return kind.value(0 if rng.random() < self.hot_share else rng.randrange(self.size))
