"""Choices of partitions against all there are, written from the paper's equations."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, product
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.optimizer.linear.highs import Limits, relax
from plait.optimizer.partitioning import (
    HEURISTICS,
    Operator,
    TableOptions,
    aligned,
    alone,
    choose_tables,
    cost_of,
    search,
)
from plait.optimizer.partitioning.exact import solve_exactly
from plait.optimizer.partitioning.exact_program import symmetric, table_program, values_of
from plait.optimizer.partitioning.heuristics import merge_key_groups, merge_partitions, run_in_bunches, unite_pairwise
from plait.optimizer.partitioning.load_cuts import load_cuts
from plait.optimizer.partitioning.local_moves import LocalMoves
from plait.optimizer.partitioning.lower_bound import lower_bound
from plait.optimizer.partitioning.objective import rows_processed
from plait.optimizer.partitioning.traffic import Traffic
from tests.unit.optimizer.partitioning.drawn import cost_by_loops, least_cost, traffics

LIMITS = Limits(seconds=10.0, gap=0.0)
SMALL = settings(max_examples=30, deadline=None)


@given(traffic=traffics(most_groups=5), seed=st.integers(0, 2**32))
@SMALL
def test_a_choice_costs_what_loops_over_the_equations_say(traffic: Traffic, seed: int) -> None:
    choice = np.random.default_rng(seed).integers(0, traffic.partitions, traffic.groups)
    assert cost_of(traffic, choice).total == pytest.approx(cost_by_loops(traffic, choice))


@given(traffic=traffics(most_groups=2))
@SMALL
def test_the_exact_model_finds_the_least_cost_of_all_choices(traffic: Traffic) -> None:
    proved = solve_exactly(traffic, alone(traffic), LIMITS)
    assert proved.cost == pytest.approx(least_cost(traffic))
    assert proved.bound == pytest.approx(proved.cost, rel=1e-6)


def test_a_start_that_costs_less_once_presolved_is_not_taken_for_the_solution() -> None:
    traffic = Traffic(
        source=np.array([0, 0, 1, 1]),
        start=np.array([0, 2, 3, 4, 5]),
        group=np.array([0, 1, 2, 1, 2]),
        rows=np.array([0.5, 5.0, 6.0, 8.0, 0.5]),
        load=np.array([[1.0, 5.0, 6.0], [0.0, 8.0, 1.0]]),
        latency=np.array([[1.0, 1.0, 3.0], [1.0, 3.0, 1.0]]),
        processing=0.0,
        operator=np.array([0, 1, 1]),
    )
    assert solve_exactly(traffic, np.array([0, 0, 1]), LIMITS).cost == pytest.approx(19.5)


@given(traffic=traffics(most_groups=2))
@SMALL
def test_bounds_are_below_the_least_cost_and_the_sorted_maximum_is_the_tighter_one(traffic: Traffic) -> None:
    least = least_cost(traffic)
    printed = relax(table_program(traffic, as_printed=True).linear, LIMITS).bound
    tighter = relax(table_program(traffic).linear, LIMITS).bound
    assert lower_bound(traffic) <= least * (1 + 1e-9)
    assert printed * (1 - 1e-6) <= tighter <= least * (1 + 1e-6)


@given(traffic=traffics(most_groups=4, most_partitions=2))
@settings(max_examples=60, deadline=None)
def test_what_ties_the_fullest_partition_to_parted_classes_holds_for_every_choice(traffic: Traffic) -> None:
    wanted = {
        each: [int(group) for group, rows in _pins(traffic, each) if rows > 0] for each in range(len(traffic.source))
    }
    cuts = list(load_cuts(traffic, {each: groups for each, groups in wanted.items() if len(groups) > 1}))
    for choice in islice(
        product(range(traffic.partitions), repeat=traffic.groups), 0, None, 1 + traffic.groups // 9 * 6
    ):
        fullest = (rows_processed(traffic, np.array(choice)) * traffic.latency).max(axis=1) * traffic.processing
        for cut in cuts:
            parts = sum(len({choice[group] for group in wanted[each]}) for each in cut.classes)
            assert fullest[cut.source] + cut.slope * parts >= cut.least * (1 - 1e-9)


def test_a_class_that_is_parted_lets_three_of_equal_weight_lie_evenly_in_two_partitions() -> None:
    operators = [Operator(name=name, sources=("r",), groups=3) for name in ("q0", "q1")]
    cards = {("q0", "r"): np.array([3.0, 6.0, 6.0]), ("q1", "r"): np.array([3.0, 0.0, 0.0])}
    traffic = aligned(operators, cards, dict.fromkeys(cards, np.ones(3)), {"r": np.ones(2)}, processing=2.0)
    proved = solve_exactly(traffic, np.array([0, 0, 1, 0, 0, 0]), LIMITS)
    # 3 rows sent twice, 9 processed in each partition; whole it would be 15 sent, and 12 in one of them.
    assert (proved.cost, proved.bound) == (pytest.approx(18 + 2 * 9), pytest.approx(18 + 2 * 9, rel=1e-6))


def _pins(traffic: Traffic, row_class: int) -> list[tuple[int, float]]:
    pins = slice(traffic.start[row_class], traffic.start[row_class + 1])
    return list(zip(traffic.group[pins].tolist(), traffic.rows[pins].tolist(), strict=True))


@given(traffic=traffics(most_groups=4), seed=st.integers(0, 2**32))
@SMALL
def test_the_values_of_a_choice_satisfy_the_program_and_cost_as_much(traffic: Traffic, seed: int) -> None:
    choice = symmetric(traffic, np.random.default_rng(seed).integers(0, traffic.partitions, traffic.groups))
    program = table_program(traffic)
    values, linear = values_of(traffic, program, choice), program.linear
    rows = np.repeat(np.arange(len(linear.row_lower)), np.diff(linear.start))
    sums = np.bincount(rows, weights=linear.value * values[linear.index], minlength=len(linear.row_lower))
    assert ((linear.lower - 1e-9 <= values) & (values <= linear.upper + 1e-9)).all()
    assert ((linear.row_lower - 1e-6 <= sums) & (sums <= linear.row_upper + 1e-6)).all()
    assert float(linear.cost @ values) == pytest.approx(cost_of(traffic, choice).total)


@given(traffic=traffics(most_groups=5))
@SMALL
def test_the_quick_search_is_never_dearer_than_each_operator_by_itself(traffic: Traffic) -> None:
    found = search(traffic, 0.0)
    assert found.cost == pytest.approx(cost_by_loops(traffic, found.choice))
    assert found.cost <= cost_of(traffic, alone(traffic)).total * (1 + 1e-9)


@given(traffic=traffics(most_groups=5), seed=st.integers(0, 2**32))
@SMALL
def test_no_single_move_makes_a_finished_choice_cheaper(traffic: Traffic, seed: int) -> None:
    start = np.random.default_rng(seed).integers(0, traffic.partitions, traffic.groups)
    choice = LocalMoves(traffic).improve(start, perf_counter() + 60)
    cost = cost_of(traffic, choice).total
    assert cost <= cost_of(traffic, start).total
    for group in range(traffic.groups):
        for partition in range(traffic.partitions):
            moved = choice.copy()
            moved[group] = partition
            assert cost_of(traffic, moved).total >= cost * (1 - 1e-6) - 1e-9


@given(traffic=traffics(most_groups=4))
@SMALL
def test_a_cluster_of_each_group_alone_is_the_same_traffic(traffic: Traffic) -> None:
    united = traffic.united(np.arange(traffic.groups))
    choice = np.arange(traffic.groups) % traffic.partitions
    assert cost_of(united, choice).total == pytest.approx(cost_of(traffic, choice).total)
    assert cost_of(united, choice).processing == pytest.approx(cost_of(traffic, choice).processing)


@given(traffic=traffics(most_groups=4), seed=st.integers(0, 2**32))
@SMALL
def test_groups_kept_whole_cost_in_clusters_no_more_than_they_do(traffic: Traffic, seed: int) -> None:
    rng = np.random.default_rng(seed)
    into = np.unique(rng.integers(0, 3, traffic.groups), return_inverse=True)[1]
    united = traffic.united(into)
    choice = rng.integers(0, traffic.partitions, united.groups)
    whole = cost_of(traffic, choice[into])
    assert cost_of(united, choice).processing == pytest.approx(whole.processing)
    assert cost_of(united, choice).sending <= whole.sending * (1 + 1e-9)


def _solve(traffic: Traffic) -> np.ndarray:
    return search(traffic, 0.0).choice


@given(traffic=traffics(most_groups=5))
@SMALL
def test_every_heuristic_puts_every_group_somewhere(traffic: Traffic) -> None:
    for choice in (
        merge_key_groups(traffic, 1, _solve),
        merge_partitions(traffic, 1, 1, _solve),
        unite_pairwise(traffic, _solve),
        run_in_bunches(traffic, _solve, size=1),
    ):
        assert choice.shape == (traffic.groups,)
        assert ((choice >= 0) & (choice < traffic.partitions)).all()


@pytest.mark.parametrize("left_out", [None, *sorted(HEURISTICS - {"time budget"})])
@given(traffic=traffics(most_groups=2))
@settings(max_examples=3, deadline=None)
def test_tables_are_as_cheap_as_can_be_with_any_heuristic_switched_off(left_out: str | None, traffic: Traffic) -> None:
    options = TableOptions(seconds=10.0, heuristics=HEURISTICS - {left_out}, gap=1e-6)  # type: ignore[arg-type]
    chosen = choose_tables(traffic, options)
    assert chosen.cost == pytest.approx(least_cost(traffic))
    assert chosen.bound <= chosen.cost


@given(traffic=traffics(most_groups=2))
@settings(max_examples=5, deadline=None)
def test_the_paper_s_loop_without_our_search_is_never_dearer_than_each_operator_by_itself(traffic: Traffic) -> None:
    chosen = choose_tables(traffic, TableOptions(seconds=0.5, searches=False, gap=0.01))
    assert chosen.cost == pytest.approx(cost_by_loops(traffic, chosen.choice))
    assert chosen.cost <= cost_of(traffic, alone(traffic)).total * (1 + 1e-9)


def test_sources_that_no_operator_joins_are_decided_apart() -> None:
    rng = np.random.default_rng(3)
    load = rng.integers(1, 50, (2, 8)).astype(float)
    load[0, 4:] = load[1, :4] = 0.0
    traffic = Traffic(
        source=np.repeat([0, 1], 4),
        start=np.arange(9),
        group=np.arange(8),
        rows=load.sum(axis=0),
        load=load,
        latency=np.ones((2, 2)),
        processing=1.0,
        operator=np.repeat([0, 1], 4),
    )
    chosen = choose_tables(traffic, TableOptions(seconds=1.0))
    assert len(chosen.found_by) == 2
    assert chosen.cost == pytest.approx(least_cost(traffic))
    joined = replace(traffic, operator=np.zeros(8, dtype=np.int64))
    assert len(choose_tables(joined, TableOptions(seconds=1.0)).found_by) == 1
