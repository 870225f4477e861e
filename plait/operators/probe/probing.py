"""Let partial results probe one partition of a store.

Correct means: a stored tuple joins a partial result if all keys are equal as SQL compares them, those of bands lie
within their bounds, all residual predicates are true, the step's selection holds for it, every member stays within its
window of the newest member, and it arrived before the starting tuple. The last is decided by whole buckets: a bucket of
an earlier batch always, a bucket of the same batch only if its relation ranks lower (`visible_buckets`); for an
intermediate result that is the relation whose arrival completed it. Ranks differ between any two relations of a query,
self-joins included, so of the n starting relations of a result exactly one, its last member, finds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from plait.kernels.hashing import combine, partition_of
from plait.operators.column_names import SERVES, TAU, UNTIL
from plait.operators.ingest.readings import Readings
from plait.operators.probe.demand import Demand, Wanted
from plait.operators.probe.layers import (
    UNPLACED,
    Found,
    Met,
    Sent,
    Tables,
    left_over,
    placed_buckets,
    places_in,
    sent_to,
)
from plait.operators.probe.lookups import lookup_of, probe_keys
from plait.operators.probe.partials import Int64s, Partials, Position, Rows, concat_blocks, part_block, plus_window
from plait.operators.probe.reader import Reader
from plait.operators.probe.residuals import Predicates
from plait.operators.probe.selections import answers, carries, gather
from plait.operators.probe.together import Together
from plait.operators.probe.verifying import Verifier
from plait.plan.model import Member, Plan, ProbeTree, Step, Store, is_routed, part_column
from plait.query.predicates import by_kind
from plait.state.buckets import OpenBucket, open_bucket
from plait.state.model import Bucket
from plait.state.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeContext:
    """What every probe task of a batch knows. `buckets` per store: live ones and those of this batch.

    `wanted` says which columns each query's results need. `capacity` bounds the partial results held at once per step.
    `kept_before`: what is found is the state before this batch and is kept as such. `predicates`: registered by the
    user. `readings`: how stored rows are read that lack something, by store. `beside`: what else stays open, None: all
    that is. A traversal opens buckets by its `reader`, and those that it reads as one by `together`. Of trees with
    `abreast_steps` in all it takes steps side by side where that is quicker; 0: wherever it can.
    `tables`: what has put rows where they lie, None where all of them are within reach.
    """

    plan: Plan
    batch: int
    storage: Storage
    buckets: Mapping[str, tuple[Bucket, ...]]
    wanted: Wanted
    capacity: int = 1 << 20
    attempt: str = "0"
    kept_before: bool = False
    predicates: Predicates = field(default_factory=dict)
    readings: Readings = field(default_factory=dict)
    beside: tuple[Bucket, ...] | None = ()
    abreast_steps: int = 24
    reader: Reader | None = None
    together: Together | None = None
    tables: Tables | None = None

    def open(self, bucket: Bucket) -> OpenBucket:
        """Return a bucket mapped into memory, or in it with others."""
        opener = self.together or self.reader
        return open_bucket(self.storage, bucket) if opener is None else opener.open(bucket)

    @property
    def kept_as(self) -> int:
        """The batch that what is kept in intermediate stores belongs to: `kept_before`, the one before."""
        return self.batch - self.kept_before


@dataclass(slots=True)
class Counts:
    """Per edge probe tuples, those that matched anything, and all matches, accumulated by one task."""

    probe_tuples: dict[str, int] = field(default_factory=dict)
    matched: dict[str, int] = field(default_factory=dict)
    matches: dict[str, int] = field(default_factory=dict)

    def add(self, edge: str, *, probe_tuples: int = 0, matched: int = 0, matches: int = 0) -> None:
        """Add to an edge's counts."""
        self.probe_tuples[edge] = self.probe_tuples.get(edge, 0) + probe_tuples
        self.matched[edge] = self.matched.get(edge, 0) + matched
        self.matches[edge] = self.matches.get(edge, 0) + matches


def visible_buckets(
    context: ProbeContext, start: Member, step: Step, partition: int | None, layers: int = 1
) -> Iterator[Found]:
    """Yield the buckets that a tuple of `start` in this batch finds in one partition of the step's store, or in all;
    of those that tables have placed in one, those of the `layers` it has gone there for.

    Arrived before it: all earlier batches, and its own batch if the stored relation ranks lower. A bucket of an earlier
    partitioning belongs to no partition of today's: a routed tuple, which visits one partition only, finds it there; a
    broadcast tuple, which visits all, finds it in one of them.
    """
    plan, tables = context.plan, context.tables
    store = plan.store(step.member.store)
    stored = context.buckets.get(store.id, ())
    if tables is not None:
        placed = (bucket for bucket in (*stored, *tables.copies.get(store.id, ())) if tables.layer_of(bucket))
        assert partition is not None, "what tables have placed is looked up partition by partition"
        yield from placed_buckets(_arrived(context, start, step, placed), step, partition, layers, tables)
        stored = tuple(bucket for bucket in stored if not tables.layer_of(bucket)) if layers & 1 else ()
    for bucket in _arrived(context, start, step, stored):
        if partition is None:
            here = True
        elif (bucket.partition_by, bucket.parallelism) == (store.partition_by, store.parallelism):
            here = bucket.partition == partition
        else:
            here = is_routed(store, step) or bucket.partition % store.parallelism == partition
        if here:
            yield Found(bucket, 0)


def _arrived(context: ProbeContext, start: Member, step: Step, buckets: Iterable[Bucket]) -> Iterator[Bucket]:
    """Yield the buckets whose rows have arrived before a tuple of `start` in this batch."""
    plan = context.plan
    ranks_lower = tuple(plan.rank(member) < plan.rank(start) for member in step.members)
    for bucket in buckets:
        # The part that made an intermediate result of this batch is the one of the highest rank in it.
        if bucket.batch_max < context.batch or ranks_lower[bucket.started_by or 0]:
            yield bucket


def with_keys(partials: Partials, step: Step) -> tuple[Partials, tuple[Int64s, ...]]:
    """Return the partials that have what the step looks up by, and their keys that must be equal. One with a NULL there
    is sent nowhere.
    """
    kinds = by_kind(step.predicates)
    for band in kinds.bands:
        _, valid = partials.of(band.left)
        if valid is not None:
            partials = partials.at(np.flatnonzero(valid).astype(np.int32))
    if not kinds.equalities:
        return partials, ()
    keys = probe_keys(partials, kinds.equalities)
    return partials if keys.rows is None else partials.at(keys.rows), keys.parts


def copies_of(step: Step, plan: Plan) -> int:
    """Return to how many partitions each partial result is sent."""
    store = plan.store(step.member.store)
    return 1 if is_routed(store, step) else store.parallelism


def send(
    partials: Partials, step: Step, context: ProbeContext, tables: Tables, met: Mapping[int, Met]
) -> Iterator[Sent]:
    """Yield partial results once for each distinct partition that they have to look into, for all layers together; but
    for those that have `met` the rows of a layer where they were sent. All have what the step looks up by.
    """
    store = context.plan.store(step.member.store)
    places: dict[int, Int64s] = {}
    for layer in tables.layers_of(store.id):
        if layer == UNPLACED:
            places[layer] = _unplaced(partials, step, store)
        else:
            wanted = places_in(partials, step, tables.generations[layer - 1])
            places[layer] = left_over(wanted, met[layer]) if layer in met else wanted
    yield from sent_to(partials, places, max(store.parallelism, tables.partitions))


def _unplaced(partials: Partials, step: Step, store: Store) -> Int64s:
    """Return the partitions where `route` sends partial results, int64[partials, columns]."""
    if not is_routed(store, step):
        return np.broadcast_to(np.arange(store.parallelism), (partials.count, store.parallelism))
    equalities = by_kind(step.predicates).equalities
    known = {equal.right.name: partials.of(equal.left)[0] for equal in equalities}
    keys = combine([known[name] for name in store.partition_by])
    return partition_of(keys, store.parallelism).astype(np.int64)[:, None]


def route(partials: Partials, step: Step, plan: Plan) -> Iterator[tuple[int, Partials]]:
    """Yield (partition, the partials sent there): one partition each if the partitioning key is known, else all."""
    store = plan.store(step.member.store)
    partials, parts = with_keys(partials, step)
    if partials.count == 0:
        return
    if store.parallelism == 1:
        yield 0, partials
    elif not is_routed(store, step):
        for partition in range(store.parallelism):
            yield partition, partials
    else:
        equalities = by_kind(step.predicates).equalities
        known = {equal.right.name: part for equal, part in zip(equalities, parts, strict=True)}
        partitions = partition_of(combine([known[name] for name in store.partition_by]), store.parallelism)
        for partition in range(store.parallelism):
            rows = np.flatnonzero(partitions == partition).astype(np.int32)
            if len(rows) == partials.count:
                yield partition, partials
            elif len(rows):
                yield partition, partials.at(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Matches of partials with stored tuples: partial `rows[i]` with row i of `block`.

    `tau` and `high` of the stored tuple: its (newest) τ, and the largest τ its windows still allow; None for a table.
    """

    rows: Rows
    block: pa.RecordBatch
    tau: Int64s | None
    high: Int64s | None


@dataclass(slots=True)
class Matched:
    """Which partials of one probe have matched anything so far, in whichever bucket."""

    rows: npt.NDArray[np.bool_]

    @classmethod
    def none_of(cls, partials: Partials) -> Matched:
        """Return that none of these partials has matched."""
        return cls(np.zeros(partials.count, np.bool_))

    @property
    def count(self) -> int:
        """How many have matched."""
        return int(np.count_nonzero(self.rows))


def probe_partition(
    partials: Partials,
    step: Step,
    tree: ProbeTree,
    partition: int | None,
    context: ProbeContext,
    demand: Demand,
    matched: Matched,
    layers: int = 1,
) -> Iterator[Partials]:
    """Yield the partials extended by their matches in one partition, or in all at once, in pieces of about
    ``context.capacity``; note in `matched` which had any. `layers`: what they look into, where tables are.

    A piece comes from buckets that carry the same columns: what one of them lacks no query that ends further on may
    need, and the others must not suffer for it.
    """
    pending: list[Piece] = []
    held = 0
    for piece in _find(partials, step, tree, (partition, layers), context, demand):
        if pending and pending[0].block.schema != piece.block.schema:
            yield extend(partials, step, pending)
            pending, held = [], 0
        pending.append(piece)
        matched.rows[piece.rows] = True
        held += len(piece.rows)
        if held >= context.capacity:
            yield extend(partials, step, pending)
            pending, held = [], 0
    if pending:
        yield extend(partials, step, pending)


def extend(partials: Partials, step: Step, pieces: list[Piece]) -> Partials:
    """Append the new positions and narrow each partial's time bounds."""
    rows = pieces[0].rows if len(pieces) == 1 else np.concatenate([piece.rows for piece in pieces])
    extended = partials.at(rows)
    newest, high = extended.newest, extended.high
    if pieces[0].tau is not None:
        newest = np.maximum(newest, np.concatenate([piece.tau for piece in pieces if piece.tau is not None]))
        high = np.minimum(high, np.concatenate([piece.high for piece in pieces if piece.high is not None]))
    block = concat_blocks([piece.block for piece in pieces])
    positions = tuple(Position(block=part) for part in part_blocks(block, step))
    return Partials(count=len(rows), positions=(*extended.positions, *positions), newest=newest, high=high)


def part_blocks(block: pa.RecordBatch, step: Step) -> Iterator[pa.RecordBatch]:
    """Yield one block for each relation that a step adds, its columns named as in the relation's own store."""
    if not step.parts:
        yield block
        return
    for part in range(len(step.parts)):
        yield part_block(block, part)


def _find(
    partials: Partials,
    step: Step,
    tree: ProbeTree,
    where: tuple[int | None, int],
    context: ProbeContext,
    demand: Demand,
) -> Iterator[Piece]:
    store = context.plan.store(step.member.store)
    gathered = gathered_columns(step, demand.after[step.edge][len(partials.positions) :])
    lookup = lookup_of(partials, step, timed=not store.is_table)
    verifier = Verifier.of(partials, step, store, context.predicates)
    needed = verifier.columns()
    for bucket, serving in visible_buckets(context, tree.start, step, *where):
        if not answers(bucket, step.member, needed) or lookup.misses(bucket):
            continue
        opened = context.open(bucket)
        carried = tuple(name for name in gathered if carries(bucket, name))
        for pairs in lookup.pairs(opened, step.member, context.capacity):
            rows, stored = serving_rows(opened, serving, *verifier.kept(opened, *pairs))
            if len(rows):
                yield _piece(opened, step, rows, stored, carried)
        opened.release()


def serving_rows(opened: OpenBucket, serving: int, rows: Rows, stored: Rows) -> tuple[Rows, Rows]:
    """Return the pairs whose stored row is there for the access that they come by (`Found.serving`)."""
    if not serving:
        return rows, stored
    is_there = (opened.int64(SERVES)[stored] & serving) != 0
    return rows[is_there], stored[is_there]


def gathered_columns(step: Step, wanted: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    """Return the columns of the probed store that its relations must supply (`wanted`: per relation)."""
    if not step.parts:
        return wanted[0]
    return tuple(part_column(part, name) for part, names in enumerate(wanted) for name in names)


def _piece(opened: OpenBucket, step: Step, rows: Rows, stored: Rows, gathered: tuple[str, ...]) -> Piece:
    tau = high = None
    if opened.bucket.layout.has_tau:
        tau = opened.int64(TAU)[stored]
        high = opened.int64(UNTIL)[stored] if step.parts else plus_window(tau, step.member.window_us)
    return Piece(rows=rows, block=gather(opened, stored, gathered), tau=tau, high=high)
