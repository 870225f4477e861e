"""What the batches of a run come to."""

from __future__ import annotations

from plait.runtime.batch.totals import Totals
from plait.runtime.notice import Notice
from tests.unit.state.builders import described


def test_a_notice_is_told_once_and_one_of_a_start_also_where_its_counts_have_changed() -> None:
    totals = Totals()
    changed = Notice(kind="table changed", of="n", text="table 'n' has changed")
    totals.warn([Notice(kind="rows not needed", of="s", text="5 rows of 's'"), changed, changed])
    assert [notice.of for notice in totals.untold()] == ["s", "n"]
    later = Notice(kind="event times", of="s", text="event times of 's' are in year 57000")
    totals.warn([Notice(kind="rows not needed", of="s", text="7 rows of 's'"), changed, later])
    assert totals.untold() == (later,)
    assert totals.summary((), wall_seconds=0).warnings[0].text == "5 rows of 's'"


def test_a_run_that_finds_nothing_new_tells_what_was_stored_before_it() -> None:
    stored = [described(path=f"{rows}", rows=rows, bytes=100 * rows) for rows in (3, 4)]
    totals = Totals()
    totals.begin_with(stored)
    summary = totals.summary(("q",), wall_seconds=0)
    assert (summary.batches, summary.stored_tuples, summary.stored_bytes) == (0, 7, 700)
