"""What options accept, by Spark's own reader."""

from __future__ import annotations

from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from plait import Engine
from plait.errors import OptionError, SourceError
from plait.sql.expressions.time_patterns import PATTERNS, wrong_patterns
from plait.sql.lexis.tokens import tokens_of
from tests.unit.test_option_values import BAD, GOOD

pytestmark = pytest.mark.spark


def test_spark_takes_the_values_that_pass_and_fails_on_those_that_do_not(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("1,2026-01-01 10:00:00\n")

    def is_read(name: str, value: str) -> bool:
        reader = spark.read.schema("id INT, t TIMESTAMP").options(mode="PERMISSIVE").option(name, value)
        try:
            reader.csv(str(tmp_path)).collect()
        except (PySparkException, Py4JJavaError):
            return False
        return True

    assert [(name, value) for name, values in GOOD.items() for value in values if not is_read(name, value)] == []
    assert [(name, value) for name, values in BAD.items() for value in values if is_read(name, value)] == []


def test_spark_fails_on_the_patterns_of_calls_that_are_refused_and_on_no_others(spark: SparkSession) -> None:
    patterns = [
        "yyyy-MM-dd",
        "YYYY",
        "yyyy-MM-ddTHH",
        "E d",
        "Q",
        "q",
        "%Y",
        "nn",
        "aa",
        "DDDD",
        "yyyyyyy",
        "XXX",
        "[yyyy]",
        "yyyy]",
        "{",
    ]
    arguments = {"date_format": "timestamp_seconds(n)", "from_unixtime": "n"}

    def is_run(call: str) -> bool:
        try:
            spark.sql(f"SELECT {call} FROM (SELECT '2026-01-01' AS s, id AS n FROM range(1))").collect()
        except (PySparkException, Py4JJavaError) as error:
            return any(sign in str(error) for sign in ("CANNOT_PARSE_TIMESTAMP", "CAST_INVALID_INPUT"))
        return True

    calls = [f"{name}({arguments.get(name, 's')}, '{pattern}')" for name in PATTERNS for pattern in patterns]
    assert [call for call in calls if is_run(call) == bool(list(wrong_patterns(tokens_of(call))))] == []


def test_a_program_is_told_the_same(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"ID": 1, "ts": "2026-01-01T10:00:00Z"}\n')
    engine = Engine(spark, checkpoint=str(tmp_path / "checkpoint"))

    def told(kind: type[Exception], format: str, schema: str | None, **options: object) -> str:
        with pytest.raises(kind) as caught:
            engine.stream("s", format=format, schema=schema, options=options, time="ts")
        return str(caught.value)

    path = str(tmp_path / "in")
    assert "expected UTF-8" in told(OptionError, "json", "id INT, ts TIMESTAMP", path=path, encoding="utf8")
    assert "a whole number above zero" in told(OptionError, "csv", "ts DATE", path=path, maxFilesPerTrigger=0)
    assert "needs the option host" in told(OptionError, "socket", None, port=9)
    assert "has one column" in told(OptionError, "text", "a INT", path=path)
    assert "declare the column as ID" in told(SourceError, "json", "id INT, ts TIMESTAMP", path=path)


def test_a_setting_that_spark_does_not_take_is_told_why(spark: SparkSession, tmp_path: Path) -> None:
    engine = Engine(spark, checkpoint=str(tmp_path))
    with pytest.raises(OptionError, match="cannot be set so: The value '-1' in the config"):
        engine.set_option("spark.sql.shuffle.partitions", -1)
    with pytest.raises(OptionError, match="cannot be set while Spark runs"):
        engine.set_option("spark.executor.memory", "2g")
