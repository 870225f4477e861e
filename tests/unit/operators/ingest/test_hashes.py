"""Hashes of values as Arrow holds them; `tests/spark/test_hashes_spark.py` compares them with Spark's own."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from plait.operators.ingest.hashes import HASHED, spark_hash
from tests.oracle import spark_hashes

NOON = datetime.datetime(1969, 12, 31, 12, 0, 0, 1)
NOON_US = -43_199_999_999


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array(["", "a", None, "é" * 40]), [spark_hashes.of_text(text) for text in ("", "a", "é" * 40)]),
        (pa.array(["b", None], pa.large_string()), [spark_hashes.of_text("b")]),
        (pa.array([b"\x00", None], pa.binary()), [spark_hashes.of_bytes(b"\x00")]),
        (pa.array([True, None, False]), [spark_hashes.of_narrow(1), spark_hashes.of_narrow(0)]),
        (pa.array([-0.0, None, 1.5], pa.float32()), [spark_hashes.of_float(0.0), spark_hashes.of_float(1.5)]),
        (pa.array([-0.0, None, float("nan")]), [spark_hashes.of_double(0.0), spark_hashes.of_double(float("nan"))]),
        (pa.array([NOON, None], pa.timestamp("us")), [spark_hashes.of_long(NOON_US)]),
        (pa.array([Decimal("-1.25"), None], pa.decimal128(18, 2)), [spark_hashes.of_long(-125)]),
        (pa.array([Decimal("-1.25"), None], pa.decimal128(19, 2)), [spark_hashes.of_wide(-125)]),
    ],
)
def test_values_have_sparks_hash_and_null_has_none(values: pa.Array, expected: list[int]) -> None:
    found = spark_hash(values)
    assert found.type == pa.int64()
    assert found.drop_null().to_pylist() == expected
    assert found.is_null().equals(values.is_null())
    assert spark_hash(values.slice(1)).equals(found.slice(1))
    assert len(spark_hash(values.slice(0, 0))) == 0


@pytest.mark.parametrize("type_", ["interval day to second", "bigint", "array<int>", "string collate utf8_lcase"])
def test_types_without_a_known_hash_are_not_in_the_list(type_: str) -> None:
    assert HASHED.fullmatch(type_) is None


def test_values_of_other_types_are_refused() -> None:
    values: Any = pa.array([[1]])
    with pytest.raises(TypeError, match="list"):
        spark_hash(values)
