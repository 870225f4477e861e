"""A run answers its queries as they were while the stores of its plan are filled, if those it had are there."""

from __future__ import annotations

import pytest

from plait.adapt.planning import PlanRequest
from plait.operators.ingest.projection import layout_of
from plait.optimizer.examples import example_options, example_query
from plait.optimizer.incremental.former import Former
from plait.plan.model import Plan
from plait.plan.traversals import endings, intermediates
from plait.runtime.checkpoint import heading
from plait.runtime.checkpoint.heading import way_to
from plait.state.model import Bucket, Manifest
from tests.unit.state.builders import described

OPTIONS = example_options("left-deep", ("r", 100.0), ("s", 100.0), ("t", 100.0), ("u", 100.0))
ONE = example_query("one", "r.a = s.a", "s.b = t.b")
TWO = example_query("two", "s.b = t.b", "t.c = u.c")
RUNNING = PlanRequest(queries=(ONE,), options=OPTIONS).plan(None)
REQUEST = PlanRequest(queries=(ONE, TWO), options=OPTIONS)
GOAL = REQUEST.plan(None)


def stored(plan: Plan, *, without: frozenset[str] = frozenset()) -> tuple[Bucket, ...]:
    """Return a bucket of each store."""
    return tuple(
        described(store=store.id, path=store.id, rows=100, layout=layout_of(store))
        for store in plan.stores
        if store.id not in without
    )


def names(plan: Plan) -> set[str]:
    return {store.id for store, _ in intermediates(plan)}


def manifest(*buckets: Bucket) -> Manifest:
    return Manifest(batch=3, watermark_us=None, plan="p", buckets=buckets)


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heading, "AT_ONCE_ROWS", 99)


OF_U = described(store="u", path="u", rows=100, layout=layout_of(GOAL.store("u")))


def test_queries_that_run_keep_their_stores_and_one_that_comes_is_answered_beside_them() -> None:
    assert names(GOAL) > names(RUNNING) != set()
    way = way_to(REQUEST, GOAL, manifest(*stored(RUNNING), OF_U), Former(plan=RUNNING, queries=(ONE,)))
    assert way is not None
    assert names(way.base) == names(RUNNING)
    assert way.lacking == names(GOAL) - names(RUNNING)
    assert {output.query for _, _, output in endings(way.plan)} == {"one", "two"}


def test_without_what_ran_or_one_of_its_stores_queries_are_answered_without_any() -> None:
    lost = stored(RUNNING, without=frozenset(names(RUNNING)))
    for found, running in ((manifest(*stored(RUNNING), OF_U), None), (manifest(*lost, OF_U), RUNNING)):
        way = way_to(REQUEST, GOAL, found, None if running is None else Former(plan=running, queries=(ONE,)))
        assert way is not None
        assert names(way.base) == set()


def test_a_start_with_few_rows_to_take_or_none_begins_with_the_plan_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    assert way_to(REQUEST, GOAL, None) is None
    assert way_to(REQUEST, GOAL, manifest(*stored(GOAL))) is None
    monkeypatch.setattr(heading, "AT_ONCE_ROWS", 1_000)
    assert way_to(REQUEST, GOAL, manifest(*stored(RUNNING), OF_U)) is None
