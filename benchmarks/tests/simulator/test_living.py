"""Paper 000's second experiment: a stream floods the others, and the store of what these have in common pays."""

from __future__ import annotations

from statistics import mean

import pytest

from benchmarks.simulator.curves import FLOOD, lived
from benchmarks.simulator.experiments import Experiment, flooded_chain
from plait.operators.traversal import sampler
from plait.plan.strategy_names import StrategyName

SETTLED = slice(FLOOD + 7, None)
"""Cycles in which all that was stored before the flood has expired."""


@pytest.fixture(scope="module")
def flood() -> Experiment:
    return flooded_chain(rows_per_cycle=5, cycles=FLOOD + 10, flood=FLOOD)


@pytest.mark.parametrize("strategy", ["dppick", "bushy", "ilp"])
def test_the_store_of_the_others_appears_within_three_cycles_and_a_third_of_the_cost_goes(
    flood: Experiment, strategy: StrategyName
) -> None:
    static, adaptive = lived(flood, strategy, until=0), lived(flood, strategy)
    assert all(any(store.startswith("r1⋈r2⋈r3") for store in cycle.stores) for cycle in adaptive.cycles[FLOOD + 3 :])
    before, after = (mean(cycle.operations for cycle in found.cycles[SETTLED]) for found in (static, adaptive))
    assert after < before * 2 / 3
    assert [cycle.results for cycle in static.cycles] == [cycle.results for cycle in adaptive.cycles]
    assert len([number for number, _ in adaptive.changes if number >= FLOOD]) <= 3


def test_samples_are_few_and_change_no_result(flood: Experiment) -> None:
    found = lived(flood, "dppick")
    sampled, probes = (sum(getattr(cycle, name) for cycle in found.cycles) for name in ("sampled", "probes"))
    assert 0 < sampled < probes * 0.02


def test_no_sample_sorts_more_rows_by_another_key_than_a_batch_can_wait_for(
    flood: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_take = sampler.Sampler._may_take
    # As if the plan in force looked nothing up.
    monkeypatch.setattr(
        sampler.Sampler, "_may_take", staticmethod(lambda context, task, _: may_take(context, task, {}))
    )
    assert any(cycle.sampled for cycle in lived(flood, "dppick").cycles)
    monkeypatch.setattr(sampler, "MOST_SORTED", 0)
    bounded = lived(flood, "dppick")
    assert not any(cycle.sampled for cycle in bounded.cycles)
    assert any(cycle.results for cycle in bounded.cycles)
