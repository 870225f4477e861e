"""Equations 1 to 10 of paper 001 as a mixed-integer program.

Columns: a[g, p], group g goes to partition p; y[k, p], some group that wants at least the k-th amount of its class is
in p; z[s], the cost of the fullest partition of source s.

The paper writes the maximum of equation 4 as M ≥ a·card for each query (equation 5). Here the groups of a class are
sorted by what they want, c₁ ≥ c₂ ≥ …: the maximum is Σ (cₖ − cₖ₊₁)·y[k], y[k] ≥ y[k − 1], y[k] ≥ a of the k-th group.
For whole numbers that is the same. Between them it is larger: the maximum of a subset is submodular, and this is its
convex closure (Lovász's extension), so no linear rows over one class and one partition can be tighter.

Partitions that are alike may be exchanged, P! times over. So the heaviest group goes to the first of them, the next to
one of the first two, and so on. A group that shares no rows with others needs no y. `load_cuts` adds rows that make the
relaxation pay for even loads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from plait.optimizer.linear.linear_program import Columns, Floats, Ints, LinearProgram, Rows
from plait.optimizer.partitioning.load_cuts import load_cuts
from plait.optimizer.partitioning.lower_bound import processing_bounds
from plait.optimizer.partitioning.objective import rows_processed
from plait.optimizer.partitioning.traffic import Traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class TableProgram:
    """The program; a[g, p] is column g·P + p. `levels` are the y: `members[k]` the groups, one of which raises it."""

    linear: LinearProgram
    level: Ints
    members: tuple[tuple[int, ...], ...]
    fullest: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class _Level:
    """A y of one class: its groups so far, those it adds to the level `below` (its place, -1 for none), its cost."""

    members: tuple[int, ...]
    added: tuple[int, ...]
    below: int
    rows: float
    source: int


def table_program(traffic: Traffic, *, as_printed: bool = False) -> TableProgram:
    """Return the program of a traffic; `as_printed`: the paper's own rows for the maximum, and symmetry."""
    return _PrintedWriter(traffic).program() if as_printed else _Writer(traffic).program()


class _Writer:
    def __init__(self, traffic: Traffic) -> None:
        self.traffic = traffic
        self.partitions = traffic.partitions
        self.last: dict[int, int] = {}
        columns = Columns()
        self.a = columns.block(traffic.groups * self.partitions, np.arange(traffic.groups * self.partitions))
        self.levels = list(self._levels())
        count = len(self.levels) * self.partitions
        self.y = columns.block(count, np.arange(count)).reshape(-1, self.partitions)
        self.z = columns.block(traffic.sources, np.arange(traffic.sources))
        self.count = columns.count
        self.rows = Rows()

    def program(self) -> TableProgram:
        """Return the finished program."""
        traffic = self.traffic
        upper = np.ones(self.count)
        lower = np.zeros(self.count)
        upper[self.y] = self._largest_level()
        upper[self.z] = (traffic.load.sum(axis=1) * traffic.latency.max(axis=1)) * max(traffic.processing, 1.0)
        lower[self.z] = processing_bounds(traffic)
        upper[self._excluded()] = 0.0
        is_integer = np.zeros(self.count, dtype=np.bool_)
        is_integer[self.a] = True
        self._assign()
        self._raise()
        self._fill()
        self._cut()
        row_lower, row_upper, start, index, value = self.rows.matrix()
        return TableProgram(
            linear=LinearProgram(
                cost=self._cost(),
                lower=lower,
                upper=upper,
                is_integer=is_integer,
                row_lower=row_lower,
                row_upper=row_upper,
                start=start,
                index=index,
                value=value,
            ),
            level=self.y,
            members=tuple(level.members for level in self.levels),
            fullest=self.z,
        )

    def _levels(self) -> Iterator[_Level]:
        """Yield the y of each class of several groups, those that want most first."""
        traffic, place = self.traffic, 0
        for row_class, (low, high) in enumerate(_bounds(traffic)):
            if high - low < 2:
                continue
            order = low + np.argsort(-traffic.rows[low:high], kind="stable")
            rows = [*traffic.rows[order].tolist(), 0.0]
            ends = [at for at in range(high - low) if rows[at] > rows[at + 1]]
            for number, (begin, end) in enumerate(zip((-1, *ends), ends, strict=False)):
                yield _Level(
                    members=tuple(traffic.group[order[: end + 1]].tolist()),
                    added=tuple(traffic.group[order[begin + 1 : end + 1]].tolist()),
                    below=place - 1 if number else -1,
                    rows=rows[end] - rows[end + 1],
                    source=int(traffic.source[row_class]),
                )
                self.last[row_class] = place
                place += 1

    def _largest_level(self) -> float:
        return 1.0

    def _cost(self) -> Floats:
        cost = np.zeros(self.count)
        traffic = self.traffic
        sizes = np.diff(traffic.start)
        single = traffic.start[:-1][sizes == 1]
        sent = traffic.rows[single, None] * traffic.latency[traffic.source[sizes == 1]]
        np.add.at(cost, traffic.group[single, None] * self.partitions + np.arange(self.partitions), sent)
        for place, level in enumerate(self.levels):
            cost[self.y[place]] = level.rows * traffic.latency[level.source]
        cost[self.z] = 1.0
        return cost

    def _excluded(self) -> Ints:
        """Return the a that symmetry lets be 0: of the n heaviest groups the k-th goes to one of the first k."""
        if not self.traffic.is_uniform:
            return np.zeros(0, dtype=np.int64)
        heavy = np.argsort(-self.traffic.weight, kind="stable")[: self.partitions]
        pairs = [(group, there) for rank, group in enumerate(heavy) for there in range(rank + 1, self.partitions)]
        return np.array([group * self.partitions + there for group, there in pairs], dtype=np.int64)

    def _assign(self) -> None:
        """Equation 2."""
        groups = np.arange(self.traffic.groups)
        rows = self.rows.open(len(groups), 1.0, 1.0)
        self.rows.put(np.repeat(rows, self.partitions), self.a, 1.0)

    def _raise(self) -> None:
        """y[k] ≥ y[k − 1], y[k] ≥ a: equations 4 and 5."""
        everywhere = np.arange(self.partitions)
        for place, level in enumerate(self.levels):
            raising = [group * self.partitions + everywhere for group in level.added]
            raising += [self.y[level.below]] if level.below >= 0 else []
            for columns in raising:
                rows = self.rows.open(self.partitions, 0.0, np.inf)
                self.rows.put(rows, self.y[place], 1.0)
                self.rows.put(rows, columns, -1.0)

    def _fill(self) -> None:
        """z ≥ what each partition processes: equations 6, 8 and 9."""
        traffic = self.traffic
        for source in range(traffic.sources):
            rows = self.rows.open(self.partitions, 0.0, np.inf)
            self.rows.put(rows, np.repeat(self.z[source], self.partitions), 1.0)
            for group in np.flatnonzero(traffic.load[source]).tolist():
                weights = traffic.load[source, group] * traffic.latency[source] * traffic.processing
                self.rows.put(rows, group * self.partitions + np.arange(self.partitions), -weights)

    def _cut(self) -> None:
        """What the fullest partition owes to classes that are parted seldom; λ is the sum of a class's last y."""
        members = {row_class: self.levels[place].members for row_class, place in self.last.items()}
        for cut in load_cuts(self.traffic, members):
            row = self.rows.open(1, cut.least, np.inf)
            self.rows.put(row, self.z[cut.source : cut.source + 1], 1.0)
            for row_class in cut.classes:
                columns = self.y[self.last[row_class]]
                self.rows.put(np.repeat(row, self.partitions), columns, cut.slope)


class _PrintedWriter(_Writer):
    """The maximum as the paper prints it: one M for each class and partition, M ≥ a·card."""

    def _levels(self) -> Iterator[_Level]:
        for row_class, (low, high) in enumerate(_bounds(self.traffic)):
            if high - low > 1:
                groups = tuple(self.traffic.group[low:high].tolist())
                yield _Level(
                    members=groups, added=groups, below=-1, rows=1.0, source=int(self.traffic.source[row_class])
                )

    def _largest_level(self) -> float:
        return float(self.traffic.rows.max())

    def _excluded(self) -> Ints:
        return np.zeros(0, dtype=np.int64)

    def _cut(self) -> None:
        pass

    def _raise(self) -> None:
        wide = [each for each in _bounds(self.traffic) if each[1] - each[0] > 1]
        for place, (low, high) in enumerate(wide):
            for pin in range(low, high):
                rows = self.rows.open(self.partitions, 0.0, np.inf)
                self.rows.put(rows, self.y[place], 1.0)
                columns = self.traffic.group[pin] * self.partitions + np.arange(self.partitions)
                self.rows.put(rows, columns, -self.traffic.rows[pin])


def _bounds(traffic: Traffic) -> Iterator[tuple[int, int]]:
    return pairwise(traffic.start.tolist())


def values_of(traffic: Traffic, program: TableProgram, choice: Ints) -> Floats:
    """Return the values of the columns that stand for a choice, as `symmetric` gives it."""
    values = np.zeros(len(program.linear.cost))
    values[np.arange(traffic.groups) * traffic.partitions + choice] = 1.0
    for columns, members in zip(program.level, program.members, strict=True):
        values[columns[choice[list(members)]]] = 1.0
    processed = (rows_processed(traffic, choice) * traffic.latency).max(axis=1) * traffic.processing
    values[program.fullest] = np.maximum(processed, program.linear.lower[program.fullest])
    return values


def symmetric(traffic: Traffic, choice: Ints) -> Ints:
    """Return the same choice with partitions numbered as the heaviest groups come to them, where all are alike."""
    if not traffic.is_uniform:
        return choice
    heavy = np.argsort(-traffic.weight, kind="stable")
    order = list(dict.fromkeys([*choice[heavy].tolist(), *range(traffic.partitions)]))
    number = np.zeros(traffic.partitions, dtype=np.int64)
    number[order] = np.arange(traffic.partitions)
    return number[choice]
