"""Take in one task's share of a batch of one source: set aside what cannot be joined, keep the rest in buckets.

A tuple is **bad** if it cannot be joined at all (`plait.operators.ingest.badrows`), **late** if τ lies before the
watermark its stream is held to (a tie is not late). Bad and late tuples go to the dead-letter sink, if there is one. Of
the others a store keeps those that satisfy one of its requirements; the rest is outside all selections, or kept out by
a NULL key. Every row is counted under exactly one of these. Copies of rows (`plait.plan.key_groups`) are stored and not
counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from plait.kernels.bands import ordered_int64
from plait.kernels.classing import bit_counts
from plait.kernels.sketch import kmv
from plait.operators.column_names import (
    ROW,
    SELECTIONS_PER_WORD,
    SENT,
    SERVES,
    TAU,
    bit_masks,
    bit_of,
    word_names,
)
from plait.operators.ingest.badrows import DeadLetterWriter, any_of, bad_masks, bad_rows, damaged_rows
from plait.operators.ingest.placed_rows import is_told, told_of
from plait.operators.ingest.placing import by_partition, int64_values, parted
from plait.operators.ingest.projection import IngestSpec
from plait.operators.ingest.report_sums import report_sum
from plait.operators.reports import IngestReport
from plait.plan.columns import stored_column
from plait.plan.key_groups import Generation
from plait.plan.model import Store
from plait.state.buckets import write_bucket
from plait.state.model import Bucket, Layout, NullKey
from plait.state.storage import Storage

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestContext:
    """Where and when a task runs. `attempt` makes file names unique: a task may run twice, the manifest names the
    winner.

    `late_before_us`: rows with a smaller τ are late; None: none is. `generation`: the tables that sent the rows here,
    None if none did. `chunk_rows` and `chunk_bytes` bound a bucket, and
    so the task's memory.
    """

    storage: Storage
    batch: int
    late_before_us: int | None
    attempt: str
    task: int = 0
    chunk_rows: int = 2_000_000
    chunk_bytes: int = 128 << 20
    generation: Generation | None = None


def ingest(batches: Iterable[pa.RecordBatch], spec: IngestSpec, context: IngestContext) -> IngestReport:
    """Write the buckets of these rows and return their account. Columns of `batches` are those of
    ``spec.projection``.
    """
    report = IngestReport(source=spec.source)
    with DeadLetterWriter(spec, context.batch, context.attempt, context.storage) as letters:
        for chunk, table in enumerate(_chunks(batches, context)):
            report = report_sum(report, _ingest_chunk(table, spec, context, chunk, letters))
    return replace(report, publications=letters.publications())


def ingest_again(
    bucket: Bucket,
    rows: Iterable[pa.RecordBatch],
    spec: IngestSpec,
    storage: Storage,
    *,
    attempt: str,
    task: int,
    chunk_rows: int,
) -> IngestReport:
    """Store the `rows` of a bucket again, under the spec's layout, with the batches they arrived in."""
    context = IngestContext(
        storage=storage,
        batch=bucket.batch_max,
        late_before_us=None,
        attempt=attempt,
        task=task,
        chunk_rows=chunk_rows,
    )
    report = ingest(rows, spec, context)
    return replace(report, buckets=tuple(replace(each, batch_min=bucket.batch_min) for each in report.buckets))


def _chunks(batches: Iterable[pa.RecordBatch], context: IngestContext) -> Iterator[pa.Table]:
    """Group record batches into tables of about the context's rows or bytes, each column in one piece."""
    pending: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        pending.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= context.chunk_rows or size >= context.chunk_bytes:
            yield pa.Table.from_batches(pending).combine_chunks()
            pending, rows, size = [], 0, 0
    if pending:
        yield pa.Table.from_batches(pending).combine_chunks()


def _ingest_chunk(
    table: pa.Table, spec: IngestSpec, context: IngestContext, chunk: int, letters: DeadLetterWriter
) -> IngestReport:
    """Take in a chunk; of what is here only to be found by a key, store what is kept."""
    aliased, generation = with_aliases(table, spec), context.generation
    if generation is None:
        return _take_in(aliased, spec, context, chunk, letters)
    is_home = pa.array(told_of(table).is_home)
    report = _take_in(aliased.filter(is_home).combine_chunks(), spec, context, chunk, letters)
    copies = aliased.filter(pc.invert(is_home)).combine_chunks()
    return replace(
        report,
        copies=tuple(_copies(copies, spec, context, generation, chunk)) if copies.num_rows else (),
        sent_rows=table.num_rows,
        sent_bytes=table.nbytes - (0 if is_told(spec, generation) else table[SENT].nbytes),
    )


def _copies(
    table: pa.Table, spec: IngestSpec, context: IngestContext, generation: Generation, chunk: int
) -> list[Bucket]:
    """Store those of these copies whose rows are kept where they are at home."""
    excluded = any_of(bad_masks(table, spec), table.num_rows)
    if context.late_before_us is not None:
        excluded |= int64_values(table, TAU) < context.late_before_us
    table = table.filter(pa.array(~excluded)).combine_chunks()
    buckets: list[Bucket] = []
    for store, layout in spec.stores:
        if generation.accesses_of(store.id):
            kept = table.filter(pa.array(_kept_rows(table, spec, store)[1])).combine_chunks()
            written = _store(kept, spec, (store, layout), replace(context, attempt=f"{context.attempt}-copy"), chunk)
            buckets += [replace(bucket, is_copy=True) for bucket in written]
    return buckets


def _take_in(
    table: pa.Table, spec: IngestSpec, context: IngestContext, chunk: int, letters: DeadLetterWriter
) -> IngestReport:
    rows = table.num_rows
    bad_by = bad_masks(table, spec)
    bad = any_of(bad_by, rows)
    described = bad_rows(table, spec, bad_by)
    late = np.zeros(rows, np.bool_)
    tau_min = tau_max = None
    if not spec.is_table:
        tau = int64_values(table, TAU)
        good = tau[~bad]
        if len(good):
            tau_min, tau_max = int(good.min()), int(good.max())
        if context.late_before_us is not None:
            late = (tau < context.late_before_us) & ~bad
    excluded = bad | late
    if excluded.any():
        letters.write(table, bad=bad_by, late=late)
        table = table.filter(pa.array(~excluded)).combine_chunks()
    report = IngestReport(
        source=spec.source,
        rows=rows,
        late=int(late.sum()),
        bad=int(bad.sum()),
        tau_min=tau_min,
        tau_max=tau_max,
        kept=_kept_by_selection(table, spec),
        sketches=tuple((name, _sketch(table, name)) for name in _hashed_keys(table)),
        bad_rows=described or damaged_rows(table, spec),
    )
    if table.num_rows == 0:
        return report
    wanted = np.zeros(table.num_rows, np.bool_)
    kept = np.zeros(table.num_rows, np.bool_)
    buckets: list[Bucket] = []
    for store, layout in spec.stores:
        selected, keep = _kept_rows(table, spec, store)
        wanted |= selected
        kept |= keep
        buckets += _store(table if keep.all() else table.filter(pa.array(keep)), spec, (store, layout), context, chunk)
    left = np.flatnonzero(~kept)
    return replace(
        report,
        buckets=tuple(buckets),
        null_keys=int((wanted & ~kept).sum()),
        null_keys_by=_null_keys(table, spec),
        outside=table.num_rows - int(wanted.sum()),
        unstored_tau_max=int(int64_values(table, TAU)[left].max()) if len(left) and not spec.is_table else None,
    )


def with_aliases(table: pa.Table, spec: IngestSpec) -> pa.Table:
    """Return the rows with the columns that repeat others, and int64 of keys and τ that were passed on as they are."""
    for name, other in spec.aliases:
        table = table.append_column(name, _counted(table[other]))
    for place, name in enumerate(table.column_names):
        if stored_column(name).kind in ("time", "ordered key"):
            table = table.set_column(place, name, _counted(table.column(place)))
    return table


def _counted(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """Return int64 of the order of the values: times in microseconds, without a copy."""
    if column.type == pa.int64():
        return column
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    valid = column.is_valid().to_numpy()
    return pa.array(ordered_int64(column.fill_null(0.0).to_numpy()), mask=~valid)


def _holds(table: pa.Table, spec: IngestSpec, selections: Iterable[str]) -> Mask:
    """Return the rows for which one of these selections holds."""
    if spec.selections == ("true",):
        return np.ones(table.num_rows, np.bool_)
    holds = np.zeros(table.num_rows, np.bool_)
    for word, mask in bit_masks(spec.selections, selections).items():
        holds |= (int64_values(table, word) & mask) != 0
    return holds


def _kept_by_selection(table: pa.Table, spec: IngestSpec) -> tuple[tuple[str, int], ...]:
    """Return for how many rows each selection holds."""
    if spec.selections == ("true",):
        return (("true", table.num_rows),)
    counts: list[int] = []
    for word in word_names(max(len(spec.selections), 2)) if spec.selections else ():
        counts += bit_counts(int64_values(table, word), SELECTIONS_PER_WORD).tolist()
    return tuple(zip(spec.selections, counts, strict=False))


def _kept_rows(table: pa.Table, spec: IngestSpec, store: Store) -> tuple[Mask, Mask]:
    """Return (rows some selection holds for, rows that satisfy a whole requirement)."""
    selected = np.zeros(table.num_rows, np.bool_)
    kept = np.zeros(table.num_rows, np.bool_)
    by_keys: dict[tuple[str, ...], list[str]] = {}
    for requirement in store.requirements:
        by_keys.setdefault(requirement.keys, []).append(requirement.selection.sql)
    for keys, selections in by_keys.items():
        holds = _holds(table, spec, selections)
        selected |= holds
        for key in keys:
            if table[key].null_count:
                holds = holds & pc.is_valid(table[key]).to_numpy()
        kept |= holds
    return selected, kept


def _null_keys(table: pa.Table, spec: IngestSpec) -> tuple[NullKey, ...]:
    """Return how many rows have NULL where a requirement that selects them wants a value, by key expression."""
    rows: dict[str, Mask] = {}
    for store, _ in spec.stores:
        wanted: dict[str, list[str]] = {}
        for requirement in store.requirements:
            for key in requirement.keys:
                if table[key].null_count:
                    wanted.setdefault(key, []).append(requirement.selection.sql)
        for key, selections in wanted.items():
            text = store.key(key).expression.sql
            lacking = _holds(table, spec, selections) & pc.is_null(table[key]).to_numpy()
            rows[text] = rows.get(text, np.zeros(table.num_rows, np.bool_)) | lacking
    return tuple(NullKey(key=key, rows=int(rows[key].sum())) for key in sorted(rows) if rows[key].any())


def _store(
    table: pa.Table, spec: IngestSpec, target: tuple[Store, Layout], context: IngestContext, chunk: int
) -> list[Bucket]:
    store, layout = target
    if table.num_rows == 0:
        return []
    generation, chosen = context.generation, _with_layout(table, spec, layout)
    if generation is None:
        parts = by_partition(chosen, store, context.batch + context.task + chunk)
    else:
        parts = _as_sent(table, chosen, store, generation)
    written = []
    for partition, part in parts:
        written.append(
            write_bucket(
                context.storage,
                store=store.id,
                partition=partition,
                name=f"{context.batch}-{context.task}-{chunk}-{context.attempt}",
                table=part,
                layout=layout,
                indexes=store.indexes,
                batch_min=context.batch,
                batch_max=context.batch,
                partition_by=store.partition_by if generation is None else (),
                parallelism=store.parallelism if generation is None else generation.partitions,
            )
        )
    if generation is None:
        return written
    return [replace(bucket, generation=generation.first_batch) for bucket in written]


def _as_sent(table: pa.Table, chosen: pa.Table, store: Store, generation: Generation) -> Iterator[tuple[int, pa.Table]]:
    """Yield (partition, the columns `chosen` of its rows), where tables have sent the rows."""
    sent = told_of(table)
    if generation.splits_keys_of(store.id):
        chosen = chosen.append_column(SERVES, pa.array(sent.bits))
    return parted(chosen, sent.partition, generation.partitions)


def _with_layout(table: pa.Table, spec: IngestSpec, layout: Layout) -> pa.Table:
    """Choose the layout's columns; renumber the query-set bits if other stores of the source have more selections."""
    names = layout.carried
    words = word_names(len(layout.selections))
    if not names and not words:
        return pa.table({ROW: pa.array(np.zeros(table.num_rows, np.int8))})
    if layout.selections == spec.selections:
        return table.select([*names, *words])
    chosen = table.select(names)
    values = {word: np.zeros(table.num_rows, np.int64) for word in words}
    for selection in layout.selections if words else ():
        word, mask = bit_of(layout.selections, selection)
        values[word] |= np.where(_holds(table, spec, (selection,)), np.int64(mask), np.int64(0))
    for word in words:
        chosen = chosen.append_column(word, pa.array(values[word]))
    return chosen


def _hashed_keys(table: pa.Table) -> Iterator[str]:
    return (name for name in table.column_names if stored_column(name).kind == "key")


def _sketch(table: pa.Table, name: str) -> tuple[int, ...]:
    column = table[name].drop_null()
    if len(column) == 0:
        return ()
    return tuple(kmv(np.asarray(column.to_numpy(), dtype=np.int64)).tolist())


__all__ = ["IngestContext", "ingest", "ingest_again", "with_aliases"]
