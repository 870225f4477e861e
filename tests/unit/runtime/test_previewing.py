"""What other queries would cost, before they are there."""

from __future__ import annotations

from plait.adapt.planning import PlanRequest
from plait.optimizer.options import PlanOptions
from plait.runtime.previewing import previewed
from plait.sql import load_script

SCRIPT = """
CREATE STREAM r (a BIGINT, x BIGINT, ts TIMESTAMP) USING mine OPTIONS (rate '100', distinct.a '50')
  TIMESTAMP BY ts WINDOW INTERVAL 60 SECONDS;
CREATE STREAM s (a BIGINT, b BIGINT, ts TIMESTAMP) USING mine OPTIONS (rate '100', distinct.a '50', distinct.b '20')
  TIMESTAMP BY ts WINDOW INTERVAL 60 SECONDS;
CREATE STREAM t (b BIGINT, ts TIMESTAMP) USING mine OPTIONS (rate '10', distinct.b '20')
  TIMESTAMP BY ts WINDOW INTERVAL 60 SECONDS;
CREATE QUERY two INTO noop AS SELECT r.x FROM r JOIN s ON r.a = s.a;
CREATE QUERY same INTO noop AS SELECT s.b FROM r JOIN s ON r.a = s.a;
CREATE QUERY three INTO noop AS SELECT r.x FROM r JOIN s ON r.a = s.a JOIN t ON s.b = t.b;
"""


def _request(*names: str) -> PlanRequest:
    script = load_script(SCRIPT, base="/nowhere")
    queries = tuple(query for query in script.queries if query.name in names)
    return PlanRequest(queries=queries, options=PlanOptions(strategy="greedy", sources=script.sources, parallelism=1))


def test_a_query_that_is_joined_already_takes_no_step_of_its_own() -> None:
    told = previewed(_request("two"), _request("two", "same"), None, ["same"])
    assert told["added"]["same"] == {
        "steps": 2,
        "own_steps": 0,
        "own_probe_tuples_per_s": 0,
        "shares_with": ["two"],
    }
    assert told["after"]["probe_tuples_per_s"] == told["before"]["probe_tuples_per_s"] == 200


def test_what_a_query_takes_beside_others_is_what_all_of_them_take_more() -> None:
    told = previewed(_request("two"), _request("two", "three"), None, ["three"])
    three = told["added"]["three"]
    assert 0 < three["own_steps"] < three["steps"]
    more = told["after"]["probe_tuples_per_s"] - told["before"]["probe_tuples_per_s"]
    assert abs(three["own_probe_tuples_per_s"] - more) < 1


def test_where_nothing_is_asked_nothing_is_planned() -> None:
    assert previewed(_request("two"), _request(), None, []) == {
        "before": previewed(_request("two"), _request("two"), None, [])["after"],
        "after": None,
        "added": {},
    }
