"""The simulator counts what the operators do, and policies cannot take less than hindsight allows."""

from __future__ import annotations

import pytest

from benchmarks.simulator.experiments import Drift, Experiment, chain, random_drift, step_at
from benchmarks.simulator.recording import Recording, record
from benchmarks.simulator.replay import Policy, best_by_cycle, best_single, replay

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
