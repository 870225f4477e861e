"""Patterns for dates and times in calls, judged without Spark; `tests/spark/test_option_values_spark.py` compares."""

from __future__ import annotations

import pytest

from plait.sql.expressions.time_patterns import wrong_patterns
from plait.sql.lexis.tokens import tokens_of


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("to_timestamp(s, 'YYYY-MM-dd')", "the letter Y means nothing to Spark; use y for the year"),
        ("to_timestamp(s, '%Y-%m-%d')", "% means nothing; Java's letters are wanted"),
        ('to_timestamp(s, "yyyy-MM-ddTHH:mm")', "the letter T means nothing to Spark; write it as 'T'"),
        ("try_to_timestamp(concat(s, ',', t), 'yyyy-MM-dd nn')", "the letter n means nothing"),
        ("coalesce(to_date(s, 'yyyy'), to_date(s, 'E d'))", "the letter E is for writing only"),
        ("to_date(s, 'yyyy Q')", "the letter Q is for writing only"),
        ("UNIX_TIMESTAMP(s, 'yyyyyyy')", "the letter y stands 7 times"),
        ("date_format(ts, 'dd\\'')", "a quote is never closed"),
        ("from_unixtime(n, 'yyyy-{MM}')", "{ is reserved"),
    ],
)
def test_a_pattern_that_spark_fails_on_is_named_with_what_to_write(expression: str, problem: str) -> None:
    ((token, message),) = wrong_patterns(tokens_of(expression))
    assert problem in message
    assert f"no pattern '{token.value}'" in message


@pytest.mark.parametrize(
    "expression",
    [
        "to_timestamp(s, 'dd/MMM/yyyy:HH:mm:ss XXX')",
        "to_timestamp(s, f)",
        "to_timestamp(s)",
        "date_format(ts, 'EEEE Q q')",
        "x.to_date(s, 'E')",
        "to_char(n, '999')",
        "concat('to_date(s, E)', 'E')",
        "to_date(s, concat('Y', 'Y'))",
        "to_date(s, 'E'",
    ],
)
def test_nothing_is_said_of_other_calls_and_of_patterns_that_are_no_literals(expression: str) -> None:
    assert not list(wrong_patterns(tokens_of(expression)))
