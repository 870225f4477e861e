"""How rows of two relations of a query with outer, semi and anti joins meet: by the keys that ON compares, through the
indexes that probes use.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from plait.operators.close.sides import Chosen, Mask, Side, rows_of
from plait.operators.probe.lookups import lookup_of
from plait.operators.probe.partials import NO_LOW, Rows
from plait.operators.probe.verifying import Verifier
from plait.plan.conditions import Joining, joined_by, placed, turned
from plait.plan.model import KeyColumn, Plan, Probed, Step, Store
from plait.query.model import JoinStep, Query, relations_of
from plait.query.predicates import Conjunction, Equality, operands_of

_CAPACITY: Final = 1 << 20
_WORTH_THREADS: Final = 50_000
"""For so many rows partitions are looked through at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """How rows of the relation that a step adds are found from those of an earlier one, `parent`, and the other way
    round, by what ON says of the two: by equal keys; where there are none, any rows meet that are near in time.
    `is_whole`: of two relations, that is all ON asks, and is compared in full.
    """

    alias: str
    parent: str
    joining: Joining
    is_whole: bool

    @property
    def equalities(self) -> tuple[Equality[KeyColumn], ...]:
        """The keys that must be equal, the parent's left, its own right."""
        return tuple(each for each in self.joining if isinstance(each, Equality))

    def turned(self) -> Link:
        """Return the same seen from the other side."""
        return Link(alias=self.parent, parent=self.alias, joining=turned(self.joining), is_whole=self.is_whole)


def link_of(query: Query, step: JoinStep) -> Link:
    """Return how a step's relation is linked with an earlier one: that with which most keys must be equal."""
    equal: dict[str, int] = {}
    for equality in (each for each in step.predicates if isinstance(each, Equality)):
        if step.alias in relations_of(equality):
            (other,) = set(relations_of(equality)) - {step.alias}
            equal[other] = equal.get(other, 0) + 1
    parent = max(equal, key=equal.__getitem__, default=query.relations[0].alias)
    predicates = tuple(each for each in step.predicates if set(relations_of(each)) == {parent, step.alias})
    is_told = any(_is_told(query, each.relation, each.expression) for each in step.conditions)
    return Link(
        alias=step.alias,
        parent=parent,
        joining=joined_by(predicates, parent, step.alias),
        is_whole=len(query.relations) == 2 and bool(equal) and not is_told,
    )


def _is_told(query: Query, alias: str, expression: object) -> bool:
    """Tell whether a condition does not hold of all rows that are kept for it."""
    waiting = query.relation(alias).waiting
    return waiting is None or expression in waiting.conditions


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """`found`: the rows that others meet. `old`, `new`: which of these others meet one that was stored before, or that
    is of this batch.
    """

    found: Chosen
    old: Chosen
    new: Chosen


def meeting(ours: Side, chosen: Chosen, theirs: Side, link: Link, plan: Plan) -> Met:
    """Return what meets the chosen rows of the link's parent, `ours`, among those of its own relation, `theirs`."""
    rows = rows_of(chosen)
    if not rows:
        return Met(found={}, old={}, new={})
    if not link.equalities:
        probing, window = ours.probing(rows, ()), theirs.waiting.window_us
        low = NO_LOW if window is None else int(probing.newest.min()) - window
        return Met(found=theirs.within(low, int(probing.high.max())), old={}, new={})
    parts = _parts(ours, rows, theirs, link)

    def met(part: _Part) -> Met:
        return _met(ours, theirs, part, link, plan)

    if len(parts) == 1 or sum(map(len, rows.values())) < _WORTH_THREADS:
        found = [met(part) for part in parts]
    else:
        with ThreadPoolExecutor(max_workers=min(len(parts), os.cpu_count() or 1)) as pool:
            found = list(pool.map(met, parts))
    return Met(
        found={place: mask for each in found for place, mask in each.found.items()},
        old={place: mask for each in found for place, mask in each.old.items()},
        new={place: mask for each in found for place, mask in each.new.items()},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Rows that look for others, by bucket, and the buckets where these can be."""

    rows: dict[int, Rows]
    places: tuple[int, ...]


def _parts(ours: Side, rows: dict[int, Rows], theirs: Side, link: Link) -> list[_Part]:
    """Return what looks for what: the same partition where both are partitioned by keys that must be equal, else all
    for all.
    """
    buckets = {place: ours.buckets[place] for place in rows}
    kinds = {((each.partition_by, each.parallelism), True) for each in buckets.values()}
    kinds |= {((each.partition_by, each.parallelism), False) for each in theirs.buckets}
    for equality in link.equalities:
        left, right = (equality.left.name,), (equality.right.name,)
        for parallelism in {each.parallelism for each in theirs.buckets}:
            if kinds <= {((left, parallelism), True), ((right, parallelism), False)}:
                return [
                    _Part(
                        rows={place: those for place, those in rows.items() if buckets[place].partition == partition},
                        places=tuple(n for n, each in enumerate(theirs.buckets) if each.partition == partition),
                    )
                    for partition in sorted({each.partition for each in buckets.values()})
                ]
    return [_Part(rows=rows, places=tuple(range(len(theirs.buckets))))]


def _met(ours: Side, theirs: Side, part: _Part, link: Link, plan: Plan) -> Met:
    store = plan.store(theirs.member.store)
    asked = placed(link.joining if link.is_whole else link.equalities, 0, None)
    step = Step(edge="", member=theirs.member, predicates=asked)
    values = {each.left.value_name for each in link.equalities} - {None}
    read = {place.name for each in asked for place in operands_of(each) if place.at == 0}
    probing = ours.probing(part.rows, tuple(sorted(read | {name for name in values if name is not None})))
    lookup = lookup_of(probing, replace(step, predicates=_indexed(step, store)), timed=not store.is_table)
    verifier = Verifier.of(probing, step, store, {}) if link.is_whole else None
    found, old, new = dict[int, Mask](), np.zeros(probing.count, np.bool_), np.zeros(probing.count, np.bool_)
    for place in (place for place in part.places if not lookup.misses(theirs.buckets[place])):
        opened, matched = theirs.open(place), new if theirs.is_fresh[place] else old
        for probes, rows in lookup.pairs(opened, theirs.member, _CAPACITY):
            if verifier is not None:
                probes, rows = verifier.kept(opened, probes, rows)
            if place not in found:
                found[place] = np.zeros(opened.bucket.rows, np.bool_)
            found[place][rows] = True
            matched[probes] = True
    return Met(found=found, old=_marked(ours, part.rows, old), new=_marked(ours, part.rows, new))


def _marked(side: Side, rows: dict[int, Rows], flags: Mask) -> Chosen:
    """Return of rows, bucket after bucket, those that are flagged."""
    marked, start = dict[int, Mask](), 0
    for place, those in rows.items():
        marked[place] = np.zeros(side.buckets[place].rows, np.bool_)
        marked[place][those] = flags[start : start + len(those)]
        start += len(those)
    return marked


def _indexed(step: Step, store: Store) -> Conjunction[Probed]:
    """Return the equalities of a step to look up by: all, or the first one of which there is an index."""
    choices = (step.equalities, *((equality,) for equality in step.equalities))
    return next(
        (each for each in choices if tuple(sorted({one.right.name for one in each})) in store.indexes), choices[1]
    )


__all__ = ["Link", "Met", "link_of", "meeting"]
