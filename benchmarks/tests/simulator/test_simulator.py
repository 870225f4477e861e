"""The simulator counts what the operators do, and policies cannot take less than hindsight allows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.simulator.experiments import Drift, Experiment, chain, random_drift, step_at
from benchmarks.simulator.hindsight import (
    best_by_cycle,
    best_single,
    cost_of,
    gains_of_changes,
    real_shifts,
    unavoidable,
)
from benchmarks.simulator.recording import Recording, record
from benchmarks.simulator.replay import Policy, replay

FIXED = Policy(name="fixed", strategy="fixed", adapts=False)
ADAPTIVE = [Policy(name=strategy, strategy=strategy) for strategy in ("greedy", "selectivity", "dppick")]


def recorded(experiment: Experiment) -> Recording:
    return record(experiment.query, experiment.streams, experiment.batches)


@pytest.fixture(scope="module")
def turning() -> Recording:
    """s finds many in r and few in t from cycle 8 on; before it is the other way round."""
    many, few = step_at(8, 0.1, 20.0), step_at(8, 20.0, 0.1)
    return recorded(
        chain("turning", Drift(rates=(lambda _: 100.0,) * 3, partners=(many, few), cycles=16, window_cycles=2.0))
    )


def test_whatever_the_order_the_results_of_a_cycle_are_as_many(turning: Recording) -> None:
    for cycle in turning.cycles:
        ends = {edge: counts.matches for edge, counts in cycle.edges.items() if edge.count("→") == 2}
        by_start: dict[str, set[int]] = {}
        for edge, matches in ends.items():
            by_start.setdefault(edge.split("→")[0], set()).add(matches)
        assert all(len(found) == 1 for found in by_start.values())


def test_no_policy_takes_less_than_hindsight(turning: Recording) -> None:
    assert sum(best_by_cycle(turning)) < best_single(turning)
    for policy in (FIXED, *ADAPTIVE):
        replayed = replay(turning, policy)
        for taken, best in zip(replayed.taken, best_by_cycle(turning), strict=True):
            assert taken.operations >= best


@pytest.mark.parametrize("policy", ADAPTIVE, ids=lambda policy: policy.name)
def test_a_policy_that_adapts_follows_a_turn_within_a_window_and_two_cycles(turning: Recording, policy: Policy) -> None:
    replayed, best = replay(turning, policy), best_by_cycle(turning)
    for cycle in (6, 7, 12, 13, 14, 15):
        assert replayed.taken[cycle].operations <= best[cycle] * 1.05
    fixed = replay(turning, FIXED)
    assert max(taken.operations / least for taken, least in zip(fixed.taken, best, strict=True)) > 1.5


def test_random_drift_is_reproducible_and_recorded() -> None:
    one, other = (random_drift(3, cycles=12, rate=20.0) for _ in range(2))
    assert [batch["r0"] for batch in one.batches] == [batch["r0"] for batch in other.batches]
    recording = recorded(one)
    assert best_single(recording, "probes") >= sum(best_by_cycle(recording, "probes")) > 0


def test_what_changes_saved_is_what_no_change_would_have_taken_more(turning: Recording) -> None:
    fixed = replay(turning, FIXED)
    assert gains_of_changes(turning, fixed) == []
    for policy in ADAPTIVE:
        replayed = replay(turning, replace(policy, samples=False))
        gains = gains_of_changes(turning, replayed)
        assert len(gains) == len(replayed.changes) > 0
        # Each is against the plan before it, which would have gone on saving what it did.
        (first, edges), *_ = replayed.changes
        last = replayed.changes[1][0] if len(gains) > 1 else len(turning.cycles) - 1
        cycles = turning.cycles[first + 1 : last + 1]
        assert gains[0] == sum(cost_of(cycle, replayed.began) - cost_of(cycle, edges) for cycle in cycles)
        assert gains[-1] > 0


def test_what_nobody_could_know_is_what_the_first_plan_takes_too_much_in_the_first_cycle(turning: Recording) -> None:
    began = replay(turning, FIXED).began
    best = best_by_cycle(turning, "probes")
    assert unavoidable(turning, began) == cost_of(turning.cycles[0], began) - best[0] >= 0
    assert len(real_shifts(turning)) == 1
