"""Planning beside the stream can fail and can be closed; neither holds up a run."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, replace

import pytest

from plait.adapt.adapter import Adapter
from plait.adapt.planning import PlanRequest
from plait.optimizer.examples import example_options, example_query
from plait.plan.model import Plan
from plait.state.model import Manifest

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

    def plan(self, manifest: Manifest | None) -> Plan:
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
