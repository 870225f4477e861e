"""Columns of results as integers."""

from __future__ import annotations

import hashlib

import duckdb
import pytest

from benchmarks.systems.integers import duckdb_integers, spark_integers
from benchmarks.workloads.joins import OutputOf
from plait.errors import OptionError

TYPES = ("bigint", "int", "timestamp", "date", "string", "decimal(15,2)")
OUTPUTS = [OutputOf(relation="q", column=f"c{number}", type=kind) for number, kind in enumerate(TYPES)]


ROW = (
    "SELECT 7::BIGINT AS q_c0, 8::INT AS q_c1, TIMESTAMPTZ '1970-01-01 00:00:01+00' AS q_c2, "
    "DATE '1970-02-01' AS q_c3, 'text' AS q_c4, (-1.25)::DECIMAL(15,2) AS q_c5"
)


def integers(row: str) -> tuple[int, ...]:
    (found,) = duckdb.execute(f"SELECT {', '.join(duckdb_integers(OUTPUTS))} FROM ({row})").fetchall()
    return tuple(found)


def test_every_type_has_its_integer():
    text = int(hashlib.md5(b"text").hexdigest()[:12], 16)
    assert integers(ROW) == (7, 8, 1_000_000, 31, text, 9_999_999_875)


def test_other_text_of_the_same_length_has_another():
    assert integers(ROW)[4] != integers(ROW.replace("'text'", "'next'"))[4]


@pytest.mark.parametrize("place", range(len(TYPES)))
def test_a_row_with_null_still_counts_by_its_other_columns(place: int):
    null = ", ".join(f"CASE WHEN {place} = {each} THEN NULL ELSE q_c{each} END AS q_c{each}" for each in range(6))
    found = integers(f"SELECT {null} FROM ({ROW})")
    whole = integers(ROW)
    assert found[place] not in (None, whole[place])
    assert found[:place] + found[place + 1 :] == whole[:place] + whole[place + 1 :]


def test_spark_has_its_own_words():
    assert spark_integers(OUTPUTS)[2:5] == (
        "coalesce(unix_micros(q_c2), 1234567891)",
        "coalesce(unix_date(q_c3), 1234567891)",
        "coalesce(CAST(conv(substr(md5(q_c4), 1, 12), 16, 10) AS BIGINT), 1234567891)",
    )


def test_other_types_are_refused():
    with pytest.raises(OptionError, match="column 'q_c' is double"):
        spark_integers([OutputOf(relation="q", column="c", type="double")])
