"""Overlap: counted on a sample, of pairs, sketched."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.errors import OptionError
from plait.optimizer.partitioning import Operator, Sampled, aligned, counted
from plait.optimizer.partitioning.lower_bound import sending_bound
from plait.optimizer.partitioning.objective import rows_processed, rows_sent
from plait.optimizer.partitioning.pairs import RowSketches, of_pairs, rows_shared, tree_of
from plait.optimizer.partitioning.same_keys import tables_of, united_groups
from plait.plan.key_groups import UNWANTED
from tests.unit.optimizer.partitioning.drawn import sampled


def _operators(count: int, groups: int) -> list[Operator]:
    return [Operator(name=f"q{place}", sources=("r",), groups=groups) for place in range(count)]


@given(seed=st.integers(0, 2**32), count=st.integers(1, 4), partitions=st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_counted_traffic_sends_each_row_once_to_each_distinct_partition(seed: int, count: int, partitions: int) -> None:
    rng, operators = np.random.default_rng(seed), _operators(count, 3)
    sample = sampled(operators, "r", rng)
    traffic = counted(operators, {"r": sample}, {"r": np.ones(partitions)}, 1.0)
    choice = rng.integers(0, partitions, traffic.groups)
    tables = choice.reshape(count, 3)
    wanted = [
        {int(tables[place, group]) for place, group in enumerate(row) if group != UNWANTED} for row in sample.key_groups
    ]
    sent = [sum(partition in row for row in wanted) * sample.rows_each for partition in range(partitions)]
    assert rows_sent(traffic, choice).tolist() == [pytest.approx(sent)]
    taken = (sample.key_groups != UNWANTED).sum() * sample.rows_each
    assert rows_processed(traffic, choice).sum() == pytest.approx(taken)


@given(seed=st.integers(0, 2**32), count=st.integers(1, 4), partitions=st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_pairs_along_a_tree_bound_what_is_sent_from_above_and_two_operators_exactly(
    seed: int, count: int, partitions: int
) -> None:
    rng, operators = np.random.default_rng(seed), _operators(count, 3)
    sample = sampled(operators, "r", rng)
    exact = counted(operators, {"r": sample}, {"r": np.ones(partitions)}, 1.0)
    overlaps = {
        (one, other): rows_shared(sample, one, other, (3, 3)) for one in range(count) for other in range(one + 1, count)
    }
    tree = tree_of({pair: float(overlap.sum()) for pair, overlap in overlaps.items()})
    cards = {place: exact.load[0, 3 * place : 3 * place + 3] for place in range(count)}
    paired = of_pairs(operators, cards, {pair: overlaps[pair] for pair in tree}, np.ones(partitions), 1.0)
    choice = rng.integers(0, partitions, exact.groups)
    bound, sent = rows_sent(paired, choice).sum(), rows_sent(exact, choice).sum()
    assert bound >= sent - 1e-9
    if count <= 2:
        assert bound == pytest.approx(sent)
    assert sending_bound(paired) <= bound + 1e-9


def test_a_tree_of_pairs_is_the_heaviest_that_holds_all_operators_together() -> None:
    strength = {(0, 1): 1.0, (0, 2): 5.0, (0, 3): 2.0, (1, 2): 4.0, (1, 3): 3.0, (2, 3): 1.5}
    assert tree_of(strength) == ((0, 2), (1, 2), (1, 3))


def test_sketches_estimate_shared_rows_within_their_error_and_merge() -> None:
    rng = np.random.default_rng(2)
    left, right = rng.integers(0, 4, 40_000), rng.integers(UNWANTED, 4, 40_000)
    rows = np.arange(40_000)
    halves = [slice(None, 20_000), slice(20_000, None)]
    one, other = (
        RowSketches.of(rows[halves[0]], each[halves[0]], 4, 1024).merged(
            RowSketches.of(rows[halves[1]], each[halves[1]], 4, 1024)
        )
        for each in (left, right)
    )
    sample = Sampled(operators=("q0", "q1"), key_groups=np.stack((left, right), axis=1))
    exact = rows_shared(sample, 0, 1, (4, 4))
    assert np.abs(one.rows_shared(other) - exact).max() < 0.25 * exact.mean()
    assert np.abs(one.rows_shared(other) - exact).sum() < 0.1 * exact.sum()


def test_coefficients_of_equal_key_groups_make_the_paper_s_maximum() -> None:
    operators = _operators(2, 2)
    cards = {("q0", "r"): np.array([6.0, 1.0]), ("q1", "r"): np.array([4.0, 8.0])}
    shared = {("q0", "r"): np.array([0.5, 1.0]), ("q1", "r"): np.array([1.0, 1.0])}
    traffic = aligned(operators, cards, shared, {"r": np.ones(2)}, 1.0)
    assert rows_sent(traffic, np.array([0, 1, 0, 0])).tolist() == [[4.0 + 8.0, 1.0]]
    assert rows_processed(traffic, np.array([0, 1, 0, 0])).tolist() == [[6.0 + 4.0 + 8.0, 1.0]]


def test_operators_of_the_same_keys_get_one_table_and_nothing_is_sent_twice_to_it() -> None:
    inputs = {"q0": [("r", "a")], "q1": [("r", "b")], "q2": [("r", "a"), ("s", "x")]}
    operators = [
        Operator(name=name, sources=tuple(source for source, _ in wanted), groups=2) for name, wanted in inputs.items()
    ]
    tables = tables_of(inputs)
    assert tables == {"q0": 0, "q1": 1, "q2": 0}
    key_groups = np.array([[0, 1, 0], [1, 1, 1], [UNWANTED, 0, 1]])
    samples = {
        "r": Sampled(operators=("q0", "q1", "q2"), key_groups=key_groups),
        "s": Sampled(operators=("q2",), key_groups=np.array([[1]])),
    }
    traffic = counted(operators, samples, {"r": np.ones(2), "s": np.ones(2)}, 1.0)
    united = traffic.united(united_groups(operators, tables))
    assert united.groups == 4
    choice = np.array([0, 1, 1, 0])
    assert rows_sent(united, choice).sum() == pytest.approx(1 + 2 + 1 + 1)
    assert rows_processed(united, choice).sum() == pytest.approx(8 + 1)


def test_a_join_unites_the_tables_of_those_it_is_joined_with_whatever_the_order() -> None:
    inputs = {"q0": [("r", "a")], "q1": [("s", "b")], "q2": [("t", "c")], "q3": [("r", "a"), ("t", "c")]}
    assert tables_of(inputs) == {"q0": 0, "q1": 1, "q2": 0, "q3": 0}


def test_an_operator_without_sources_or_key_groups_is_refused() -> None:
    with pytest.raises(OptionError, match="operator 'q': expected at least one source"):
        Operator(name="q", sources=())
    with pytest.raises(OptionError, match="0 key groups"):
        Operator(name="q", sources=("r",), groups=0)
