"""|⋈ X| of sets of relations, as one function of the set: estimates, put right by what was measured.

Whichever way a plan goes through it, a set has one size. Else steps in force, which are measured, would be compared
with others that are guessed, and a guess that is too low would win until it is taken, and measured, and another wins.

- Equalities on one value (r.k = s.k = t.k) are implied by each other once enough of them hold: of those that compare
  what is equal already, none counts.
- A measured step says how large its sets are: |X ∪ next| = |X| · γ · μ. Of one set the ways there are averaged, by
  what was counted of each, and how lately.
- A set nobody has reached is estimated, times what the largest measured one in it was off by.
- So is, in part, one of which little was counted, as by samples: as if `_GUESSED` matches had been counted as
  estimated (what is expected of a rate with a gamma prior, of which so many events were seen). Else of many orders
  that are hardly known the one would win of which too little was seen by chance. An estimate that what was counted
  refutes counts for less: one of a thousandth would make a thousandth of the best measurement.
- Which relation began a tuple does not matter, unless one of two relations begins more of their join (`beginnings`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from itertools import combinations
from operator import or_

from plait.optimizer.estimate.cardinality import Cardinality, Extent
from plait.optimizer.pick.beginnings import Beginnings, Ranks
from plait.plan.conditions import Joining, conditions, key_pairs, placed
from plait.plan.model import Member
from plait.plan.step_names import joined_name
from plait.query.masks import Mask, connected_levels, has_more_sets, positions
from plait.query.remembering import remembered
from plait.stats.model import Statistics

_GUESSED = 30.0
"""What is estimated weighs as much as so many matches that are counted: as if it were mostly off by 18 %."""
_CHANCE = 2.0
"""Where it is off by more, and by so many standard deviations more than what was counted may be, it weighs less."""

MOST_SETS = 2_048
"""Of relations that may be joined in more ways than to come to so many sets, not all sets are looked at: as of twelve
that are all joined with each other, or of a star with twelve.
"""

Pairs = Mapping[tuple[int, int], Joining]
"""What joins two relations, by their positions, the smaller one first."""


class SetSizes:
    """Sizes of all sets of some relations, each computed once."""

    def __init__(
        self,
        members: Sequence[Member],
        extents: Sequence[Extent],
        ranks: Ranks,
        pairs: Pairs,
        cardinality: Cardinality,
    ) -> None:
        self._members, self._extents, self._pairs, self._cardinality = members, extents, pairs, cardinality
        self._rows = [
            cardinality.selected_rows(extent, member.selection) for member, extent in zip(members, extents, strict=True)
        ]
        self._shares = {
            (left, right): cardinality.between(extents[left], extents[right], on)
            for (left, right), on in sorted(pairs.items())
            if on
        }
        self._estimates: dict[Mask, float] = {}
        self._sizes: dict[Mask, float] = {}
        by_name = self._named_sets(cardinality.statistics)
        self._beginnings = Beginnings(extents, ranks, cardinality)
        self._known = self._measured(cardinality.statistics, by_name)

    def size(self, mask: Mask) -> float:
        """Return |⋈ X|."""
        known = self._sizes.get(mask)
        if known is None:
            known = self._sizes[mask] = self._corrected(mask)
        return known

    def knows(self, mask: Mask) -> bool:
        """Tell whether the size of a set was measured, or follows from rows and values that are known."""
        inside = positions(mask)
        return mask in self._known or (
            all(self._cardinality.knows_rows(self._extents[position]) for position in inside)
            and all(
                self._cardinality.knows_between(self._extents[left], self._extents[right], self._pairs[left, right])
                for left, right in combinations(inside, 2)
                if self._pairs.get((left, right))
            )
        )

    @property
    def origins(self) -> Mask:
        """The relations of which it matters that a tuple began with them."""
        return self._beginnings.origins

    def growth(self, joined: Mask, unit: Mask, start: Mask = 0) -> float:
        """Return how many tuples of X ∪ next there are for one of X. `start`: the relation that began, where that
        matters (`origins`).
        """
        before, times = self.size(joined), self._beginnings.of(start, unit) if start else 1.0
        return times * self.size(joined | unit) / before if before > 0 else 0.0

    def _corrected(self, mask: Mask) -> float:
        guess = self._guess(mask)
        if mask not in self._known:
            return guess
        measured, weight = self._known[mask]
        if guess <= 0 or measured <= 0:
            return measured
        off = math.log(measured / guess) ** 2 - _CHANCE**2 / weight
        guessed = min(_GUESSED, 1.0 / off) if off > 0 else _GUESSED
        return (guessed + weight) / (guessed / guess + weight / measured)

    def _guess(self, mask: Mask) -> float:
        """Return what a size would be taken for if it were not measured."""
        inside = [each for each in self._known if each & mask == each != mask]
        if not inside:
            return self._estimate(mask)
        largest = max(inside, key=lambda each: (each.bit_count(), -each))
        estimate = self._estimate(largest)
        return self._estimate(mask) * (self.size(largest) / estimate if estimate > 0 else 1.0)

    def _estimate(self, mask: Mask) -> float:
        known = self._estimates.get(mask)
        if known is None:
            inside = positions(mask)
            rows = math.prod(self._rows[position] for position in inside)
            known = self._estimates[mask] = rows * math.prod(self._counting(inside))
        return known

    def _counting(self, inside: tuple[int, ...]) -> list[float]:
        """Return the selectivities that count: of a single equality only if it does not follow from others, the least
        selective ones first, as relations that are joined already have values in common.
        """
        edges = [(self._shares[pair], pair) for pair in combinations(inside, 2) if pair in self._shares]
        equal: dict[tuple[int, str], tuple[int, str]] = {}

        def root(key: tuple[int, str]) -> tuple[int, str]:
            while key in equal:
                key = equal[key]
            return key

        shares = []
        for share, (left, right) in sorted(edges, key=lambda edge: (-edge[0], edge[1])):
            on = self._pairs[left, right]
            ends = [(root((left, mine.name)), root((right, theirs.name))) for mine, theirs in key_pairs(on)]
            if len(on) == 1 and ends and ends[0][0] == ends[0][1]:
                continue
            shares.append(share)
            equal.update({one: other for one, other in ends if one != other})
        return shares

    def _named_sets(self, statistics: Statistics) -> Mapping[str, Mask]:
        """Return the sets that steps were measured of, by name, with others where that is no work."""
        if not statistics.steps or not any(map(statistics.has_step_from, map(_alone, self._members))):
            return {}  # what is measured begins with a relation, and then goes on from there
        near = _near(len(self._members), self._pairs)
        if has_more_sets(near, MOST_SETS):
            names = {name for step in statistics.steps for name in (step.before, step.after)}
            return _measured_sets(self._members, self._pairs, near, names)
        pairs = tuple(sorted(self._pairs.items(), key=lambda item: item[0]))
        return _sets_by_name(tuple(self._members), pairs)

    def _measured(self, statistics: Statistics, by_name: Mapping[str, Mask]) -> dict[Mask, tuple[float, float]]:
        """Return the sizes of the sets of two or more relations that measured steps lead to, and what they weigh."""
        if not by_name:
            return {}
        steps = [
            (by_name[step.before], by_name[step.after], step.matching * step.matches, step.weight)
            for step in statistics.steps
            if step.before in by_name and step.after in by_name
        ]
        known: dict[Mask, float] = {1 << position: rows for position, rows in enumerate(self._rows)}
        sizes_by_set: dict[Mask, list[tuple[float, float]]] = {}
        for before, after, growth, weight in sorted(steps, key=lambda step: (step[0].bit_count(), step[0], step[1])):
            if before not in known and before in sizes_by_set:
                known[before] = _average(sizes_by_set[before])
            if before in known:
                growth /= self._beginnings.of_all(before, after ^ before)
                sizes_by_set.setdefault(after, []).append((known[before] * growth, weight))
        return {
            mask: (_average(sizes), math.fsum(weight for _, weight in sizes)) for mask, sizes in sizes_by_set.items()
        }


@remembered(1 << 11)  # plans are made again and again for the same relations
def _sets_by_name(
    members: tuple[Member, ...], pairs: tuple[tuple[tuple[int, int], Joining], ...]
) -> Mapping[str, Mask]:
    """Return the sets that a probe order may come to, by the names of their joins."""
    between = dict(pairs)
    near = _near(len(members), between)
    everything = (1 << len(members)) - 1
    sets = {mask for level in connected_levels(near) for mask in level}
    return {
        _name(members, between, mask): mask
        for mask in (sorted(sets) if everything in sets else range(1, everything + 1))
    }


def _measured_sets(
    members: Sequence[Member], pairs: Pairs, near: Sequence[Mask], names: Collection[str]
) -> Mapping[str, Mask]:
    """Return by name the sets that steps of these `names` come to, one relation after the other."""
    waiting, seen = [1 << position for position in range(len(members))], set[Mask]()
    found: dict[str, Mask] = {}
    while waiting:
        mask = waiting.pop()
        name = _name(members, pairs, mask)
        if name in names:
            found[name] = mask
            around = reduce(or_, (near[position] for position in positions(mask))) & ~mask
            longer = {mask | 1 << position for position in positions(around)} - seen
            waiting += sorted(longer)
            seen |= longer
    return found


def _near(count: int, pairs: Pairs) -> tuple[Mask, ...]:
    """Return what each of so many relations is joined with."""
    near = [0] * count
    for (left, right), on in pairs.items():
        if on:
            near[left] |= 1 << right
            near[right] |= 1 << left
    return tuple(near)


@remembered(1 << 12)  # as above
def _alone(member: Member) -> str:
    """Return the name of a single relation."""
    return joined_name((member,), frozenset())


def _name(members: Sequence[Member], pairs: Pairs, mask: Mask) -> str:
    """Return the name of a set by content."""
    inside = positions(mask)
    joined_on = conditions(
        predicate
        for (left, one), (right, other) in combinations(enumerate(inside), 2)
        for predicate in placed(pairs.get((one, other), ()), left, right)
    )
    return joined_name([members[position] for position in inside], joined_on)


def _average(weighed: Sequence[tuple[float, float]]) -> float:
    """Return the average of (size, weight)."""
    return math.fsum(size * weight for size, weight in weighed) / math.fsum(weight for _, weight in weighed)


__all__ = ["MOST_SETS", "Pairs", "SetSizes"]
