"""What key groups draw from the sources: the data of paper 001's model (table I), in arrays.

Every operator (the store of a join, an aggregate) cuts its key space into key groups. All key groups of all operators
are numbered through; a *choice* is an array that gives each its partition. Both inputs of a join are one operator and
so have one table (equation 3); a key group then draws rows from two sources.

Rows of a source that fall into the same key groups are one **row class**. Such a row is sent once to each distinct
partition among those of its groups. With `rows` all equal within a class, equation 4's maximum counts exactly that;
where a class stands for more than one row, each of its groups may want another part of it, and the maximum is the
paper's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from plait.errors import OptionError
from plait.optimizer.linear.linear_program import Bools, Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """What a row costs: sent over the network, handed over within a node, processed (Lat_net, Lat_mem, Lat_proc)."""

    network: float = 1.0
    memory: float = 0.1
    processing: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.memory <= self.network or self.processing < 0:
            raise OptionError(
                f"expected 0 < memory ≤ network and processing ≥ 0, found memory {self.memory:g}, "
                f"network {self.network:g}, processing {self.processing:g}"
            )

    def to_partitions(self, at: Ints, nodes: int) -> Floats:
        """Return what a row costs to each partition, `at` being their nodes, where all nodes read equally many rows.

        >>> Latencies(network=1.0, memory=0.1).to_partitions(np.array([0, 1]), nodes=2).tolist()
        [0.55, 0.55]
        """
        local = np.ones(len(at)) / nodes
        return local * self.memory + (1 - local) * self.network

    def from_node(self, at: Ints, node: int) -> Floats:
        """Return what a row costs to each partition if one node reads all of the source (Lat_p of table I).

        >>> Latencies(network=1.0, memory=0.1).from_node(np.array([0, 1, 1]), node=1).tolist()
        [1.0, 0.1, 0.1]
        """
        return np.where(at == node, self.memory, self.network)


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """`source` of each row class; its pins ``start[c]:start[c + 1]``, each a `group` that wants so many of its `rows`
    (at least one pin, no group twice). `load[s, g]`: the rows of source s that group g processes (Card).
    `latency[s, p]` is Lat_p, `processing` Lat_proc. `operator` of each group. Arrays are not to be written to.
    """

    source: Ints
    start: Ints
    group: Ints
    rows: Floats
    load: Floats
    latency: Floats
    processing: float
    operator: Ints

    def __post_init__(self) -> None:
        if self.load.shape[0] != self.latency.shape[0] or not self.latency.shape[1]:
            raise OptionError(
                f"expected latencies of {self.load.shape[0]} sources to at least one partition, "
                f"found an array of shape {self.latency.shape}"
            )

    @property
    def groups(self) -> int:
        """How many key groups there are, of all operators."""
        return int(self.load.shape[1])

    @property
    def partitions(self) -> int:
        """How many partitions there are to choose from."""
        return int(self.latency.shape[1])

    @property
    def sources(self) -> int:
        """How many sources there are."""
        return int(self.load.shape[0])

    @cached_property
    def row_class(self) -> Ints:
        """The class of each pin."""
        return np.repeat(np.arange(len(self.source)), np.diff(self.start))

    @cached_property
    def weight(self) -> Floats:
        """The rows each group processes, of all sources."""
        return np.asarray(self.load.sum(axis=0))

    @property
    def is_uniform(self) -> bool:
        """Whether all partitions are alike, so that they may be exchanged."""
        return bool((self.latency == self.latency[:, :1]).all())

    def restricted(self, keep: Bools) -> Traffic:
        """Return what these groups draw by themselves; they are numbered anew, in order."""
        number = np.cumsum(keep) - 1
        pins = keep[self.group]
        sizes = np.bincount(self.row_class[pins], minlength=len(self.source))
        left = sizes > 0
        return replace(
            self,
            source=self.source[left],
            start=np.concatenate(([0], np.cumsum(sizes[left]))),
            group=number[self.group[pins]],
            rows=self.rows[pins],
            load=self.load[:, keep],
            operator=self.operator[keep],
        )

    def towards(self, partitions: Ints) -> Traffic:
        """Return the same with these partitions alone to choose from."""
        return replace(self, latency=self.latency[:, partitions])

    def united(self, into: Ints) -> Traffic:
        """Return the traffic of clusters of groups, `into` being the cluster of each, numbered from 0.

        A cluster wants of a class what the group of it wants most of. Classes that concern the same clusters become
        one, what each wants of them being added up: that is exact where clusters want equal parts, and in no case more
        than the cost of the clusters as they are.
        """
        clusters = int(into.max()) + 1 if len(into) else 0
        pins = _largest(self.row_class * max(clusters, 1) + into[self.group], self.rows)
        row_class, cluster = np.divmod(pins.key, max(clusters, 1))
        load = added_up(self.load, into, clusters)
        operator = np.zeros(clusters, dtype=np.int64)
        operator[into[::-1]] = self.operator[::-1]
        source, start, group, rows = _alike(self.source, row_class, cluster, pins.value)
        return replace(self, source=source, start=start, group=group, rows=rows, load=load, operator=operator)


def added_up(load: Floats, into: Ints, count: int) -> Floats:
    """Return the loads of groups (float64[sources, groups]) by what each group belongs to, float64[sources, count]."""
    # Of nothing `bincount` makes whole numbers, for which kernels would be compiled once more.
    return np.stack([np.bincount(into, weights=each, minlength=count).astype(np.float64) for each in load])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Keyed:
    """Distinct keys, ascending, and a value for each."""

    key: Ints
    value: Floats


def _largest(key: Ints, value: Floats) -> _Keyed:
    """Return the largest value of each key."""
    order = np.argsort(key, kind="stable")
    distinct, first = np.unique(key[order], return_index=True)
    largest = np.maximum.reduceat(value[order], first) if len(first) else np.zeros(0)
    return _Keyed(key=distinct, value=largest)


def _alike(source: Ints, row_class: Ints, group: Ints, rows: Floats) -> tuple[Ints, Ints, Ints, Floats]:
    """Return `source`, `start`, `group` and `rows` with classes of one source and the same groups made one.

    The pins of a class ascend.
    """
    sizes = np.bincount(row_class, minlength=len(source))
    start = np.concatenate(([0], np.cumsum(sizes)))
    number: dict[tuple[int, bytes], int] = {}
    of = np.array(
        [
            number.setdefault((int(source[each]), group[start[each] : start[each + 1]].tobytes()), len(number))
            for each in range(len(source))
        ],
        dtype=np.int64,
    )
    first = np.zeros(len(number), dtype=np.int64)
    first[of[::-1]] = np.arange(len(source))[::-1]
    new_start = np.concatenate(([0], np.cumsum(sizes[first])))
    added = np.zeros(int(new_start[-1]))
    place = np.arange(len(row_class)) - start[row_class]
    np.add.at(added, new_start[of[row_class]] + place, rows)
    kept = np.zeros(len(source), dtype=np.bool_)
    kept[first] = True
    return source[first], new_start, group[kept[row_class]], added
