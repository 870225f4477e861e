"""Tables within a fraction of a second: clusters of groups that share rows, placed whole, then improved by moves.

What several operators draw from one place is best kept in one place; so groups that share rows are first united into
clusters that a partition can take several of, and whole clusters are placed and exchanged: a problem of hundredfold
fewer moves. Then the groups are freed, and what is left to gain by parting them is gained. The tables that partition
each operator by itself are always among the choices, so none that comes out costs more.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from plait.optimizer.linear.linear_program import Ints
from plait.optimizer.partitioning.local_moves import LocalMoves, compile_moves
from plait.optimizer.partitioning.objective import cost_of
from plait.optimizer.partitioning.traffic import Traffic

_CAPS = (0.5, 1.0, 0.25)
"""The heaviest cluster, by the load of a partition at even loads."""

_FEW = 100
"""Up to so many groups everything is tried, whatever the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """A choice, what it costs, and what it was begun with: ``alone``, ``clusters`` and so on."""

    choice: Ints
    cost: float
    begun: str


def search(traffic: Traffic, seconds: float, start: Ints | None = None, seed: int = 1) -> Searched:
    """Return the best choice that is found within so many seconds; at least the first clusters are placed."""
    compile_moves()
    deadline = perf_counter() + seconds
    searching = _Searching(traffic, deadline, seed)
    if start is not None:
        searching.begin("start", start)
    for cap in _CAPS:
        if min(traffic.partitions, traffic.groups) > 1 and (cap == _CAPS[0] or perf_counter() < deadline):
            searching.cluster(cap)
    if start is None and (traffic.groups < _FEW or perf_counter() < deadline):
        searching.begin("alone", alone(traffic))
    turn = 0
    while perf_counter() < deadline and traffic.groups > 1:
        searching.kick(turn)
        turn += 1
    return searching.best


def of_clusters(traffic: Traffic, into: Ints, deadline: float, seed: int = 1) -> Ints:
    """Return a choice that keeps clusters of groups whole."""
    level = _Level(traffic, into, seed)
    level.improve(level.choice, deadline)
    return level.choice[into]


class _Level:
    """Clusters of groups as groups of their own, and the best choice for them as wholes."""

    def __init__(self, traffic: Traffic, into: Ints, seed: int) -> None:
        self.into = into
        self.traffic = traffic.united(into)
        self.moves = LocalMoves(self.traffic, seed)
        self.choice = np.full(self.traffic.groups, -1)
        self.moves.place(self.choice)
        self.cost = cost_of(self.traffic, self.choice).total

    def improve(self, choice: Ints, deadline: float) -> bool:
        """Improve a choice and keep it, if it becomes the best of this level."""
        found = self.moves.improve(choice, deadline)
        cost = cost_of(self.traffic, found).total
        if cost < self.cost:
            self.choice, self.cost = found, cost
            return True
        return False

    def kick(self, turn: int, deadline: float) -> bool:
        """Place some clusters anew, and improve what comes of it."""
        return self.improve(self.moves.kicked(self.choice, turn), deadline)


class _Searching:
    """The best choice so far, and the levels of clusters that are searched."""

    def __init__(self, traffic: Traffic, deadline: float, seed: int) -> None:
        self._traffic, self._deadline, self._seed = traffic, deadline, seed
        self._moves = LocalMoves(traffic, seed)
        self._levels: list[_Level] = []
        by_itself = alone(traffic)
        self.best = Searched(choice=by_itself, cost=cost_of(traffic, by_itself).total, begun="alone")

    def begin(self, name: str, choice: Ints) -> None:
        """Improve a choice group by group."""
        self._take(name, choice)
        self._take(name, self._moves.improve(choice, self._deadline))

    def cluster(self, cap: float) -> None:
        """Unite groups to clusters up to a weight, place these, and free their groups again."""
        into = self._moves.clusters(cap * self._traffic.weight.sum() / self._traffic.partitions)
        if any(np.array_equal(into, level.into) for level in self._levels) or into.max() + 1 == len(into):
            return
        level = _Level(self._traffic, into, self._seed)
        level.improve(level.choice, self._deadline)
        self._levels.append(level)
        self.begin(f"clusters to {cap:g}", level.choice[into])

    def kick(self, turn: int) -> None:
        """Get one of the levels, or the groups themselves, out of where they are stuck."""
        place = turn % (len(self._levels) + 1)
        if place == len(self._levels):
            choice = self._moves.kicked(self.best.choice, turn)
            self._take("kicked", self._moves.improve(choice, self._deadline))
            return
        level = self._levels[place]
        if level.kick(turn, self._deadline):
            self.begin("kicked clusters", level.choice[level.into])

    def _take(self, name: str, choice: Ints) -> None:
        cost = cost_of(self._traffic, choice).total
        if cost < self.best.cost:
            self.best = Searched(choice=choice, cost=cost, begun=name)


def alone(traffic: Traffic) -> Ints:
    """Return the choice that partitions each operator by itself: evenly, and as if there were no other.

    Key groups go to the partition that has least of their operator so far, heavy ones first.
    """
    choice = np.zeros(traffic.groups, dtype=np.int64)
    for operator in np.unique(traffic.operator):
        groups = np.flatnonzero(traffic.operator == operator)
        filled = np.zeros(traffic.partitions)
        for group in groups[np.argsort(-traffic.weight[groups], kind="stable")].tolist():
            least = int(np.argmin(filled))
            choice[group] = least
            filled[least] += traffic.weight[group]
    return choice


def by_remainder(traffic: Traffic) -> Ints:
    """Return the choice of an engine that knows nothing of its keys: the number of the group, by the partitions."""
    choice = np.zeros(traffic.groups, dtype=np.int64)
    for operator in np.unique(traffic.operator):
        groups = np.flatnonzero(traffic.operator == operator)
        choice[groups] = np.arange(len(groups)) % traffic.partitions
    return choice
