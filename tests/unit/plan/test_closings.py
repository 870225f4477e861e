"""What EXPLAIN says of rows and groups that no arrival completes, in words, in JSON and drawn."""

from __future__ import annotations

import json
import re

from plait.optimizer.options import PlanOptions
from plait.optimizer.planner import plan
from plait.plan.explain import EVERYTHING, ExplainFormat, Shown, explain
from plait.plan.explain.closings import closing_of, document, lines
from plait.query.model import Query, SinkSpec
from plait.sql import bind_query
from plait.sql.select.closings import closings_of
from plait.stats.model import Statistics
from tests.golden.test_explain import LINE
from tests.unit.sql.select.test_outer_joins import SOURCES, bound

NAMED = {
    "alone": "SELECT a.k FROM a LEFT JOIN b ON a.k = b.k",
    "none": "SELECT a.k FROM a LEFT ANTI JOIN b ON a.k = b.k",
    "plain": "SELECT a.k FROM a JOIN b ON a.k = b.k",
    "sums": "SELECT window.start, a.k, sum(b.x) FROM a JOIN b ON a.k = b.k "
    "GROUP BY window(a.ts, '10 minutes', '4 minutes'), a.k",
}


def said(select: str) -> list[str]:
    closing = closing_of(bound(select))
    return [] if closing is None else [*lines(closing)]


def explained(format: ExplainFormat, shown: Shown = EVERYTHING) -> str:
    queries = tuple(
        bind_query(name=name, select=select, sink=SinkSpec(format="noop"), sources=SOURCES)
        for name, select in NAMED.items()
    )
    made = plan(queries, Statistics(), PlanOptions(strategy="greedy", sources=tuple(SOURCES.values()), parallelism=2))
    return explain(made, format, closings=closings_of(queries, SOURCES.values()), shown=shown)


def grouped(select: str) -> list[str]:
    (closing,) = closings_of([of(select)], SOURCES.values())
    return [*lines(closing)]


def of(select: str) -> Query:
    return bind_query(name="q", select=select, sink=SinkSpec(format="noop"), sources=SOURCES)


def test_a_left_join_says_until_when_its_rows_wait_and_how_long_what_is_kept_for_that() -> None:
    assert said("SELECT a.k FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN t ON a.k = t.k") == [
        "rows of a without a match in b come once the watermark has passed their window "
        "(10 s after their event time at the latest)",
        "rows of a and b without a match in table t come at once",
        "kept for that: a for 10 s, b for 30 s",
    ]


def test_relations_that_are_joined_wait_for_the_shortest_of_their_windows() -> None:
    first = said("SELECT a.k FROM c JOIN a ON a.k = c.k LEFT JOIN b ON a.k = b.k")[0]
    assert first.endswith("(10 s after their event time at the latest)")


def test_the_added_side_waits_for_its_own_window_and_for_what_waits_on_its_left() -> None:
    assert said("SELECT a.k FROM a LEFT JOIN b ON a.k = b.k RIGHT JOIN c ON a.k = c.k")[-2:] == [
        "rows of c without a match in a and b come once the watermark has passed their event time by 50 s",
        "kept for that: a for 2 min 20 s, b for 2 min 20 s, c for 2 min 20 s",
    ]


def test_a_semi_join_says_that_the_first_match_counts_and_that_probe_orders_answer_nothing() -> None:
    assert said("SELECT a.k FROM a LEFT SEMI JOIN u ON a.k = u.k") == [
        "rows of a come with their first match in u; later matches add nothing",
        "kept for that: a for 10 s, u for ever",
        "looked up in what is kept; the probe orders of this query are not taken, unless others share them",
    ]


def test_inner_joins_need_no_word() -> None:
    assert said("SELECT a.k FROM a JOIN b ON a.k = b.k") == []


def test_groups_say_what_is_kept_of_which_panes_and_when_their_windows_are_over() -> None:
    assert grouped("SELECT a.k, sum(a.x) FROM a GROUP BY window(a.ts, '10 minutes', '4 minutes'), a.k") == [
        "groups by windows of 10 min every 4 min of a.ts, with sum",
        "partial aggregates are kept for every 2 min of event time and group until their windows are over",
        "a window is over, and its groups come, once the watermark has come to its end",
    ]
    assert grouped("SELECT stddev(b.x) FROM a LEFT JOIN b ON a.k = b.k GROUP BY window(a.ts, '1 hour')")[-3:] == [
        "groups by windows of 1 h of a.ts, with stddev",
        "not all of that can be put together from parts, so the joined rows are kept until their windows are over",
        "a window is over, and its groups come, once the watermark has come 10 s beyond its end",
    ]


def test_sessions_say_how_they_end_and_that_the_watermark_has_to_pass_that() -> None:
    assert grouped("SELECT a.k, sum(a.x) FROM a GROUP BY session_window(a.ts, '10 minutes'), a.k") == [
        "groups by sessions that end 10 min after their last row, of a.ts, with sum",
        "partial aggregates are kept for every session and group until their sessions are over",
        "a session is over, and its groups come, once the watermark has passed its end",
    ]
    assert grouped("SELECT stddev(b.x) FROM a LEFT JOIN b ON a.k = b.k GROUP BY session_window(a.ts, '1 hour')")[
        -2:
    ] == [
        "not all of that can be put together from parts, so the joined rows are kept until their sessions are over",
        "a session is over, and its groups come, once the watermark has passed 10 s beyond its end",
    ]
    query = of("SELECT sum(a.x) FROM a GROUP BY session_window(a.ts, '10 minutes')")
    (closing,) = closings_of([query], SOURCES.values())
    groups = document(closing)["groups"]
    assert {name: groups.get(name) for name in ("gap_us", "pane_us", "size_us")} == {
        "gap_us": 600_000_000,
        "pane_us": None,
        "size_us": None,
    }


def test_the_text_has_a_section_for_the_queries_of_which_something_waits() -> None:
    section = explained("text").split("\nClosing\n")[1].split("\n\n")[0]
    assert re.findall(r"^[├└]─ (\w+)$", section, re.MULTILINE) == ["alone", "none", "sums"]
    assert "Closing" not in explained("text", Shown(queries=("plain",)))


def test_json_has_the_numbers_of_what_waits() -> None:
    document = json.loads(explained("json"))
    by_query = {each["query"]: each for each in document["closing"]}
    assert by_query["alone"] == {
        "query": "alone",
        "decided": [{"join": "left", "rows_of": ["a"], "partner": "b", "come": "without a match", "after_us": 10**7}],
        "kept": [
            {"relation": "a", "source": "a", "kept_us": 10_000_000},
            {"relation": "b", "source": "b", "kept_us": 30_000_000},
        ],
        "groups": None,
        "by_watermark_only": False,
    }
    assert by_query["none"]["by_watermark_only"] is True
    assert by_query["sums"]["groups"] == {
        "relation": "a",
        "column": "ts",
        "size_us": 600_000_000,
        "slide_us": 240_000_000,
        "start_us": 0,
        "over_after_us": 10_000_000,
        "functions": ["sum"],
        "keeps": "partial aggregates",
        "pane_us": 120_000_000,
        "keys": ["a.k"],
        "matches": "matches of the relation that is joined last are counted, no pairs are made",
    }


def test_drawn_what_waits_leads_to_a_hexagon_and_that_to_its_query() -> None:
    text = explained("mermaid")
    for line in text.splitlines():
        assert LINE.fullmatch(line), line
    queries = dict(re.findall(r'^  (q\d+)\(\["(\w+)"\]\)$', text, re.MULTILINE))
    arrows = [tuple(pair) for pair in re.findall(r"^  (\w+) -\.?->(?:\|.*\|)? (\w+)$", text, re.MULTILINE)]
    into = {name: {start[0] for start, end in arrows if end == query} for query, name in queries.items()}
    assert into == {"alone": {"c", "t"}, "none": {"c"}, "plain": {"t"}, "sums": {"c"}}
    waiting = re.findall(r"^  (t\d+n\d+) -\.->\|.waits.\| (c\d+)$", text, re.MULTILINE)
    assert sorted(hexagon for _, hexagon in waiting) == ["c0", "c0", "c1", "c1"]
    assert "once the watermark has passed their window" in text
