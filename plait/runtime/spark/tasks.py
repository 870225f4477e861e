"""What runs inside Spark's Python workers. Each function is built on the driver and carries only plain records.

Everything of substance is in `plait.operators`; here is only the way in and out: Arrow batches in, one small row out.
"""

from __future__ import annotations

import gc
import pickle
import socket
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pyarrow as pa

from plait.kernels.warm import warm
from plait.operators.ingest.deriving import Derivation, derived
from plait.operators.ingest.governing import changed_at
from plait.operators.ingest.ingest import IngestContext, ingest, ingest_again
from plait.operators.ingest.placed_rows import sent_rows
from plait.operators.ingest.projection import IngestSpec
from plait.operators.ingest.readings import NO_READINGS, Reading
from plait.operators.probe.calling import noted
from plait.operators.probe.probing import ProbeContext
from plait.operators.probe.reader import Reader
from plait.operators.traversal.messages import Message
from plait.operators.traversal.probe_task import ProbeTask
from plait.operators.traversal.results import task_file_name
from plait.operators.traversal.traverse import Traversal
from plait.plan.key_groups import Generation
from plait.runtime.spark.circles import keep_out_of_sight
from plait.runtime.spark.packing import Shipment
from plait.sinks.delivery import Delivery, Direct
from plait.state.batch_numbers import batch_number
from plait.state.buckets import close_others, open_bucket
from plait.state.compaction import Merge, merge_buckets
from plait.state.manifest import ManifestLog
from plait.state.mark import require_mark, sees_mark
from plait.state.model import TABLE_BATCH, Bucket
from plait.state.storage import Storage
from plait.version import __version__

Batches = Iterator[pa.RecordBatch]
Task = Callable[[Batches], Batches]

REPORT = "report binary"
MESSAGE = "partition int, edge string, payload binary, layers bigint"
_REPORT_SCHEMA = pa.schema([("report", pa.binary())])
_MESSAGE_SCHEMA = pa.schema(
    [("partition", pa.int32()), ("edge", pa.string()), ("payload", pa.binary()), ("layers", pa.int64())]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskIdentity:
    """Which task this is: its index, a name no other attempt has, and what Spark calls the micro-batch it belongs to
    (None outside one).
    """

    index: int
    attempt: str
    batch: int | None


@cache
def settle() -> None:
    """Load the kernels, then take what is loaded out of the garbage collector's sight, once per worker.

    Spark collects garbage after every task, and Numba alone brings objects enough to make that 80 ms each time.
    """
    warm()
    gc.collect()
    gc.freeze()


def enter(storage: Storage) -> TaskIdentity:
    """Begin a Spark task that works on `storage`: return its identity. Raises CheckpointError if this worker does not
    see the checkpoint as the driver does.
    """
    me = _identity()
    require_mark(storage, __version__)
    return me


def _identity() -> TaskIdentity:
    from pyspark import TaskContext

    settle()
    context = TaskContext.get()
    if context is None:
        return TaskIdentity(index=0, attempt=uuid.uuid4().hex[:12], batch=None)
    batch = context.getLocalProperty("streaming.sql.batchId")
    return TaskIdentity(
        index=context.partitionId(),
        attempt=uuid.uuid4().hex[:12],
        batch=None if batch is None else int(batch),
    )


def load_kernels(batches: Batches) -> Batches:
    """Do nothing but what a worker's first task does anyway."""
    for _ in batches:
        _identity()
    yield _report(None)


def look_at(storage: Storage) -> Task:
    """Return the task that reports its machine and whether it sees the storage's mark."""

    def task(batches: Batches) -> Batches:
        for _ in batches:
            yield _report((socket.gethostname(), sees_mark(storage, __version__)))

    return task


def _named(batches: Batches, spec: IngestSpec) -> Batches:
    """Give the columns, which arrive by number, their names."""
    names = [name for name, _ in spec.projection]
    for batch in batches:
        yield pa.RecordBatch.from_arrays(batch.columns, names=names)


def _report(value: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([pickle.dumps(value)], pa.binary())], schema=_REPORT_SCHEMA)


def reports(rows: Iterable[Any]) -> tuple[Any, ...]:
    """Return the values that tasks reported, from the rows collected by the driver."""
    return tuple(pickle.loads(row["report"]) for row in rows)


def stream_ingest(
    spec: IngestSpec,
    how: Derivation | None,
    storage: Storage,
    chunk_rows: int,
    changes: str,
    generation: Generation | None = None,
) -> Task:
    """Return the task that takes in a stream's share of the micro-batch it runs in. `spec`: what it is handed; `how`:
    what it makes of that, None if nothing; `changes`: where it finds how, if that has changed since the streaming query
    was started; `generation`: the tables by which rows are sent to it, None if they are not.
    """

    def task(batches: Batches) -> Batches:
        me = enter(storage)
        if me.batch is None:
            raise RuntimeError("an ingest task runs only inside a micro-batch")
        number = batch_number(storage, me.batch)
        late_before = ManifestLog(storage).read_late_before(number - 1, spec.source)
        context = IngestContext(
            storage=storage,
            batch=number,
            late_before_us=late_before,
            attempt=me.attempt,
            task=me.index,
            chunk_rows=chunk_rows,
            generation=generation,
        )
        now = changed_at(storage, changes, number, spec.source) or how
        if generation is not None:
            made = sent_rows(batches, spec, now, generation, number + me.index)
        else:
            named = _named(batches, spec)
            made = named if now is None else derived(named, now)
        yield _report(ingest(made, spec if now is None else now.spec, context))
        keep_out_of_sight()  # selections that have been compiled

    return task


def table_ingest(spec: IngestSpec, storage: Storage, chunk_rows: int, batch: int = TABLE_BATCH) -> Task:
    """Return the task that stores a share of rows that are no stream of Spark's: a table, or what came with a batch."""

    def task(batches: Batches) -> Batches:
        me = enter(storage)
        context = IngestContext(
            storage=storage,
            batch=batch,
            late_before_us=None,
            attempt=me.attempt,
            task=me.index,
            chunk_rows=chunk_rows,
        )
        yield _report(ingest(_named(batches, spec), spec, context))

    return task


def read_buckets(buckets: tuple[Bucket, ...], storage: Storage, columns: tuple[str, ...]) -> Task:
    """Return the task that reads stored rows back, bucket i for task i."""

    def task(batches: Batches) -> Batches:
        enter(storage)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                opened = open_bucket(storage, buckets[number])
                yield opened.batch.select(list(columns))
                opened.require_untouched()

    return task


def rewrite_buckets(buckets: tuple[Bucket, ...], spec: IngestSpec, storage: Storage, chunk_rows: int) -> Task:
    """Return the task that stores the rows of bucket i again, under the spec's layout, with the batches they arrived
    in.
    """

    def task(batches: Batches) -> Batches:
        me = enter(storage)
        old = buckets[me.index]
        yield _report(
            ingest_again(
                old,
                _named(batches, spec),
                spec,
                storage,
                attempt=me.attempt,
                task=me.index,
                chunk_rows=chunk_rows,
            )
        )

    return task


def keep_open(context: ProbeContext) -> None:
    """Close the buckets that this process has open and nobody probes any more."""
    if context.beside is not None:
        copies = {} if context.tables is None else context.tables.copies
        probed = (bucket for stores in (context.buckets, copies) for of_store in stores.values() for bucket in of_store)
        close_others(context.storage, (*probed, *context.beside))


def _traversal(shipment: Shipment) -> Traversal:
    context, lasting = shipment.unpacked()
    context = replace(context, predicates=noted(context.predicates, context.storage))
    return Traversal(context, lasting.deliveries, enter(context.storage).attempt, lasting.demands)


def probe_local(tasks: tuple[ProbeTask, ...], shipment: Shipment) -> Task:
    """Return the task that traverses whole probe trees, every edge local."""

    def task(batches: Batches) -> Batches:
        keep_open(shipment.context)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                traversal = _traversal(shipment)
                yield _report(traversal.run_local(tasks[number]))
        keep_out_of_sight()  # plan, demands and what else is known of it

    return task


def probe_start(tasks: tuple[ProbeTask, ...], shipment: Shipment) -> Task:
    """Return the task that sends the starting tuples over their first edges."""

    def task(batches: Batches) -> Batches:
        keep_open(shipment.context)
        traversal = _traversal(shipment)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from (_message(message) for message in traversal.start_messages(tasks[number]))
        yield _report_message(traversal)

    return task


def probe_receive(shipment: Shipment) -> Task:
    """Return the task that probes one partition of the stores with what was sent to it, and sends on the results."""

    def task(batches: Batches) -> Batches:
        keep_open(shipment.context)
        traversal = _traversal(shipment)
        for batch in batches:
            for row in range(batch.num_rows):
                edge = batch.column(1)[row].as_py()
                if not edge:
                    yield batch.slice(row, 1)
                    continue
                message = Message(
                    edge=edge,
                    partition=batch.column(0)[row].as_py(),
                    payload=batch.column(2)[row].as_buffer(),
                    layers=batch.column(3)[row].as_py(),
                )
                yield from (_message(sent) for sent in traversal.receive(message))
        yield _report_message(traversal)
        keep_out_of_sight()

    return task


def _message(message: Message) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([message.partition], pa.int32()),
            pa.array([message.edge], pa.string()),
            pa.array([message.payload], pa.binary()),
            pa.array([message.layers], pa.int64()),
        ],
        schema=_MESSAGE_SCHEMA,
    )


def _report_message(traversal: Traversal) -> pa.RecordBatch:
    """Return a task's report as a message without an edge: later tasks pass it through to the driver."""
    return _message(Message(edge="", partition=0, payload=pickle.dumps(traversal.report())))


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeWork:
    """Buckets to be merged, the indexes that their store has now, and how its rows are read."""

    merge: Merge
    indexes: tuple[tuple[str, ...], ...]
    reading: Reading | None

    def done(self, storage: Storage, name: str) -> Bucket:
        """Return what becomes of them, in a file of this name."""
        store = self.merge.buckets[0].store
        reader = Reader(storage, NO_READINGS if self.reading is None else {store: self.reading})
        return merge_buckets(
            storage, self.merge, self.indexes, name, opened_as=lambda bucket: reader.open(reader.seen(bucket))
        )


def merge_task(merges: tuple[MergeWork, ...], storage: Storage) -> Task:
    """Return the task that carries out merge i."""

    def task(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield _report((number, merges[number].done(storage, f"merged-{enter(storage).attempt}")))

    return task


def index_task(work: tuple[tuple[Bucket, tuple[str, ...]], ...], storage: Storage) -> Task:
    """Return the task that builds index i."""

    def task(batches: Batches) -> Batches:
        enter(storage)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                bucket, keys = work[number]
                open_bucket(storage, bucket).index(keys)
                yield _report(number)

    return task


def write_results(delivery: Delivery, batch: int, storage: Storage) -> Task:
    """Return the task that writes computed results to a file of their sink, or drops them where it discards them."""

    def task(batches: Batches) -> Batches:
        attempt = enter(storage).attempt
        file = None
        for rows in batches:
            if file is None and isinstance(delivery, Direct) and rows.num_rows:
                file = delivery.files.open(task_file_name(delivery.query, batch, attempt))
            if file is not None:
                file.write(rows)
        if file is not None:
            yield _report((delivery.query, file.close()))

    return task


def read_spool(paths: tuple[str, ...], storage: Storage, columns: tuple[str, ...]) -> Task:
    """Return the task that reads spooled results, file i for task i."""

    def task(batches: Batches) -> Batches:
        enter(storage)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                with storage.open_mapped(paths[number]) as mapped, pa.ipc.open_file(mapped) as reader:
                    for part in range(reader.num_record_batches):
                        yield reader.get_batch(part).select(list(columns))

    return task
