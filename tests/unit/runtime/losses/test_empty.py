"""Why a query has no result: the first cause that the counters make certain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from plait.optimizer.examples import example_options, example_query, example_statistics
from plait.optimizer.planner import plan as make_plan
from plait.plan.model import Plan
from plait.plan.traversals import endings
from plait.query.model import Aggregation, Query, SourceExpression
from plait.query.time_windows import TimeWindow
from plait.runtime.losses.counts import EdgeFlow
from plait.runtime.losses.empty import Evidence, hints_for
from plait.sql import load_script
from plait.state.model import NullKey, SourceProgress

A, B = "#k bigint `a`", "#k bigint `b`"
SECOND = 1_000_000
QUERY = example_query("q", "r.a = s.a", "s.b = t.b")
OPTIONS = example_options("greedy")


def planned(*queries: Query) -> Plan:
    return make_plan(queries, example_statistics(OPTIONS), OPTIONS)


def seen(source: str, **changes: Any) -> SourceProgress:
    values = {"rows": 10, "tau_min": 0, "tau_max": SECOND, "kept": (("true", 10),), **changes}
    return SourceProgress(source=source, **values)


def hint(*progress: SourceProgress, query: Query = QUERY, flows: dict[str, tuple[int, int]] | None = None) -> str:
    known = {each.source: each for each in (seen("r"), seen("s"), seen("t"), *progress)}
    counted = {edge: EdgeFlow(edge=edge, sent=sent, matched=hits) for edge, (sent, hits) in (flows or {}).items()}
    evidence = Evidence(plan=planned(query), progress=known, flows=counted)
    return dict(hints_for([query], {}, frozenset("rst"), evidence)).get("q", "")


def path_from(source: str) -> list[str]:
    """Return the edges of the probe order that starts with a source."""
    plan = planned(QUERY)
    return next([step.edge for step in steps] for start, steps, _ in endings(plan) if start.store == source)


def test_a_query_with_results_or_without_input_needs_no_hint() -> None:
    evidence = Evidence(plan=planned(QUERY), progress={}, flows={})
    assert hints_for([QUERY], {"q": 1}, frozenset("rst"), evidence) == ()
    assert hints_for([QUERY], {}, frozenset("u"), evidence) == ()


def test_a_stream_on_which_nothing_came_is_named() -> None:
    assert hint(seen("s", rows=0)) == "no result: nothing has arrived on stream s yet"


def test_a_stream_whose_rows_are_all_bad_or_late_is_named() -> None:
    said = hint(seen("s", rows=10, bad=7, late=3))
    assert said == "no result: all rows of stream s are lost: 7 bad, 3 late"


def test_a_selection_that_nothing_satisfies_is_shown_with_the_rows_it_was_asked_of() -> None:
    chosen = replace(QUERY.relations[0], selections=(SourceExpression(sql="`v` > 5", columns=("v",)),))
    query = replace(QUERY, relations=(chosen, *QUERY.relations[1:]))
    said = hint(seen("r", late=1, kept=(("(`v` > 5)", 0),)), query=query)
    assert said == "no result: none of the 9 rows of r in time satisfies (v > 5)"


def test_a_key_that_is_null_in_every_row_is_named() -> None:
    said = hint(seen("s", null_keys_by=(NullKey(key="`b`", rows=10),)))
    assert said == "no result: s.b is NULL in all 10 rows of s, and equals nothing"
    assert "NULL" not in hint(seen("s", null_keys_by=(NullKey(key="`b`", rows=9),)))


def test_a_key_that_is_null_where_another_query_wants_it_is_not_blamed() -> None:
    chosen = replace(QUERY.relations[1], selections=(SourceExpression(sql="`v` > 5", columns=("v",)),))
    other = replace(QUERY, name="other", relations=(QUERY.relations[0], chosen, QUERY.relations[2]))
    kept = (("(`v` > 5)", 4), ("true", 10))
    progress = {each.source: each for each in (seen("r"), seen("t"))}
    progress["s"] = seen("s", kept=kept, null_keys_by=(NullKey(key="`b`", rows=6),))
    evidence = Evidence(plan=planned(QUERY, other), progress=progress, flows={})
    assert hints_for([QUERY, other], {}, frozenset("rst"), evidence) == ()


def test_the_step_that_came_furthest_without_finding_a_partner_is_shown() -> None:
    first, second = path_from("r")
    flows = {path_from("s")[0]: (500, 0), first: (20, 7), second: (7, 0)}
    said = hint(flows=flows)
    assert said == "no result: 7 tuples looked for partners in t with s.b = t.b and found none"


def test_keys_without_a_common_value_are_told_as_far_as_all_of_them_are_known() -> None:
    flows = {path_from("r")[0]: (20, 0)}
    left, right = seen("r", sketch=((A, (1, 2)),)), seen("s", sketch=((A, (3, 4)),))
    assert hint(left, right, flows=flows).endswith("; the keys have no value in common")
    many = seen("s", sketch=((A, tuple(range(3, 259))),))
    assert hint(left, many, flows=flows).endswith("; the keys have no value in common among those sampled")
    assert "common" not in hint(left, seen("s", sketch=((A, (2, 3)),)), flows=flows)


def test_event_times_further_apart_than_the_window_are_told() -> None:
    flows = {path_from("r")[0]: (20, 0)}
    later = seen("s", tau_min=1_700_000_000 * SECOND, tau_max=1_700_000_100 * SECOND)
    said = hint(later, flows=flows)
    assert said.endswith(
        "event times of r end at 1970-01-01 00:00:01, those of s begin at 2023-11-14 22:13:20: "
        "further apart than the window of 1 s"
    )
    assert "apart" not in hint(seen("s", tau_min=2 * SECOND, tau_max=9 * SECOND), flows=flows)


def test_a_query_that_groups_and_found_partners_waits_for_its_windows() -> None:
    window = TimeWindow(relation="r", column="ts", size_us=1, slide_us=1, start_us=0, lag_us=0)
    groups = Aggregation(window=window, sql="SELECT count(*) FROM {rows} GROUP BY `window`", names=("n",), functions=())
    told = hint(query=replace(QUERY, aggregation=groups))
    assert told.startswith("no result yet: no window of its event time is over")
    assert "--available-now --close" in told
    missed = hint(query=replace(QUERY, aggregation=groups), flows={path_from("r")[0]: (5, 0)})
    assert missed.startswith("no result: 5 tuples")


OUTER = """
    CREATE STREAM r (a BIGINT, ts TIMESTAMP) USING mine TIMESTAMP BY ts WINDOW INTERVAL 10 SECONDS;
    CREATE STREAM s (a BIGINT, ts TIMESTAMP) USING mine TIMESTAMP BY ts WINDOW INTERVAL 10 SECONDS;
    CREATE QUERY q INTO noop AS SELECT r.a FROM r LEFT JOIN s ON r.a = s.a;
"""


def test_a_query_whose_rows_come_without_a_partner_waits_for_the_watermark() -> None:
    (query,) = load_script(OUTER).queries
    evidence = Evidence(
        plan=planned(QUERY),
        progress={"r": seen("r", null_keys_by=(NullKey(key="`a`", rows=10),)), "s": seen("s", bad=10)},
        flows={},
    )
    ((_, said),) = hints_for([query], {}, frozenset("r"), evidence)
    assert said.startswith("no result yet: a row without a partner comes once the watermark")
    silent = replace(evidence, progress={"r": seen("r"), "s": seen("s", rows=0)})
    assert hints_for([query], {}, frozenset("r"), silent) == (("q", "no result: nothing has arrived on stream s yet"),)
