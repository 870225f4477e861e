"""What the batches of a run come to."""

from __future__ import annotations

from plait.runtime.batch.events import BatchEvent
from plait.runtime.batch.totals import MOST_GONE, Totals
from plait.runtime.losses.counts import EdgeFlow, RelationCounts
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


def event(batch: int, *queries: str, edges: tuple[str, ...] = ()) -> BatchEvent:
    return BatchEvent(
        batch=batch,
        rows_in=1,
        late=0,
        bad=0,
        results=tuple((query, 2) for query in queries),
        epoch=batch,
        probe_tuples=0,
        stored_tuples=0,
        stored_bytes=0,
        seconds=1.0,
        relations=tuple(RelationCounts(query=query, alias="r", source="r", rows=3, outside=1) for query in queries),
        flows=tuple(EdgeFlow(edge=edge, sent=1, matched=0) for edge in edges),
    )


def test_of_queries_and_edges_that_are_gone_no_more_is_known_than_of_the_last_thousand() -> None:
    totals, many = Totals(), 3 * MOST_GONE
    for batch in range(many):
        totals.add(event(batch, "stays", f"q{batch}", edges=("r>s", f"e{batch}")))
        totals.warn([Notice(kind="query to be filled", of=f"q{batch}", text="")])
        assert [notice.of for notice in totals.untold()] == [f"q{batch}"]
    assert totals.queries["stays"] == 2 * many
    assert set(totals.queries) == {"stays", *(f"q{batch}" for batch in range(many - MOST_GONE - 1, many))}
    assert set(totals.relations) == {("stays", "r"), (f"q{many - 1}", "r")}
    assert totals.relations["stays", "r"].rows == 3 * many
    assert totals.flows["r>s"].sent == many
    assert len(totals.flows) < 2 * MOST_GONE
    assert [notice.of for notice in totals.warnings] == [f"q{batch}" for batch in range(many - MOST_GONE, many)]
