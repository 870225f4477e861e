"""A choice of partitions made cheaper by moving and exchanging groups, until the time is up."""

from __future__ import annotations

from functools import cache
from time import perf_counter

import numpy as np

from plait.kernels.compiled import frozen
from plait.kernels.table_search import Incidence, cluster, descend, swap
from plait.optimizer.linear.linear_program import Floats, Ints
from plait.optimizer.partitioning.objective import cost_of
from plait.optimizer.partitioning.traffic import Traffic, added_up

_EXPONENTS = (8.0, 32.0, 128.0)
"""Of the power means by which loads are judged in turn; at last by their maximum."""

_MOST_PASSES = 30
_MOST_SWAPS = 200
_CLUSTER_PASSES = 5
_KICKED = (0.02, 0.1, 0.3)
"""Shares of the groups that are placed anew to get out of where the search is stuck, in turn."""


class LocalMoves:
    """Moves on one traffic. All randomness comes from a fixed seed."""

    def __init__(self, traffic: Traffic, seed: int = 1) -> None:
        self.traffic = traffic
        self._random = np.random.default_rng(seed)
        self._incidence = incidence_of(traffic)

    def improve(self, choice: Ints, deadline: float) -> Ints:
        """Return a choice at which no single move gains anything, unless time is up; never a dearer one."""
        best, best_cost = choice.copy(), cost_of(self.traffic, choice).total
        found = choice.copy()
        for exponent in _EXPONENTS:
            self._settle(found, exponent, deadline)
            cost = cost_of(self.traffic, found).total
            if cost < best_cost:
                best, best_cost = found.copy(), cost
            if perf_counter() >= deadline:
                break
        self._settle(best, 0.0, deadline)
        return best

    def place(self, choice: Ints, exponent: float = _EXPONENTS[0]) -> None:
        """Put the groups that are in no partition yet (-1) where they cost least, heavy ones first; in place."""
        missing = np.flatnonzero(choice < 0)
        order = missing[np.argsort(-self.traffic.weight[missing], kind="stable")]
        descend(self._incidence, frozen(order, np.int64), exponent, choice, self._processed(choice))

    def kicked(self, choice: Ints, turn: int) -> Ints:
        """Return the choice with some groups placed anew: any, or in turns half of those in a few partitions, the
        fullest among them.
        """
        found = choice.copy()
        if turn % 2:
            found[self._of_few_partitions(choice, 2 + turn // 2 % 2)] = -1
        else:
            count = max(2, round(_KICKED[turn // 2 % len(_KICKED)] * self.traffic.groups))
            found[self._random.permutation(self.traffic.groups)[:count]] = -1
        self.place(found, _EXPONENTS[turn // 2 % 2])
        return found

    def _of_few_partitions(self, choice: Ints, count: int) -> Ints:
        source = self._random.integers(self.traffic.sources)
        fullest = int(np.argmax(self._processed(choice)[source] * self.traffic.latency[source]))
        others = self._random.permutation(self.traffic.partitions)[:count]
        there = np.flatnonzero(np.isin(choice, [fullest, *others.tolist()]))
        return there[self._random.random(len(there)) < 0.5]

    def clusters(self, cap: float) -> Ints:
        """Return the cluster of each group, numbered from 0: groups that share rows, no cluster heavier than `cap`."""
        label, weight = np.arange(self.traffic.groups), frozen(self.traffic.weight, np.float64)
        for _ in range(_CLUSTER_PASSES):
            if not cluster(self._incidence, weight, cap, self._order(), label):
                break
        return np.unique(label, return_inverse=True)[1].astype(np.int64)

    def _settle(self, choice: Ints, exponent: float, deadline: float) -> None:
        processed = self._processed(choice)
        for _ in range(_MOST_PASSES):
            moves = descend(self._incidence, self._order(), exponent, choice, processed)
            swaps = swap(self._incidence, exponent, _MOST_SWAPS, choice, processed)
            if not moves + swaps or perf_counter() >= deadline:
                break

    def _order(self) -> Ints:
        return frozen(self._random.permutation(self.traffic.groups), np.int64)

    def _processed(self, choice: Ints) -> Floats:
        placed = choice >= 0
        return added_up(self.traffic.load[:, placed], choice[placed], self.traffic.partitions)


@cache
def compile_moves() -> None:
    """Compile the kernels, or load them, so that no budget of time pays for it."""
    one = np.ones((1, 2))
    traffic = Traffic(
        source=np.zeros(1, dtype=np.int64),
        start=np.array([0, 2]),
        group=np.arange(2),
        rows=np.ones(2),
        load=one,
        latency=one,
        processing=1.0,
        operator=np.arange(2),
    )
    moves = LocalMoves(traffic)
    moves.clusters(2.0)
    moves.improve(np.zeros(2, dtype=np.int64), 0.0)


def incidence_of(traffic: Traffic) -> Incidence:
    """Return the arrays that the kernels read."""
    pin = np.argsort(traffic.group, kind="stable")
    sizes = np.bincount(traffic.group, minlength=traffic.groups)
    return Incidence(
        source=frozen(traffic.source, np.int64),
        start=frozen(traffic.start, np.int64),
        group=frozen(traffic.group, np.int64),
        rows=frozen(traffic.rows, np.float64),
        row_class=frozen(traffic.row_class, np.int64),
        first=frozen(np.concatenate(([0], np.cumsum(sizes))), np.int64),
        pin=frozen(pin, np.int64),
        load=frozen(traffic.load, np.float64),
        latency=frozen(traffic.latency, np.float64),
        processing=float(traffic.processing),
    )
