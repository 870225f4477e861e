"""Columns of results as integers."""

from __future__ import annotations

import duckdb
import pytest

from plait.bench.integers import duckdb_integers, spark_integers
from plait.errors import OptionError
from plait.workloads.joins import OutputOf

TYPES = ("bigint", "int", "timestamp", "date", "string", "decimal(15,2)")
OUTPUTS = [OutputOf(relation="q", column=f"c{number}", type=kind) for number, kind in enumerate(TYPES)]


def test_every_type_has_its_integer():
    row = (
        "SELECT 7::BIGINT AS q_c0, 8::INT AS q_c1, TIMESTAMPTZ '1970-01-01 00:00:01+00' AS q_c2, "
        "DATE '1970-02-01' AS q_c3, 'text' AS q_c4, (-1.25)::DECIMAL(15,2) AS q_c5"
    )
    found = duckdb.execute(f"SELECT {', '.join(duckdb_integers(OUTPUTS))} FROM ({row})").fetchall()
    assert found == [(7, 8, 1_000_000, 31, 4, 9_999_999_875)]


def test_spark_has_its_own_words_for_times():
    assert spark_integers(OUTPUTS) == (
        "q_c0",
        "q_c1",
        "unix_micros(q_c2)",
        "unix_date(q_c3)",
        "length(q_c4)",
        "CAST(q_c5 * 100 AS BIGINT) + 10000000000",
    )


def test_other_types_are_refused():
    with pytest.raises(OptionError, match="column 'q_c' is double"):
        spark_integers([OutputOf(relation="q", column="c", type="double")])
