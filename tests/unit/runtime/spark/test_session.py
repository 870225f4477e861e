"""What of a session's settings decides whether Plait may compute expressions without Spark."""

from __future__ import annotations

import pytest

from plait.runtime.spark.session import is_ansi
from tests.property.standin.session import Session


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("spark.sql.ansi.enabled", "true", True),
        ("spark.sql.ansi.enabled", "FALSE", False),
        ("spark.sql.parser.escapedStringLiterals", "false", True),
        ("spark.sql.parser.escapedStringLiterals", "true", False),
        ("spark.sql.shuffle.partitions", "4", True),
    ],
)
def test_expressions_are_computed_here_only_where_they_mean_to_spark_what_they_do_by_default(
    name: str, value: str, expected: bool
) -> None:
    session = Session()
    session.conf.set(name, value)
    assert is_ansi(session) == expected  # type: ignore[arg-type]
