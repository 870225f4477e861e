"""Planning beside the stream can fail and can be closed; neither holds up a run."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, replace

import pytest

from plait.adapt.adapter import MOST_PLANNING, Adapter, Habits
from plait.adapt.forecast import NEXT_CYCLE, Outlook
from plait.adapt.planning import PlanRequest
from plait.optimizer.examples import example_options, example_query
from plait.optimizer.incremental.former import Former
from plait.plan.model import Plan
from plait.state.model import Manifest
from plait.stats.cycles import Cycles

OPTIONS = example_options("greedy")
REQUEST = PlanRequest(queries=(example_query("q", "r.a = s.a", "s.b = t.b"),), options=OPTIONS)
RUNNING = REQUEST.plan(None)
MANIFEST = Manifest(batch=0, watermark_us=None, plan="p")
# What planning makes of this is an error of the planner's own: there is no such strategy.
FAILING = replace(REQUEST, options=replace(OPTIONS, strategy="of another version"))


def planned(adapter: Adapter) -> None:
    """Wait until the plan being made is there."""
    adapter.close()


def test_planning_that_fails_is_logged_once_and_the_plan_stays(caplog: pytest.LogCaptureFixture) -> None:
    adapter = Adapter(FAILING)
    adapter.batch_done(MANIFEST, RUNNING)
    planned(adapter)
    with caplog.at_level(logging.WARNING):
        assert [adapter.next_change(RUNNING) for _ in range(3)] == [None, None, None]
    (told,) = caplog.records
    assert "the one in force stays: OptionError: unknown strategy 'of another version'" in told.getMessage()


def test_a_store_that_has_to_go_goes_although_no_plan_without_it_can_be_made(caplog: pytest.LogCaptureFixture) -> None:
    """The last strategy tried, which has no intermediate store, needs no solver and is still there."""
    adapter = Adapter(FAILING)
    adapter.batch_done(MANIFEST, RUNNING, dropped=frozenset({"r+s"}))
    change = adapter.next_change(RUNNING)
    assert change is not None
    assert change.reason == "storage budget"
    assert "unknown strategy" in caplog.text
    adapter.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class _SlowRequest(PlanRequest):
    """A request whose planning takes until it is let go."""

    begun: threading.Event
    let_go: threading.Event

    def plan(self, manifest: Manifest | None, outlook: Outlook = NEXT_CYCLE) -> Plan:
        """Return the plan, once it may."""
        self.begun.set()
        assert self.let_go.wait(60)
        return RUNNING


def test_an_adapter_that_is_replaced_waits_for_no_solver_and_leaves_no_thread() -> None:
    slow = _SlowRequest(queries=REQUEST.queries, options=OPTIONS, begun=threading.Event(), let_go=threading.Event())
    adapters = [Adapter(slow) for _ in range(3)]
    for adapter in adapters:
        adapter.batch_done(MANIFEST, RUNNING)
    assert slow.begun.wait(60)
    for adapter in adapters:
        adapter.close(wait=False)  # would never return if it waited
    slow.let_go.set()
    for adapter in adapters:
        adapter.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("plait-planning")]


def test_adapters_for_queries_that_come_and_go_plan_in_one_thread_and_only_the_last_request() -> None:
    begun, let_go, asked = threading.Event(), threading.Event(), list[str]()

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Noted(PlanRequest):
        def plan(self, manifest: Manifest | None, outlook: Outlook = NEXT_CYCLE, former: Former | None = None) -> Plan:
            asked.append(self.queries[0].name)
            begun.set()
            assert let_go.wait(60)
            return RUNNING

    def of(name: str) -> Noted:
        return Noted(queries=(replace(REQUEST.queries[0], name=name),), options=OPTIONS)

    clock = _Clock()
    adapter = Adapter(of("first"), clock=clock)
    adapter.batch_done(MANIFEST, RUNNING)
    assert begun.wait(60)
    for number in range(4):
        clock.now += 1e6
        adapter = adapter.successor(of(f"q{number}"), Habits(), adapter.memory)
        adapter.batch_done(MANIFEST, RUNNING)
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("plait-planning")]
    let_go.set()
    adapter.wait()
    adapter.close()
    assert (asked, len(threads), adapter.planned.times) == (["first", "q3"], 1, 2)


def test_a_run_is_young_once_however_often_its_queries_change() -> None:
    adapter = Adapter(REQUEST, clock=_Clock())
    for number in range(5):
        adapter.batch_done(MANIFEST, RUNNING)
        adapter.wait()
        other = replace(REQUEST, queries=(replace(REQUEST.queries[0], name=f"q{number}"),))
        adapter = adapter.successor(other, Habits(), adapter.memory)
    assert adapter.planned.times == 1  # no time has passed in which more could be planned
    adapter.close()
    again = adapter.successor(REQUEST, Habits(), adapter.memory)  # of another run
    again.batch_done(MANIFEST, RUNNING)
    again.close()
    assert again.planned.times == 1


class _Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def cycle(number: int, seconds: float = 10.0) -> Manifest:
    """Return a manifest so many seconds after a cycle has begun; after ten it is over."""
    return replace(MANIFEST, batch=number, cycles=Cycles(number=number, batches=(1,), seconds=(seconds,)))


def test_plans_are_reconsidered_when_a_run_is_young_and_then_at_the_end_of_every_cycle() -> None:
    clock = _Clock()
    adapter, asked = Adapter(REQUEST, clock=clock), []
    for number in range(1, 25):
        clock.now += 10.0
        before = adapter.planned.times
        adapter.batch_done(cycle(number, seconds=10.0 if number >= 20 else 9.0), RUNNING)
        adapter.wait()
        assert adapter.next_change(RUNNING) is None
        asked += [number] * (adapter.planned.times - before)
    assert asked == [1, 4, 16, 20, 21, 22, 23, 24]
    adapter.close()


def test_planning_takes_no_more_than_its_share_of_the_time() -> None:
    clock = _Clock()
    adapter = Adapter(REQUEST, clock=clock)
    for number in range(1, 40):
        adapter.batch_done(cycle(number), RUNNING)
        adapter.wait()
        adapter.next_change(RUNNING)
    assert adapter.planned.times == 3  # no time has passed, so only while it is young
    clock.now = adapter.planned.seconds / MOST_PLANNING * 1.001  # beyond what rounding can take away
    adapter.batch_done(cycle(40), RUNNING)
    adapter.wait()
    assert adapter.planned.times == 4
    adapter.close()


def test_an_adapter_that_is_told_to_leaves_the_plan_alone_but_for_the_storage_budget() -> None:
    adapter = Adapter(REQUEST, Habits(adapts=False))
    for number in range(1, 6):
        adapter.batch_done(cycle(number), RUNNING)
        assert adapter.next_change(RUNNING) is None
    assert adapter.planned.times == 0
    adapter.batch_done(cycle(6), RUNNING, dropped=frozenset({"r+s"}))
    assert adapter.next_change(RUNNING) is not None
    adapter.close()


def test_a_decision_about_a_plan_that_is_no_longer_in_force_is_forgotten() -> None:
    few = example_options("greedy", ("r", 1.0), ("s", 100.0), ("t", 100.0))
    running = replace(REQUEST, options=few).plan(None)
    many = replace(REQUEST, options=example_options("greedy", ("r", 100.0), ("s", 100.0), ("t", 1.0)))
    for in_force, is_taken in ((running, True), (replace(running), False)):
        adapter = Adapter(many)
        adapter.batch_done(MANIFEST, running)
        adapter.close()
        assert (adapter.next_change(in_force) is not None) == is_taken
        assert (adapter.memory.unjudged is not None) == is_taken
