"""Samples lead where the plan in force does not, and take no more than their share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plait.adapt.other_orders import FEWEST_ROWS, MOST_IN_BATCH, MOST_SAMPLED, Allowance, plan_to_sample
from plait.adapt.planning import PlanRequest
from plait.optimizer.examples import example_options, example_query
from plait.plan.model import Plan
from plait.plan.step_names import named_steps
from plait.state.model import Manifest
from plait.stats.cycles import Count, CycleLength, Cycles, with_batch

OPTIONS = example_options("fixed")
RING = example_query("q", "r.a = s.a", "s.b = t.b", "t.c = u.c", "r.d = u.d")
CONNECTED = {"r⋈s", "s⋈t", "t⋈u", "r⋈u", "r⋈s⋈t", "s⋈t⋈u", "r⋈t⋈u", "r⋈s⋈u", "r⋈s⋈t⋈u"}
EVERY_BATCH = CycleLength(batches=1)


def request(*queries) -> PlanRequest:  # type: ignore[no-untyped-def]
    return PlanRequest(queries=queries or (RING,), options=OPTIONS)


def manifest(cycles: Cycles = Cycles()) -> Manifest:  # noqa: B008  (frozen)
    return Manifest(batch=0, watermark_us=None, plan="p", cycles=cycles)


def joins(plan: Plan) -> set[str]:
    """Return the joins that a plan leads through, without their digests."""
    return {name.after.split("~")[0] for _, name in named_steps(plan)}


def counted(*plans: Plan) -> Cycles:
    """Return series in which the steps of each plan were counted in a cycle of its own."""
    cycles = Cycles()
    for number, plan in enumerate(plans):
        names = sorted({tuple(name) for _, name in named_steps(plan)})
        counts = [Count(kind="step", name=name, counts=(100, 50, 50)) for name in names]
        cycles = with_batch(cycles, number, counts, EVERY_BATCH)
    return cycles


def test_samples_lead_to_joins_that_the_plan_in_force_does_not_lead_through() -> None:
    asked = request()
    running = asked.plan(None)
    sampled = plan_to_sample(asked, manifest(counted(running)), running)
    assert sampled is not None
    assert joins(sampled) - joins(running)
    assert not any(step.outputs for tree in sampled.trees for _, step in tree.walk())
    assert {store.id for store in sampled.stores} == {store.id for store in running.stores}


def test_what_was_counted_longest_ago_comes_first() -> None:
    asked = request()
    running = asked.plan(None)
    cycles, seen = [running], list[set[str]]()
    for _ in range(6):
        sampled = plan_to_sample(asked, manifest(counted(*cycles)), running)
        assert sampled is not None
        seen.append(joins(sampled) - joins(running))
        cycles.append(sampled)
    assert set().union(joins(running), *seen) == CONNECTED


def test_where_every_join_is_measured_there_is_nothing_to_sample() -> None:
    two = example_query("q", "r.a = s.a")
    three = example_query("q", "r.a = s.a", "s.b = t.b")
    for query in (two, three):
        asked = request(query)
        running = asked.plan(None)
        assert plan_to_sample(asked, manifest(counted(running)), running) is None


def test_of_many_queries_a_few_have_their_turn_each_cycle() -> None:
    names = [f"q{number:02}" for number in range(20)]
    queries = [
        example_query(name, f"r.a{name} = s.a{name}", "s.b = t.b", "t.c = u.c", f"r.d{name} = u.d{name}")
        for name in names
    ]
    asked = request(*queries)
    running, turns = asked.plan(None), list[tuple[str, ...]]()
    for number in range(5):
        sampled = plan_to_sample(asked, manifest(replace(counted(running), number=number)), running)
        turns.append(() if sampled is None else sampled.queries)
    assert all(0 < len(turn) <= 8 for turn in turns)
    assert set().union(*turns) == set(names)


def test_samples_take_no_more_than_their_share_whatever_a_tuple_takes() -> None:
    allowance, most = Allowance(), 0
    for number in range(200):
        every = allowance.every(10_000, 40_000, steps=4)
        if every is not None:
            rows = -(-10_000 // every)
            taken = rows * (4 if number < 100 else 300)
            allowance.note(rows, taken)
            most = max(most, taken)
    assert 0.5 * MOST_SAMPLED < allowance.sampled / allowance.probed <= MOST_SAMPLED * 1.3
    assert MOST_SAMPLED * 1.3 < 0.02
    assert most <= 40_000 * MOST_IN_BATCH * 300 / 4


def test_too_few_tuples_are_not_sampled() -> None:
    allowance = Allowance()
    assert allowance.every(100, int(FEWEST_ROWS / MOST_SAMPLED) - 10, steps=1) is None
    assert allowance.every(0, 10**6, steps=1) is None
    assert allowance.every(10**6, 10**6, steps=1) == pytest.approx(1 / (2 * MOST_SAMPLED), rel=0.1)
