"""`common_type` against Spark's analyzer, for every pair of types."""

import re
from itertools import combinations_with_replacement

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from plait.query.types import common_type, is_key_type

pytestmark = pytest.mark.spark

TYPES = (
    *("tinyint", "smallint", "int", "bigint", "float", "double", "string", "boolean", "binary"),
    *("date", "timestamp", "timestamp_ntz"),
    *(
        "decimal(1,0)",
        "decimal(3,0)",
        "decimal(5,5)",
        "decimal(10,2)",
        "decimal(18,0)",
        "decimal(19,0)",
        "decimal(20,0)",
    ),
    *("decimal(38,0)", "decimal(38,18)", "decimal(38,38)", "decimal(30,20)"),
    *("interval day", "interval day to second", "interval hour to minute", "interval second"),
    *("interval year", "interval year to month", "interval month"),
)
"""Types that can be keys."""

NO_KEYS = ("array<int>", "struct<a:int>", "map<int,int>", "variant", "interval", "time(6)")


def type_compared_in(frame: DataFrame, left: str, right: str) -> str | None:
    """Return the type of the operands of ``left = right`` in Spark's analyzed plan, None if Spark refuses it."""
    columns = [f"c{TYPES.index(type_)}" for type_ in (left, right)]
    try:
        plan = frame.selectExpr(" = ".join(columns) + " AS same")._jdf.queryExecution().analyzed().toString()
    except AnalysisException:
        return None
    sides = re.search(r"\((.*) = (.*)\) AS same", plan.splitlines()[0])
    assert sides is not None, plan
    types = [re.search(r".* as ([\w(), ]+)\)$", side) for side in sides.groups()]
    compared = {match[1] if match else type_ for match, type_ in zip(types, (left, right), strict=True)}
    assert len(compared) == 1, plan
    return compared.pop()


def test_keys_of_all_types_are_compared_as_spark_compares_them(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], ", ".join(f"c{index} {type_}" for index, type_ in enumerate(TYPES)))
    for left, right in combinations_with_replacement(TYPES, 2):
        expected = type_compared_in(frame, left, right)
        assert (left, right, common_type(left, right)) == (left, right, expected)
        assert (right, left, common_type(right, left)) == (right, left, expected)


def test_types_without_a_key_are_never_comparable() -> None:
    assert not any(is_key_type(type_) for type_ in NO_KEYS)
    assert {common_type(type_, other) for type_ in NO_KEYS for other in (*TYPES, *NO_KEYS)} == {None}
