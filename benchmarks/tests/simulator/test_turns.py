"""Plans follow paper 000's turn of the data and no oscillation within a cycle; reports say how they do."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.simulator.curves import HISTORIES, LENGTHS, WINDOW, by_history, by_length, turned
from benchmarks.simulator.experiments import Drift, chain, returns, step_at, swing
from benchmarks.simulator.hindsight import real_shifts
from benchmarks.simulator.measuring import Drifting, shifting
from benchmarks.simulator.recording import record
from benchmarks.simulator.replay import Policy, replay
from benchmarks.workloads.tpcds_returns import ORDERS
from plait.plan.strategy_names import StrategyName


@pytest.mark.parametrize("strategy", ["greedy", "dppick"])
def test_a_run_recovers_from_a_turn_within_a_window_and_two_cycles_and_one_that_stays_does_not(
    strategy: StrategyName,
) -> None:
    (turn,) = turned((strategy,), rows_per_cycle=100)
    assert turn.recovered is not None
    assert turn.recovered <= WINDOW + 2
    assert turn.static > 2 * turn.after


def test_what_swings_within_a_cycle_changes_no_plan() -> None:
    fast = Drift(
        rates=(lambda _: 60.0,) * 3,
        partners=(swing(0.2, 8.0, 2), swing(8.0, 0.2, 2)),
        cycles=80,
        window_cycles=10.0,
    )
    experiment = chain("fast", fast)
    recording = record(experiment.query, experiment.streams, experiment.batches)
    found = replay(recording, Policy(name="dppick", strategy="dppick", cycle=10))
    assert [batch for batch, _ in found.changes if batch > 16] == []


def test_a_shift_of_the_data_is_one_however_many_orders_it_concerns() -> None:
    many, few = step_at(8, 0.1, 20.0), step_at(8, 20.0, 0.1)
    turning = Drift(rates=(lambda _: 100.0,) * 3, partners=(many, few), cycles=16, window_cycles=2.0)
    steady = Drift(rates=(lambda _: 100.0,) * 3, partners=(lambda _: 0.1, lambda _: 20.0), cycles=16)
    shifts = []
    for drift in (turning, steady):
        experiment = chain("shifting", drift)
        shifts.append(real_shifts(record(experiment.query, experiment.streams, experiment.batches)))
    assert [len(each) for each in shifts] == [1, 0]
    assert 6 <= shifts[0][0] <= 10


def test_a_cycle_as_long_as_the_run_and_a_history_of_two_still_plan() -> None:
    order, *_ = ORDERS
    experiment = returns(0.01, order, 22)
    recording = record(experiment.query, experiment.streams, experiment.batches)
    lengths, histories = by_length(recording, [order]), by_history(recording, [order])
    assert (tuple(lengths), tuple(histories)) == (LENGTHS, HISTORIES)
    assert all(-1 < share < 0.1 for share in (*lengths.values(), *histories.values()))
    assert lengths[1] == histories[60]  # one policy


def test_named_workloads_are_among_those_that_regret_is_measured_on(tmp_path: Path) -> None:
    wanted = Drifting(seeds=(3,), rate=10.0, scale=0.001, directory=tmp_path)
    names = [experiment.name.split()[0] for experiment in shifting(wanted)]
    assert {"drift", "chains", "tpch-random", "returns", "random"} == set(names)
