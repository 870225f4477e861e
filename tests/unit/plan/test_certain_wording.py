"""What EXPLAIN says of rows that no arrival completes."""

from __future__ import annotations

from plait.plan.explain.certain_wording import joins_notes
from tests.unit.sql.select.test_outer_joins import bound


def test_a_left_join_says_until_when_its_rows_wait() -> None:
    assert joins_notes(bound("SELECT a.k FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN t ON a.k = t.k")) == (
        "Query q: rows of a without a match in b come once the watermark has passed their window "
        "(10 s after their event time at the latest)",
        "Query q: rows of a and b without a match in table t come at once",
    )


def test_the_added_side_waits_for_its_own_window_and_for_what_waits_on_its_left() -> None:
    assert joins_notes(bound("SELECT a.k FROM a LEFT JOIN b ON a.k = b.k RIGHT JOIN c ON a.k = c.k"))[-1] == (
        "Query q: rows of c without a match come 50 s of event time later"
    )


def test_a_semi_join_says_that_the_first_match_counts() -> None:
    notes = joins_notes(bound("SELECT a.k FROM a LEFT SEMI JOIN b ON a.k = b.k"))
    assert notes == ("Query q: rows of a come with their first match in b; later matches add nothing",)


def test_inner_joins_need_no_note() -> None:
    assert joins_notes(bound("SELECT a.k FROM a JOIN b ON a.k = b.k")) == ()
