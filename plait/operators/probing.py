"""Let partial results probe one partition of a store.

Correct means: a stored tuple joins a partial result if all keys are equal as SQL compares them, the step's selection
holds for it, every member stays within its window of the newest member, and it arrived before the starting tuple. The
last is decided by whole buckets: a bucket of an earlier batch always, a bucket of the same batch only if its relation
ranks lower (`visible_buckets`); for an intermediate result that is the relation whose arrival completed it. Ranks
differ between any two relations of a query, self-joins included, so of the n starting relations of a result exactly
one, its last member, finds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from plait.kernels.hashing import combine, partition_of
from plait.kernels.matching import iter_cross, iter_matches
from plait.kernels.ordering import sort_order
from plait.operators.demand import Demand, Wanted
from plait.operators.names import ROW, TAU, UNTIL
from plait.operators.partials import Int64s, Partials, Position, Rows, concat_blocks, minus_window, plus_window
from plait.operators.selections import answers, gather, selection_words
from plait.plan.model import KeyColumn, KeyMatch, Member, Plan, ProbeTree, Step, is_routed, part_column
from plait.state.buckets import OpenBucket, open_bucket
from plait.state.model import Bucket
from plait.state.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeContext:
    """What every probe task of a batch knows. `buckets` per store: live ones and those of this batch.

    `wanted` says which columns each query's results need. `capacity` bounds the partial results held at once per step.
    `kept_before`: what is found is the state before this batch and is kept as such.
    """

    plan: Plan
    batch: int
    storage: Storage
    buckets: Mapping[str, tuple[Bucket, ...]]
    wanted: Wanted
    capacity: int = 1 << 20
    attempt: str = "0"
    kept_before: bool = False

    @property
    def kept_as(self) -> int:
        """The batch that what is kept in intermediate stores belongs to: `kept_before`, the one before."""
        return self.batch - self.kept_before


@dataclass(slots=True)
class Counts:
    """Probe tuples and matches per edge, accumulated by one task."""

    probe_tuples: dict[str, int] = field(default_factory=dict)
    matches: dict[str, int] = field(default_factory=dict)

    def add(self, edge: str, probe_tuples: int, matches: int) -> None:
        """Add to an edge's counts."""
        self.probe_tuples[edge] = self.probe_tuples.get(edge, 0) + probe_tuples
        self.matches[edge] = self.matches.get(edge, 0) + matches


def visible_buckets(context: ProbeContext, start: Member, step: Step, partition: int) -> Iterator[Bucket]:
    """Yield the buckets that a tuple of `start` in this batch finds in one partition of the step's store.

    Arrived before it: all earlier batches, and its own batch if the stored relation ranks lower. A bucket of an earlier
    partitioning belongs to no partition of today's: a routed tuple, which visits one partition only, finds it there; a
    broadcast tuple, which visits all, finds it in one of them.
    """
    plan = context.plan
    store = plan.store(step.member.store)
    ranks_lower = tuple(plan.rank(member) < plan.rank(start) for member in step.members)
    for bucket in context.buckets.get(store.id, ()):
        # The part that made an intermediate result of this batch is the one of the highest rank in it.
        if bucket.batch_max >= context.batch and not ranks_lower[bucket.started_by or 0]:
            continue
        if (bucket.partition_by, bucket.parallelism) == (store.partition_by, store.parallelism):
            here = bucket.partition == partition
        else:
            here = is_routed(store, step) or bucket.partition % store.parallelism == partition
        if here:
            yield bucket


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The probing side of a step: rows of the partials that have all keys, with the combined key of each."""

    rows: Rows | None
    combined: Int64s
    parts: tuple[Int64s, ...]


def probe_keys(partials: Partials, matches: tuple[KeyMatch, ...]) -> Keys:
    """Gather the probing keys; a partial with a NULL key matches nothing and is left out."""
    parts: list[Int64s] = []
    valid: npt.NDArray[np.bool_] | None = None
    for match in matches:
        values, there = partials.positions[match.position].int64(match.probe_key)
        parts.append(values)
        if there is not None:
            valid = there if valid is None else valid & there
    if valid is None:
        return Keys(rows=None, combined=combine(parts), parts=tuple(parts))
    rows = np.flatnonzero(valid).astype(np.int32)
    kept = tuple(part[rows] for part in parts)
    return Keys(rows=rows, combined=combine(kept), parts=kept)


def route(partials: Partials, step: Step, plan: Plan) -> Iterator[tuple[int, Partials]]:
    """Yield (partition, the partials sent there): one partition each if the partitioning key is known, else all.

    Partials with a NULL key are sent nowhere.
    """
    store = plan.store(step.member.store)
    if step.matches:
        keys = probe_keys(partials, step.matches)
        if keys.rows is not None:
            partials = partials.at(keys.rows)
    if partials.count == 0:
        return
    if store.parallelism == 1:
        yield 0, partials
    elif not is_routed(store, step):
        for partition in range(store.parallelism):
            yield partition, partials
    else:
        known = {match.store_key: part for match, part in zip(step.matches, keys.parts, strict=True)}
        partitions = partition_of(combine([known[name] for name in store.partition_by]), store.parallelism)
        for partition in range(store.parallelism):
            rows = np.flatnonzero(partitions == partition).astype(np.int32)
            if len(rows) == partials.count:
                yield partition, partials
            elif len(rows):
                yield partition, partials.at(rows)


def sorted_matches(matches: tuple[KeyMatch, ...]) -> tuple[KeyMatch, ...]:
    """Return one match per store key in index order; the others are verified after the index matched."""
    first: dict[str, KeyMatch] = {}
    for match in matches:
        first.setdefault(match.store_key, match)
    return tuple(first[name] for name in sorted(first))


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Matches of partials with stored tuples: partial `rows[i]` with row i of `block`.

    `tau` and `high` of the stored tuple: its (newest) τ, and the largest τ its windows still allow; None for a table.
    """

    rows: Rows
    block: pa.RecordBatch
    tau: Int64s | None
    high: Int64s | None


def probe_partition(
    partials: Partials, step: Step, tree: ProbeTree, partition: int, context: ProbeContext, demand: Demand
) -> Iterator[Partials]:
    """Yield the partials extended by their matches in one partition, in pieces of about ``context.capacity``."""
    pending: list[Found] = []
    held = 0
    for found in _find(partials, step, tree, partition, context, demand):
        pending.append(found)
        held += len(found.rows)
        if held >= context.capacity:
            yield extend(partials, step, pending)
            pending, held = [], 0
    if pending:
        yield extend(partials, step, pending)


def extend(partials: Partials, step: Step, found: list[Found]) -> Partials:
    """Append the new positions and narrow each partial's time bounds."""
    rows = found[0].rows if len(found) == 1 else np.concatenate([piece.rows for piece in found])
    extended = partials.at(rows)
    newest, high = extended.newest, extended.high
    if found[0].tau is not None:
        newest = np.maximum(newest, np.concatenate([piece.tau for piece in found if piece.tau is not None]))
        high = np.minimum(high, np.concatenate([piece.high for piece in found if piece.high is not None]))
    block = concat_blocks([piece.block for piece in found])
    positions = tuple(Position(block=part) for part in part_blocks(block, step))
    return Partials(count=len(rows), positions=(*extended.positions, *positions), newest=newest, high=high)


def part_blocks(block: pa.RecordBatch, step: Step) -> Iterator[pa.RecordBatch]:
    """Yield one block for each relation that a step adds, its columns named as in the relation's own store."""
    if not step.parts:
        yield block
        return
    for part in range(len(step.parts)):
        prefix = part_column(part, "")
        names = [name for name in block.schema.names if name.startswith(prefix)]
        columns = [block.column(name) for name in names] or [pa.nulls(block.num_rows)]
        yield pa.RecordBatch.from_arrays(columns, names=[name.removeprefix(prefix) for name in names] or [ROW])


def _find(
    partials: Partials, step: Step, tree: ProbeTree, partition: int, context: ProbeContext, demand: Demand
) -> Iterator[Found]:
    store = context.plan.store(step.member.store)
    gathered = gathered_columns(step, demand.after[step.edge][len(partials.positions) :])
    verified = _verified_columns(step, store.keys)
    needed = tuple(dict.fromkeys((*gathered, *verified, *(match.store_key for match in step.matches))))
    if not step.matches:
        yield from _find_all(partials, step, tree, partition, context, gathered)
        return
    matches = sorted_matches(step.matches)
    keys = probe_keys(partials, matches)
    order = None if _is_ascending(keys.combined) else sort_order(keys.combined, None)
    sides = _Side.of(partials, step, keys, order, timed=not store.is_table)
    index = tuple(match.store_key for match in matches)
    exact = len(index) == 1 and len(step.matches) == 1 and not verified
    for bucket in visible_buckets(context, tree.start, step, partition):
        if not answers(bucket, step.member, needed) or sides.misses(bucket):
            continue
        opened = open_bucket(context.storage, bucket)
        for rows, stored in sides.matches(opened, index, step.member, context.capacity):
            if not exact:
                rows, stored = _verify(partials, step, store.keys, opened, rows, stored)
            if step.parts:
                rows, stored = _still_joinable(partials, opened, rows, stored)
            if len(rows):
                yield _found(opened, step, rows, stored, gathered)
        opened.release()


def gathered_columns(step: Step, wanted: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    """Return the columns of the probed store that its relations must supply (`wanted`: per relation)."""
    if not step.parts:
        return wanted[0]
    return tuple(part_column(part, name) for part, names in enumerate(wanted) for name in names)


def _still_joinable(partials: Partials, opened: OpenBucket, rows: Rows, stored: Rows) -> tuple[Rows, Rows]:
    """Keep the pairs in which no part of the stored tuple is too old for the newest member of the partial."""
    joinable = partials.newest[rows] <= opened.int64(UNTIL)[stored]
    return (rows, stored) if joinable.all() else (rows[joinable], stored[joinable])


def _find_all(
    partials: Partials, step: Step, tree: ProbeTree, partition: int, context: ProbeContext, gathered: tuple[str, ...]
) -> Iterator[Found]:
    """The cross join: every stored tuple within the windows."""
    low = minus_window(partials.newest, step.member.window_us)
    for bucket in visible_buckets(context, tree.start, step, partition):
        if not answers(bucket, step.member, gathered):
            continue
        opened = open_bucket(context.storage, bucket)
        bits, mask = selection_words(opened, step.member)
        for rows, stored in iter_cross(
            probe_low=low,
            probe_high=partials.high,
            probe_count=partials.count,
            tau=opened.int64(TAU) if bucket.layout.has_tau else None,
            row_count=bucket.rows,
            bits=bits,
            mask=mask,
            capacity=context.capacity,
        ):
            if step.parts:
                rows, stored = _still_joinable(partials, opened, rows, stored)
            yield _found(opened, step, rows, stored, gathered)


def _found(opened: OpenBucket, step: Step, rows: Rows, stored: Rows, gathered: tuple[str, ...]) -> Found:
    tau = high = None
    if opened.bucket.layout.has_tau:
        tau = opened.int64(TAU)[stored]
        high = opened.int64(UNTIL)[stored] if step.parts else plus_window(tau, step.member.window_us)
    return Found(rows=rows, block=gather(opened, stored, gathered), tau=tau, high=high)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """The probing side, sorted by key: what the matching kernel reads. `rows` maps back to the partials."""

    key: Int64s
    rows: Rows | None
    low: Int64s | None
    high: Int64s | None

    @classmethod
    def of(cls, partials: Partials, step: Step, keys: Keys, order: Rows | None, *, timed: bool) -> _Side:
        rows = keys.rows if order is None else (order if keys.rows is None else keys.rows[order])
        low = minus_window(partials.newest, step.member.window_us) if timed else None
        high = partials.high if timed else None
        return cls(
            key=keys.combined if order is None else keys.combined[order],
            rows=rows,
            low=low if low is None or rows is None else low[rows],
            high=high if high is None or rows is None else high[rows],
        )

    def misses(self, bucket: Bucket) -> bool:
        """Tell whether no stored τ of the bucket can lie in any probe's bounds."""
        if len(self.key) == 0:
            return True
        if bucket.tau_min is None or bucket.tau_max is None or self.high is None:
            return False
        return bool(self.high.max() < bucket.tau_min) or (
            self.low is not None and bool(self.low.min() > bucket.tau_max)
        )

    def matches(
        self, opened: OpenBucket, index: tuple[str, ...], member: Member, capacity: int
    ) -> Iterator[tuple[Rows, Rows]]:
        entries = opened.index(index)
        bits, mask = selection_words(opened, member)
        timed = entries.tau is not None
        for probes, stored in iter_matches(
            probe_key=self.key,
            probe_low=self.low if timed else None,
            probe_high=self.high if timed else None,
            index_key=entries.key,
            index_tau=entries.tau,
            index_row=entries.row,
            bits=bits,
            mask=mask,
            capacity=capacity,
        ):
            yield (probes if self.rows is None else self.rows[probes]), stored


def _is_ascending(key: Int64s) -> bool:
    return len(key) < 2 or bool(np.all(key[1:] >= key[:-1]))


def _verified_columns(step: Step, keys: tuple[KeyColumn, ...]) -> tuple[str, ...]:
    by_name = {key.name: key for key in keys}
    names = (by_name[match.store_key].value_name for match in step.matches)
    return tuple(dict.fromkeys(name for name in names if name is not None))


def _verify(
    partials: Partials,
    step: Step,
    keys: tuple[KeyColumn, ...],
    opened: OpenBucket,
    rows: Rows,
    stored: Rows,
) -> tuple[Rows, Rows]:
    """Keep the pairs whose every key, and every real value behind a hash, is equal."""
    by_name = {key.name: key for key in keys}
    equal = np.ones(len(rows), np.bool_)
    pairs = partials.at(rows)
    for match in step.matches:
        position, key = pairs.positions[match.position], by_name[match.store_key]
        probing, _ = position.int64(match.probe_key)
        equal &= probing == _stored_int64(opened, match.store_key, stored)
        if key.value_name is not None:
            theirs = opened.take(stored, (key.value_name,)).column(0)
            ours = position.column("#v" + match.probe_key.removeprefix("#k"))
            equal &= pc.fill_null(pc.equal(ours, theirs), False).to_numpy(zero_copy_only=False)
    return (rows, stored) if equal.all() else (rows[equal], stored[equal])


def _stored_int64(opened: OpenBucket, name: str, stored: Rows) -> Int64s:
    values = opened.take(stored, (name,)).column(0)
    return np.asarray(pc.fill_null(values, 0).to_numpy(zero_copy_only=False), dtype=np.int64)
