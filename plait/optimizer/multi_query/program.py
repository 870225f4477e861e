"""The problem as an integer linear program, in arrays.

Columns, all between 0 and 1:

- y[a]: arc a is chosen;
- x[n]: node n is reached, which is what filling a store takes; the sum of the y of the arcs into it;
- z[s]: intermediate store s is in use;
- w[s, k]: open store s is partitioned by its key k;
- b[a]: arc a pays the surcharge;
- f[g, a]: the way to goal g runs through arc a. For an arc that nothing but one goal needs that is y[a].

Rows, g any goal, s any intermediate store, n any node that fills it:

- the f[g] are one unit of flow from the root to g, and f[g, a] ≤ y[a];
- Σ f[g, a] ≤ z[s] over the arcs that probe s, since a way probes it once;
- y[a] ≤ z[s] for arcs that help to fill a store;
- z[s] ≤ x[n], and y[a] ≤ x[tail of a] for arcs that help to fill a store. Because the network has no cycles, whatever
  is reached is reached from a root;
- for each query of n streams Σ y[a] / (members joined before a) ≥ 2 (n − 1) over the arcs on the ways to its goals.
  This is what the best plan costs if all joins are equally large. It follows from the integrality of the rest; solving
  the program for complete join graphs, which allow all plans that others do, proved it for n up to 6;
- Σ w[s, ·] = 1, or z[s] for an intermediate store; b[a] ≥ y[a] − Σ w[s, k] over the keys k that a knows;
- Σ size · z is within the budget.

The x alone would do for integers. The flows make the relaxation strong (the usual argument for Steiner trees: two
halves of a goal's way that meet at a node add up there). Flows to the nodes that fill stores do not strengthen it any
further on any workload tried, so they are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from plait.optimizer.linear.linear_program import NONE, Bools, Columns, LinearProgram, Rows
from plait.optimizer.multi_query.network import Floats, Ints
from plait.optimizer.multi_query.problem import AncestorArcs, Problem

_COUNTED = range(4, 7)
"""Sizes of queries whose steps are counted; below, that follows from the other rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program(LinearProgram):
    """The program, and what its columns stand for.

    `x`, `z`, `w` and `b` give the column of a node, a store or an arc, -1 where it has none; w[s] is that of the
    store's first key. The y come first. `flows` are (column, arc, goal) of each f that has its own column.
    """

    x: Ints
    z: Ints
    w: Ints
    b: Ints
    flows: Ints


def program(problem: Problem) -> Program:
    """Return the program of a problem."""
    return _Writer(problem).program()


class _Writer:
    """Numbers the columns, then writes the rows."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.filling = np.array(sorted({node for fills in problem.fills for node in fills}), dtype=np.int64)
        self.helps = self._helps_to_fill()
        self.paying, self.price = _surcharges(problem)
        self.stores = np.flatnonzero([bool(fills) for fills in problem.fills])
        self.open = np.flatnonzero(problem.is_open)
        columns = Columns()
        self.y = columns.block(len(problem.tail), np.arange(len(problem.tail)))
        reached = np.unique(np.concatenate((self.filling, problem.tail[self.helps])))
        self.x = columns.block(len(problem.is_root), reached[~problem.is_root[reached]])
        self.z = columns.block(len(problem.fills), self.stores)
        self.w = np.full(len(problem.fills), NONE)
        for store in self.open.tolist():
            self.w[store] = columns.count
            columns.count += int(problem.choices[store])
        self.b = columns.block(len(problem.tail), self.paying)
        self.flows = self._flows(columns)
        self.count = columns.count
        self.rows = Rows()

    def program(self) -> Program:
        """Return the finished program."""
        problem = self.problem
        cost = np.zeros(self.count)
        cost[self.y] = self.price
        cost[self.z[self.stores]] = problem.opening[self.stores]
        cost[self.b[self.paying]] = problem.surcharge[self.paying]
        is_integer = np.zeros(self.count, dtype=np.bool_)
        is_integer[self.y] = True
        is_integer[self.z[self.stores]] = True
        for store in self.open.tolist():
            is_integer[self.w[store] : self.w[store] + problem.choices[store]] = True
        self._reach()
        self._fill()
        self._flow()
        self._count()
        self._partition()
        self._limit()
        row_lower, row_upper, start, index, value = self.rows.matrix()
        return Program(
            cost=cost,
            lower=np.zeros(self.count),
            upper=np.ones(self.count),
            is_integer=is_integer,
            row_lower=row_lower,
            row_upper=row_upper,
            start=start,
            index=index,
            value=value,
            x=self.x,
            z=self.z,
            w=self.w,
            b=self.b,
            flows=self.flows[self.flows[:, 0] >= len(self.y)],
        )

    def _helps_to_fill(self) -> Bools:
        """Return for each arc whether it may lie on the way to a node that fills a store."""
        problem = self.problem
        wanted = np.zeros(len(problem.is_root), dtype=np.bool_)
        wanted[self.filling] = True
        helps = np.zeros(len(problem.tail), dtype=np.bool_)
        for arc in range(len(problem.tail) - 1, -1, -1):
            if wanted[problem.head[arc]]:
                helps[arc] = wanted[problem.tail[arc]] = True
        return helps

    def _flows(self, columns: Columns) -> Ints:
        """Return (column, arc, goal) of every arc on the way to every goal."""
        ways = AncestorArcs(self.problem)
        flows = []
        for goal in self.problem.goals.tolist():
            arcs = np.array(ways.to(goal), dtype=np.int64)
            own = (self.problem.head[arcs] == goal) & ~self.helps[arcs]
            column = np.where(own, arcs, columns.count + np.cumsum(~own) - 1)
            columns.count += int((~own).sum())
            flows.append(np.stack((column, arcs, np.full(len(arcs), goal)), axis=1))
        return np.concatenate(flows) if flows else np.zeros((0, 3), dtype=np.int64)

    def _reach(self) -> None:
        """x[n] = Σ y into n; y[a] ≤ x[tail]."""
        problem, rows = self.problem, self.rows
        nodes = np.flatnonzero(self.x >= 0)
        sums = np.full(len(self.x), NONE)
        sums[nodes] = rows.open(len(nodes), 0.0, 0.0)
        rows.put(sums[nodes], self.x[nodes], 1.0)
        into = np.flatnonzero(sums[problem.head] >= 0)
        rows.put(sums[problem.head[into]], into, -1.0)
        out = np.flatnonzero(self.helps & ~problem.is_root[problem.tail])
        follows = rows.open(len(out), 0.0, np.inf)
        rows.put(follows, self.x[problem.tail[out]], 1.0)
        rows.put(follows, out, -1.0)

    def _fill(self) -> None:
        """y[a] ≤ z[store]; z[store] ≤ x[n] for all n that fill it."""
        problem, rows = self.problem, self.rows
        probing = np.flatnonzero(self.helps & (self.z[problem.store] >= 0))
        used = rows.open(len(probing), 0.0, np.inf)
        rows.put(used, self.z[problem.store[probing]], 1.0)
        rows.put(used, probing, -1.0)
        pairs = _pairs((store, node) for store, fills in enumerate(problem.fills) for node in fills)
        filled = rows.open(len(pairs), 0.0, np.inf)
        rows.put(filled, self.x[pairs[:, 1]], 1.0)
        rows.put(filled, self.z[pairs[:, 0]], -1.0)

    def _flow(self) -> None:
        """One unit into each goal, as much out of every node as into it; f ≤ y; Σ f ≤ z."""
        problem, rows = self.problem, self.rows
        column, arc, goal = self.flows.T
        heads = goal * len(problem.is_root) + problem.head[arc]
        tails = goal * len(problem.is_root) + problem.tail[arc]
        passing, place = np.unique(heads, return_inverse=True)
        is_end = passing // len(problem.is_root) == passing % len(problem.is_root)
        balance = rows.open(len(passing), 0.0, 0.0)
        rows.bound(balance[is_end], 1.0)
        rows.put(balance[place], column, 1.0)
        out = np.flatnonzero(~problem.is_root[problem.tail[arc]])
        rows.put(balance[np.searchsorted(passing, tails[out])], column[out], -1.0)

        shared = np.flatnonzero(column >= len(self.y))
        within = rows.open(len(shared), 0.0, np.inf)
        rows.put(within, arc[shared], 1.0)
        rows.put(within, column[shared], -1.0)

        probing = np.flatnonzero(self.z[problem.store[arc]] >= 0)
        uses, place = np.unique(goal[probing] * len(problem.fills) + problem.store[arc[probing]], return_inverse=True)
        used = rows.open(len(uses), 0.0, np.inf)
        rows.put(used, self.z[uses % len(problem.fills)], 1.0)
        rows.put(used[place], column[probing], -1.0)

    def _count(self) -> None:
        """Σ y[a] / (members joined before a) ≥ 2 (n − 1) over the arcs on the ways to the goals of a query."""
        rows = self.rows
        for query in self.problem.queries:
            if len(query) in _COUNTED:
                arcs = np.unique(self.flows[np.isin(self.flows[:, 2], query), 1])
                row = np.repeat(rows.open(1, 2.0 * (len(query) - 1), np.inf), len(arcs))
                rows.put(row, arcs, 1.0 / self.problem.joined[arcs])

    def _partition(self) -> None:
        """Σ w[s, ·] = 1 or z[s]; b[a] ≥ y[a] − Σ w[s, known]."""
        problem, rows = self.problem, self.rows
        for store in self.open.tolist():
            constant = 1.0 if self.z[store] < 0 else 0.0
            row = np.repeat(rows.open(1, constant, constant), problem.choices[store])
            rows.put(row, self.w[store] + np.arange(problem.choices[store]), 1.0)
            if self.z[store] >= 0:
                rows.put(row[:1], self.z[store : store + 1], -1.0)
        pays = rows.open(len(self.paying), 0.0, np.inf)
        rows.put(pays, self.b[self.paying], 1.0)
        rows.put(pays, self.paying, -1.0)
        pairs = _pairs(
            (row, int(self.w[problem.store[arc]]) + key)
            for row, arc in zip(pays.tolist(), self.paying.tolist(), strict=True)
            for key in sorted(problem.known[arc])
        )
        rows.put(pairs[:, 0], pairs[:, 1], 1.0)

    def _limit(self) -> None:
        """Σ size · z ≤ budget."""
        if np.isfinite(self.problem.budget) and len(self.stores):
            row = np.repeat(self.rows.open(1, -np.inf, self.problem.budget), len(self.stores))
            self.rows.put(row, self.z[self.stores], self.problem.size[self.stores])


def _pairs(pairs: Iterable[tuple[int, int]]) -> Ints:
    return np.array(list(pairs), dtype=np.int64).reshape(-1, 2)


def _surcharges(problem: Problem) -> tuple[Ints, Floats]:
    """Return the arcs whose surcharge depends on a solution, and what the arcs cost apart from such surcharges."""
    price = problem.price.copy()
    paying = []
    is_open = problem.is_open
    for arc in np.flatnonzero(problem.surcharge > 0).tolist():
        known, store = problem.known[arc], problem.store[arc]
        if not known:
            price[arc] += problem.surcharge[arc]
        elif is_open[store] and len(known) < problem.choices[store]:
            paying.append(arc)
    return np.array(paying, dtype=np.int64), price
