"""Intermediate stores that come while batches run: what is to be taken, and slices of it, batch by batch.

What must hold: every combination of tuples is kept once. One whose last member arrives from batch `since` on is found
by that member, which takes the steps that fill the store. All others consist of tuples from before; they are found from
one part (`Filling.part`), whose tuples are taken in slices. A slice meets no tuple from `since` on: those have met the
slice's tuples when they arrived. So buckets of both times must not be merged meanwhile (`plait.state.fillings`), and a
bucket that a slice has been taken of not at all.

A tuple that expires before it is taken is not missed: nothing that arrives can join it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from plait.operators.probe.probing import ProbeContext
from plait.operators.reports import ProbeReport
from plait.operators.traversal.probe_task import ProbeTask
from plait.operators.traversal.scheduling import Probe, Spread, by_store, lacks, spread_over
from plait.plan.coming import coming_id, covers, settled_id
from plait.plan.model import Plan, Store
from plait.plan.pruning import filling_from
from plait.plan.traversals import carried_columns, intermediates
from plait.state.model import Bucket, Filling, Left


@dataclass(frozen=True, slots=True, kw_only=True)
class Arranged:
    """What is stored once a plan begins: its `buckets`, how far stores that come are filled, and the ids of those of
    its other intermediate stores that are `complete`.
    """

    buckets: tuple[Bucket, ...]
    fillings: tuple[Filling, ...]
    complete: frozenset[str]


def arranged(
    plan: Plan,
    buckets: Iterable[Bucket],
    fillings: Iterable[Filling],
    batch: int,
    kept: Mapping[str, Store],
) -> Arranged:
    """Return what is stored in the order in which a plan, which begins with `batch`, wants it. `kept`: the intermediate
    stores that the plan before has kept complete, by id.

    A store that comes and was coming already goes on; one that is there under the id it has while it comes, or the
    other way round, changes its id, and its files stay where they are. What nobody goes on with is left out.
    """
    known, grouped = {filling.store: filling for filling in fillings}, by_store(buckets)
    paths = _paths(grouped)
    result = _Arranging(plan=plan, batch=batch, buckets=dict(grouped))
    for store, _ in intermediates(plan):
        is_coming = store.id in plan.coming
        other = settled_id(store.id) if is_coming else coming_id(store.id)
        own, moved = _going_on(known.get(store.id), store, paths), _going_on(known.get(other), store, paths)
        if is_coming and own is not None:
            result.fillings.append(own)
        elif is_coming:
            is_free = all(each.id != other for each in plan.stores)
            is_there = _is_complete(other, store, known.get(other), grouped, kept)
            result.begin(store, other if is_free and is_there else None)
        elif moved is not None and not moved.left:
            result.settle(store, other, moved)
        elif _is_complete(store.id, store, known.get(store.id), grouped, kept):
            result.complete.add(store.id)
            result.fillings += [] if own is None else [own]
    return result.done()


@dataclass(slots=True, kw_only=True)
class _Arranging:
    plan: Plan
    batch: int
    buckets: dict[str, tuple[Bucket, ...]]
    fillings: list[Filling] = field(default_factory=list)
    complete: set[str] = field(default_factory=set)

    def begin(self, store: Store, there: str | None) -> None:
        """Let a store come: from nothing, or from one that is `there` complete."""
        taken = () if there is None else self.buckets.pop(there, ())
        self.buckets[store.id] = tuple(replace(bucket, store=store.id) for bucket in taken)
        filling = begun(self.plan, store, self.buckets, self.batch)
        self.fillings.append(filling if there is None else replace(filling, left=()))

    def settle(self, store: Store, coming: str, filling: Filling) -> None:
        """Let a store that has come be there for all, in place of one of the same id that kept less."""
        self.buckets[store.id] = tuple(replace(bucket, store=store.id) for bucket in self.buckets.pop(coming, ()))
        self.fillings.append(replace(filling, store=store.id))
        self.complete.add(store.id)

    def done(self) -> Arranged:
        """Return the outcome, without stores that come for nobody any more."""
        ids = {store.id for store in self.plan.stores}
        gone = {name for name in self.buckets if name not in ids and coming_id(settled_id(name)) == name}
        return Arranged(
            buckets=tuple(bucket for name, own in self.buckets.items() if name not in gone for bucket in own),
            fillings=tuple(sorted(self.fillings, key=lambda filling: filling.store)),
            complete=frozenset(self.complete),
        )


def begun(plan: Plan, store: Store, buckets: Mapping[str, tuple[Bucket, ...]], batch: int) -> Filling:
    """Return that filling begins with a batch: with the part of which the fewest rows are stored. What arrived last is
    taken first: what is about to expire may do so before it is taken.
    """
    parts = () if store.intermediate is None else store.intermediate.parts
    rows = {
        part: sum(bucket.rows for bucket in buckets.get(member.store, ()))
        for part, member in enumerate(parts)
        if not plan.store(member.store).is_table
    }
    part = min(rows, key=lambda part: (rows[part], part))
    own = sorted(buckets.get(parts[part].store, ()), key=lambda bucket: (-bucket.batch_max, bucket.path))
    return Filling(
        store=store.id,
        part=part,
        since=batch,
        rows=rows[part],
        left=tuple(Left(path=bucket.path) for bucket in own if bucket.rows),
        carried=carried_columns(store),
    )


def _paths(grouped: Mapping[str, tuple[Bucket, ...]]) -> frozenset[str]:
    return frozenset(bucket.path for own in grouped.values() for bucket in own)


def _going_on(filling: Filling | None, store: Store, stored: frozenset[str]) -> Filling | None:
    """Return the filling if it serves the store; None if that is to keep more than was begun with, or rows that are
    left have been written anew since.
    """
    if filling is None or not set(filling.carried) >= set(carried_columns(store)):
        return None
    return filling if stored.issuperset(left.path for left in filling.left) else None


def _is_complete(
    name: str,
    store: Store,
    filling: Filling | None,
    grouped: Mapping[str, tuple[Bucket, ...]],
    kept: Mapping[str, Store],
) -> bool:
    """Tell whether what is stored under this id is all that `store` is to keep."""
    if name in kept:
        return covers(kept[name], store)
    if filling is not None:
        return not filling.left and set(filling.carried) >= set(carried_columns(store))
    own = grouped.get(name, ())
    return bool(own) and not any(lacks(bucket, store) for bucket in own)


def filled(goal: Plan, fillings: Iterable[Filling]) -> frozenset[str]:
    """Return the ids of the intermediate stores of `goal` that have come."""
    stores = {coming_id(store.id): store for store, _ in intermediates(goal)}
    return frozenset(
        stores[each.store].id
        for each in fillings
        if each.store in stores and not each.left and set(each.carried) >= set(carried_columns(stores[each.store]))
    )


def there(goal: Plan, buckets: Iterable[Bucket], fillings: Iterable[Filling]) -> frozenset[str]:
    """Return the ids of the intermediate stores of `goal` that are complete in a checkpoint, have they come or been
    there all along.
    """
    known, grouped = {filling.store: filling for filling in fillings}, by_store(buckets)
    kept = (
        store.id for store, _ in intermediates(goal) if _is_complete(store.id, store, known.get(store.id), grouped, {})
    )
    return filled(goal, known.values()).union(kept)


def lacking_rows(goal: Plan, buckets: tuple[Bucket, ...], fillings: Iterable[Filling]) -> int:
    """Return how many rows have to be taken for all intermediate stores of `goal` that are not complete."""
    grouped, complete = by_store(buckets), there(goal, buckets, fillings)
    lacking = (store for store, _ in intermediates(goal) if store.id not in complete)
    return sum(begun(goal, store, grouped, 0).rows for store in lacking)


class Allowance(Protocol):
    """How much a batch may take."""

    def rows(self) -> int:
        """Return the most rows that may be taken next; 0: no more in this batch."""

    def took(self, rows: int, took_s: float) -> None:
        """Note that so many rows were taken."""

    def now(self) -> float:
        """Return the seconds of a clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What a batch has taken: how far the stores are now, and what that found, in order; `rows` by store."""

    fillings: tuple[Filling, ...]
    reports: tuple[ProbeReport, ...] = ()
    rows: Mapping[str, int] = field(default_factory=dict)

    @property
    def buckets(self) -> tuple[Bucket, ...]:
        """What is kept now."""
        return tuple(bucket for report in self.reports for bucket in report.buckets)

    @property
    def probe_tuples(self) -> int:
        """What it took."""
        return sum(count for report in self.reports for _, count in report.probe_tuples)


def take(
    context: ProbeContext,
    fillings: tuple[Filling, ...],
    live: tuple[Bucket, ...],
    probe: Probe,
    spread: Spread,
    allowance: Allowance,
) -> Taken:
    """Take what is allowed of the rows that are left, of one store after the other. `context`: of the batch, `live`:
    what was stored before it.
    """
    after, reports, rows = list(fillings), list[ProbeReport](), dict[str, int]()
    for place, filling in enumerate(fillings):
        if not filling.left:
            continue
        old = {bucket.path: bucket for bucket in live if bucket.batch_max < filling.since}
        filling = replace(filling, left=tuple(left for left in filling.left if left.path in old))
        alone = filling_from(context.plan, filling.store, filling.part)
        before = replace(context, plan=alone, buckets=by_store(old.values()))
        while filling.left and (most := allowance.rows()) > 0:
            began = allowance.now()
            pieces, left = next_rows(filling.left, old, most)
            reports += probe(tasks_for(pieces, spread), before)
            filling, count = replace(filling, left=left), sum(stop - start for _, start, stop in pieces)
            rows[filling.store] = rows.get(filling.store, 0) + count
            allowance.took(count, allowance.now() - began)
        after[place] = filling
    return Taken(fillings=tuple(after), reports=tuple(reports), rows=rows)


Piece = tuple[Bucket, int, int]
"""Rows of a bucket from one number up to another."""


def next_rows(
    left: tuple[Left, ...], buckets: Mapping[str, Bucket], most_rows: int
) -> tuple[tuple[Piece, ...], tuple[Left, ...]]:
    """Return the next rows to take, at most so many, and those that are left then."""
    pieces: list[Piece] = []
    room = most_rows
    for place, each in enumerate(left):
        bucket = buckets[each.path]
        stop = min(bucket.rows, each.row + room)
        pieces.append((bucket, each.row, stop))
        room -= stop - each.row
        if stop < bucket.rows:
            return tuple(pieces), (replace(each, row=stop), *left[place + 1 :])
        if room == 0:
            return tuple(pieces), left[place + 1 :]
    return tuple(pieces), ()


def tasks_for(pieces: Iterable[Piece], spread: Spread) -> tuple[ProbeTask, ...]:
    """Spread pieces over tasks; they start the only tree there is."""
    return spread_over(((0, bucket, start, stop) for bucket, start, stop in pieces), spread)


def fillings_after(fillings: Iterable[Filling], plan: Plan, kept: Iterable[Bucket]) -> tuple[Filling, ...]:
    """Return how far stores are filled after a batch under this plan that left these buckets: rows that have expired
    are not left, and stores that are gone are forgotten. Those that do not come any more are complete, which one that
    holds no rows could not be known by otherwise.
    """
    paths, known = {bucket.path for bucket in kept}, {filling.store: filling for filling in fillings}
    after = []
    for store, _ in sorted(intermediates(plan), key=lambda each: each[0].id):
        filling = known.get(store.id)
        if store.id not in plan.coming:
            nothing = Filling(store=store.id, part=0, since=0, rows=0, left=(), carried=())
            after.append(replace(filling or nothing, left=(), carried=carried_columns(store)))
        elif filling is not None:
            after.append(replace(filling, left=tuple(left for left in filling.left if left.path in paths)))
    return tuple(after)


__all__ = [
    "Allowance",
    "Arranged",
    "Taken",
    "arranged",
    "begun",
    "filled",
    "fillings_after",
    "lacking_rows",
    "next_rows",
    "take",
    "tasks_for",
    "there",
]
