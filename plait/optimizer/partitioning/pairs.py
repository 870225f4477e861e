"""Overlap of two operators at a time (SharedWith of paper 001): counted, sketched, and made traffic of.

Row classes need every operator's key group of the same sampled rows. Where these cannot be had together, the overlap of
pairs serves: a row that n operators want is sent to at most 1 + (number of pairs that part) partitions, for any n − 1
pairs that hold the operators together. So pairs along a tree of operators give an upper bound of what is sent (Hunter's
bound of a union), which is exact for two operators, and the tree of the largest overlaps gives the lowest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from plait.kernels.compiled import UInt64s
from plait.kernels.sketch import estimate_distinct, kmv, merge
from plait.optimizer.linear.linear_program import Floats, Ints
from plait.optimizer.partitioning.overlap import Operator, Sampled, first_groups, owners
from plait.optimizer.partitioning.traffic import Traffic
from plait.plan.key_groups import UNWANTED


def rows_shared(sample: Sampled, one: int, other: int, sizes: tuple[int, int]) -> Floats:
    """Return the rows that each key group of one operator shares with each of another, float64[groups, groups].

    `one` and `other` are columns of the sample, `sizes` their numbers of key groups.
    """
    left, right = sample.key_groups[:, one], sample.key_groups[:, other]
    both = (left != UNWANTED) & (right != UNWANTED)
    counts = np.bincount(left[both] * sizes[1] + right[both], minlength=sizes[0] * sizes[1])
    return np.asarray(counts.reshape(sizes) * sample.rows_each, dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSketches:
    """The rows in each key group of an operator, as the `k` smallest hashes of their numbers."""

    sketches: tuple[UInt64s, ...]
    k: int

    @classmethod
    def of(cls, rows: Ints, key_groups: Ints, groups: int, k: int = 256) -> RowSketches:
        """Return sketches of rows by number; rows that are `UNWANTED` are in none."""
        found = tuple(kmv(rows[key_groups == group], k) for group in range(groups))
        return cls(sketches=found, k=k)

    def merged(self, other: RowSketches) -> RowSketches:
        """Return the sketches of this batch and another."""
        pairs = zip(self.sketches, other.sketches, strict=True)
        return RowSketches(sketches=tuple(merge(one, two, self.k) for one, two in pairs), k=self.k)

    def rows_shared(self, other: RowSketches) -> Floats:
        """Estimate what `rows_shared` counts: the share of the union that is in both, by the size of the union."""
        found = np.zeros((len(self.sketches), len(other.sketches)))
        for row, mine in enumerate(self.sketches):
            for column, theirs in enumerate(other.sketches):
                union = merge(mine, theirs, self.k)
                if len(union):
                    both = np.isin(union, mine) & np.isin(union, theirs)
                    found[row, column] = both.mean() * estimate_distinct(union, self.k)
        return found


def tree_of(strength: Mapping[tuple[int, int], float]) -> tuple[tuple[int, int], ...]:
    """Return the pairs of a heaviest spanning forest.

    >>> tree_of({(0, 1): 5.0, (0, 2): 1.0, (1, 2): 3.0})
    ((0, 1), (1, 2))
    """
    joined: dict[int, int] = {}

    def root(of: int) -> int:
        while joined.get(of, of) != of:
            of = joined[of]
        return of

    kept = []
    for pair in sorted(strength, key=lambda each: (-strength[each], each)):
        one, other = (root(each) for each in pair)
        if one != other:
            joined[one] = other
            kept.append(pair)
    return tuple(sorted(kept))


def of_pairs(
    operators: Sequence[Operator],
    cards: Mapping[int, Floats],
    shared: Mapping[tuple[int, int], Floats],
    latency: Floats,
    processing: float,
) -> Traffic:
    """Return the traffic of one source from pairs along a tree: what is sent by it is an upper bound.

    `cards` by operator and `shared` by pair of operators (a tree, see `tree_of`). A pair of groups that share w rows is
    a class of two that costs w, or 2w if they part; a class of one with the rest makes the sum come out.
    """
    first = first_groups(operators)
    load = np.zeros((1, int(first[-1])))
    for operator, card in cards.items():
        load[0, first[operator] : first[operator + 1]] = card
    rest, groups, rows = load[0].copy(), [], []
    for (one, other), overlap in shared.items():
        left, right = np.nonzero(overlap)
        amounts = overlap[left, right]
        groups.append(np.stack((first[one] + left, first[other] + right), axis=1))
        rows.append(amounts)
        np.subtract.at(rest, groups[-1], amounts[:, None])
    pins = np.concatenate([*(each.ravel() for each in groups), np.arange(len(rest))])
    sizes = np.concatenate((np.full(sum(map(len, rows)), 2), np.ones(len(rest), dtype=np.int64))).astype(np.int64)
    return Traffic(
        source=np.zeros(len(sizes), dtype=np.int64),
        start=np.concatenate(([0], np.cumsum(sizes))),
        group=pins.astype(np.int64),
        rows=np.concatenate([*(np.repeat(each, 2) for each in rows), rest]),
        load=load,
        latency=latency[None, :],
        processing=processing,
        operator=owners(operators),
    )
