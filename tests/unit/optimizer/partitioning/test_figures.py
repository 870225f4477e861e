"""Figures 1 and 2 of paper 001.

The text has no more of them than this. Figure 1: eight tuples (userID, gemPackID), among them [3, 2] and [1, 2], which
are sent to both queries separately; partitioned alone 16 are sent, shared 10. So the other six share, which the two
functions of the figure make those with an even userID. Figure 2: eight key groups, three partitions; of the six tuples
in key group G1 of Q1 three are in G1 of Q2 and three in G8 of Q2. The other tuples are made up.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from plait.optimizer.linear.highs import Limits
from plait.optimizer.partitioning import Operator, Sampled, TableOptions, alone, choose_tables, cost_of, counted
from plait.optimizer.partitioning.exact import solve_exactly
from plait.optimizer.partitioning.objective import rows_processed, rows_sent
from plait.optimizer.partitioning.traffic import Traffic

PURCHASES = np.array([[2, 1], [4, 1], [2, 3], [4, 2], [2, 4], [6, 2], [3, 2], [1, 2]])


def test_figure_1_sixteen_tuples_become_ten() -> None:
    operators = [Operator(name=name, sources=("purchases",), groups=2) for name in ("q1", "q2")]
    user, gem = PURCHASES.T
    key_groups = np.stack((gem % 2, (user + gem) % 2), axis=1)
    sample = Sampled(operators=("q1", "q2"), key_groups=key_groups)
    traffic = counted(operators, {"purchases": sample}, {"purchases": np.ones(2)}, processing=1.0)
    copies = sum(cost_of(traffic.restricted(traffic.operator == each), np.array([0, 1])).sent_rows for each in range(2))
    assert copies == 16
    chosen = choose_tables(traffic, TableOptions(seconds=10.0))
    assert cost_of(traffic, chosen.choice).sent_rows == 10
    assert chosen.bound == pytest.approx(chosen.cost)
    assert rows_processed(traffic, chosen.choice).tolist() == [[8.0, 8.0]]


def figure_2() -> np.ndarray:
    """(key group for Q1, key group for Q2) of each tuple, numbered from 0."""
    pairs = {
        (0, 0): 3,
        (0, 7): 3,
        (1, 2): 4,
        (2, 2): 2,
        (3, 4): 5,
        (4, 1): 3,
        (5, 5): 4,
        (6, 6): 3,
        (7, 3): 2,
        (4, 5): 1,
    }
    return np.array([pair for pair, times in pairs.items() for _ in range(times)])


def test_figure_2_reassigns_key_groups_so_that_queries_share_partitions() -> None:
    operators = [Operator(name=name, sources=("purchases",), groups=8) for name in ("q1", "q2")]
    sample = Sampled(operators=("q1", "q2"), key_groups=figure_2())
    traffic = counted(operators, {"purchases": sample}, {"purchases": np.ones(3)}, processing=1.0)
    (q1_g1,) = (row for row in range(8) if traffic.load[0, row] == 6 and row == 0)
    shared = {int(group): float(rows) for group, rows in _partners(traffic, q1_g1)}
    assert shared == {8: 3.0, 15: 3.0}
    by_themselves, chosen = alone(traffic), choose_tables(traffic, TableOptions(seconds=10.0))
    assert chosen.bound == pytest.approx(chosen.cost, rel=1e-3)
    # 30 rows sent and 22 processed in the fullest partition, or 31 and 21: there are choices of either kind.
    assert chosen.cost == 52
    assert rows_sent(traffic, chosen.choice).sum() in (30, 31)
    assert (rows_sent(traffic, by_themselves).sum(), cost_of(traffic, by_themselves).processing) == (48, 20)
    proved = solve_exactly(traffic, by_themselves, Limits(seconds=20.0, gap=0.0))
    assert proved.cost == pytest.approx(chosen.cost)


def _partners(traffic: Traffic, group: int) -> Iterator[tuple[np.int64, np.float64]]:
    for row_class in range(len(traffic.source)):
        pins = slice(traffic.start[row_class], traffic.start[row_class + 1])
        if group in traffic.group[pins]:
            yield from zip(traffic.group[pins][traffic.group[pins] != group], traffic.rows[pins][1:], strict=True)
