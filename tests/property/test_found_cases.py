"""Cases that failed once, made small. Each test says what was wrong."""

from __future__ import annotations

from tests.property.found import case, query, stream, table
from tests.property.running import check


def test_a_stream_that_no_query_reads_is_taken_in_without_complaint() -> None:
    read = stream("r", "k BIGINT", (0, 1, 7))
    unread = stream("s", "k BIGINT", (0, 1, 7))
    assert check(case((read, unread), query("SELECT k FROM r", ("r", "r")))) is None


def test_a_table_of_which_no_column_is_needed_still_multiplies_rows() -> None:
    arrivals = stream("r", "k BIGINT", (0, 1, 7), (1, 2, 8))
    factor = table("f", "n INT", (1,), (2,), (3,))
    for parallelism in (1, 2):
        for selection in ("", " WHERE f.n > 1"):
            crossed = query(f"SELECT r.k FROM r CROSS JOIN f{selection}", ("r", "r"), ("f", "f"))
            assert check(case((arrivals, factor), crossed, parallelism=parallelism)) is None
