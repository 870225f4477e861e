"""What each heuristic of paper 001 makes of a problem, with a solver that does as it is told."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from plait.optimizer.linear.linear_program import Ints
from plait.optimizer.partitioning import Operator, Sampled, counted
from plait.optimizer.partitioning.heuristics import (
    TimeBudget,
    gaps,
    merge_key_groups,
    merge_partitions,
    parts,
    run_in_bunches,
    unite_pairwise,
)
from plait.optimizer.partitioning.heuristics.fewer_groups import merged
from plait.optimizer.partitioning.traffic import Traffic


def traffic(operators: int = 3, groups: int = 4, partitions: int = 4, rows: int = 40) -> Traffic:
    asked = [Operator(name=f"q{place}", sources=("r",), groups=groups) for place in range(operators)]
    key_groups = np.random.default_rng(1).integers(0, groups, (rows, operators))
    sample = Sampled(operators=tuple(operator.name for operator in asked), key_groups=key_groups)
    return counted(asked, {"r": sample}, {"r": np.ones(partitions)}, 1.0)


class Told:
    """A solver that answers as told, and keeps what it was asked."""

    def __init__(self, *answers: Callable[[Traffic], Ints]) -> None:
        self.asked: list[Traffic] = []
        self._answers = answers

    def __call__(self, asked: Traffic) -> Ints:
        self.asked.append(asked)
        return self._answers[min(len(self.asked), len(self._answers)) - 1](asked)


def everything_to(partition: int) -> Callable[[Traffic], Ints]:
    return lambda asked: np.full(asked.groups, partition)


def test_merged_key_groups_are_neighbours_of_one_operator_and_no_fewer_than_partitions() -> None:
    assert merged(traffic(2, groups=8, partitions=2), 1).tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7]
    assert merged(traffic(1, groups=8, partitions=4), 3).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    solve = Told(lambda asked: np.arange(asked.groups) % asked.partitions)
    choice = merge_key_groups(traffic(1, groups=8, partitions=4), 1, solve)
    assert choice.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert solve.asked[0].load.sum() == 40


def test_groups_stay_within_the_logical_partition_that_they_were_given_to() -> None:
    solve = Told(everything_to(1), everything_to(0))
    choice = merge_partitions(traffic(partitions=4), 1, 1, solve)
    assert choice.tolist() == [2] * 12
    assert [asked.partitions for asked in solve.asked] == [2, 2]
    assert solve.asked[0].processing == 0.5


def test_there_are_no_fewer_logical_partitions_than_nodes() -> None:
    solve = Told(everything_to(2), everything_to(0))
    merge_partitions(traffic(partitions=8), 2, 4, solve)
    assert solve.asked[0].partitions == 4


def test_pairs_of_operators_are_united_and_stay_so() -> None:
    solve = Told(lambda asked: np.arange(asked.groups) % asked.partitions)
    choice = unite_pairwise(traffic(operators=4, groups=4, partitions=2), solve)
    # Two pairs of eight groups each, then what each has in its two partitions.
    assert [asked.groups for asked in solve.asked] == [8, 8, 4]
    assert choice.tolist() == [0, 1] * 8


def test_bunches_are_decided_without_each_other() -> None:
    solve = Told(everything_to(1), everything_to(0))
    choice = run_in_bunches(traffic(operators=3), solve, size=2)
    assert choice.tolist() == [1] * 8 + [0] * 4
    assert [sorted(set(asked.operator.tolist())) for asked in solve.asked] == [[0, 1], [2]]


def test_streams_that_no_operator_joins_are_apart_and_others_together() -> None:
    asked = [
        Operator(name="q0", sources=("r", "s"), groups=2),
        Operator(name="q1", sources=("s",), groups=2),
        Operator(name="q2", sources=("t",), groups=2),
    ]
    samples = {
        "r": Sampled(operators=("q0",), key_groups=np.array([[0], [1]])),
        "s": Sampled(operators=("q0", "q1"), key_groups=np.array([[0, 1], [1, 0]])),
        "t": Sampled(operators=("q2",), key_groups=np.array([[0], [1]])),
    }
    found = parts(counted(asked, samples, dict.fromkeys(samples, np.ones(2)), 1.0))
    assert [part.groups.tolist() for part in found] == [[True] * 4 + [False] * 2, [False] * 4 + [True] * 2]
    assert [part.traffic.sources for part in found] == [2, 1]


def test_the_gap_doubles_unless_it_may_not() -> None:
    assert list(gaps(0.5, 3)) == [0.5, 1.0, 2.0]
    assert list(gaps(0.5, 3, widen=False)) == [0.5] * 3


def test_a_budget_is_shared_among_what_is_still_to_come() -> None:
    now = [10.0]
    budget = TimeBudget(4.0, clock=lambda: now[0])
    assert budget.share(4) == 1.0
    now[0] = 13.0
    assert (budget.left, budget.share(2)) == (1.0, pytest.approx(0.5))
    now[0] = 20.0
    assert budget.left == 0.0
