"""Hand spooled results to sinks that are not fed by the probe tasks directly.

For sinks that tasks can write (`plait.sinks.delivery.Direct`, `Discarded`) nothing is left to Spark but to evaluate the
SELECT lists, and that it can do for all queries at once: a job for each would cost about 100 ms whatever is in it. The
others take their results one query after the other.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.types import StructType

from plait.errors import PlaitError, SinkError
from plait.operators.evaluating import EvaluationError
from plait.operators.traversal.results import made_rows
from plait.query.model import ColumnRef, SinkSpec
from plait.runtime.outputs.binding import Binding, check_output
from plait.runtime.outputs.rejections import nullable
from plait.runtime.outputs.shape import Shape, decoded, decoded_sink, encoded_sink
from plait.runtime.spark.tasks import REPORT, read_spool, reports, write_results
from plait.sinks.delivery import Delivery, Direct, Discarded, Made, Projection
from plait.sinks.kind import Connection, Results, Sink
from plait.sinks.kinds import kind_of
from plait.sinks.staging import Publication
from plait.state.buckets import rows_of_all
from plait.state.model import Manifest, Undelivered
from plait.state.storage import Storage

_MOST_BYTES: Final = 4 << 20
_MARK: Final = 16
_FLAT: Final = re.compile(
    r"boolean|tinyint|smallint|int|bigint|float|double|decimal\(.*\)|string|binary|date|timestamp|timestamp_ntz"
)


class Deliverer:
    """Feeds sinks from spooled files. Every file sink stages; nothing is visible before `publish`."""

    def __init__(self, spark: SparkSession, storage: Storage, checkpoint: str) -> None:
        self._spark, self._storage, self._checkpoint = spark, storage, checkpoint
        self._connections: dict[str, Connection] = {}

    def deliver(self, binding: Binding, late: Undelivered, last: Manifest | None = None) -> tuple[Publication, ...]:
        """Give one batch's results of one query to its sink; return what is to be published on commit. `last`: the
        manifest of the last batch that is committed, for a sink that remembers batches.

        If the query was another one when they were found, they are what that one wanted of them. Raises SinkError if
        they then do not fit the sink.
        """
        is_former = late.shape not in ("", binding.shape.encoded())
        former = decoded(late.shape) if is_former else None
        sink = binding.sink if former is None else _sink_for(binding, former, late)
        kind = kind_of(sink.spec)
        spooled = self._spooled(late, former or binding.shape)
        rows = spooled.table(None if is_former else binding) if kind.takes_arrow else spooled.frame()
        return kind.deliver(sink, self._results(late, spooled, rows, last, {} if is_former else binding.kept))

    def settle(self, late: Undelivered, last: Manifest) -> None:
        """Make sure that the sink which results were found for has them. It is one that remembers batches; the query
        may be another by now, or gone.
        """
        sink, spooled = Sink(spec=decoded_sink(late.sink)), self._spooled(late, decoded(late.shape))
        kind_of(sink.spec).deliver(sink, self._results(late, spooled, spooled.frame(), last, {}))

    def has_elsewhere(self, binding: Binding, late: Undelivered, last: Manifest) -> bool:
        """Tell whether another place than today's sink writes to has results: the one they were found for, if it
        remembers batches. Nothing is written there.
        """
        if not late.sink:
            return False
        former = decoded_sink(late.sink)
        kind = kind_of(former)
        if not kind.remembers(former) or _is_same_place(former, binding.sink.spec):
            return False
        spooled = self._spooled(late, decoded(late.shape))
        return kind.has(Sink(spec=former), self._results(late, spooled, spooled.frame(), last, {}))

    def moved(self, binding: Binding, late: Undelivered) -> Undelivered:
        """Return results as they were found for today's sink, if that remembers batches and is another place than the
        one they were found for; else as they are. Raises SinkError if they do not fit it.
        """
        today = binding.sink.spec
        if not kind_of(today).remembers(today) or (late.sink and _is_same_place(decoded_sink(late.sink), today)):
            return late
        if late.shape not in ("", binding.shape.encoded()):
            _sink_for(binding, decoded(late.shape), late)
        return replace(late, sink=encoded_sink(today), reason="")

    def close(self) -> None:
        """Let go of what sinks keep open."""
        for connection in self._connections.values():
            with suppress(Exception):  # nothing is under way, and the next run does not depend on it
                connection.close()
        self._connections.clear()

    def _spooled(self, late: Undelivered, shape: Shape) -> _Spooled:
        return _Spooled(spark=self._spark, storage=self._storage, paths=late.paths, shape=shape)

    def _results(
        self,
        late: Undelivered,
        spooled: _Spooled,
        rows: Any,
        last: Manifest | None,
        kept: MutableMapping[int, pa.Table],
    ) -> Results:
        waiting = () if last is None else last.undelivered
        return Results(
            query=late.query,
            batch=late.batch,
            checkpoint=self._checkpoint,
            tasks=spooled.tasks,
            rows=rows,
            kept=kept,
            parts=spooled.parts,
            last=-1 if last is None else last.batch,
            mark=_mark_of(late),
            marks={each.batch: _mark_of(each) for each in waiting if each.query == late.query},
            connections=self._connections,
        )


def _mark_of(late: Undelivered) -> str:
    """Return what tells results from others of the same query and batch: no other attempt's files have their names."""
    return hashlib.sha256(" ".join(late.paths).encode()).hexdigest()[:_MARK]


def _is_same_place(one: SinkSpec, other: SinkSpec) -> bool:
    return (one.format, kind_of(one).place(one)) == (other.format, kind_of(other).place(other))


def _sink_for(binding: Binding, former: Shape, late: Undelivered) -> Sink:
    """Return the sink that takes what a former query has found: that of today, which may be there because the one
    before took nothing, or else that one, where all it has written before them is in the same place.
    """
    name = binding.query.name
    try:
        check_output(name, binding.sink, former.output)
    except PlaitError as problem:
        before = None if not late.sink else Sink(spec=decoded_sink(late.sink))
        if before is not None and _is_same_directory(before, binding.sink):
            return before
        raise SinkError(
            f"{late.rows} results of batch {late.batch} wait for the sink of query '{name}', which was another query "
            f"when they were found. They do not fit its sink of today ({problem}), and what comes after them waits, "
            "too. Run it once with the sink it had, so that they are written there, or drop it by name (DROP QUERY), "
            "and they are deleted."
        ) from problem
    return binding.sink


def _is_same_directory(former: Sink, today: Sink) -> bool:
    """Tell whether two sinks write to one directory, at the same moment of a batch: a table that remembers batches has
    nothing of files that are published there, nor they of it.
    """
    before, now = kind_of(former.spec), kind_of(today.spec)
    directory = before.directory(former.spec)
    if directory is None or before.remembers(former.spec) != now.remembers(today.spec):
        return False
    return directory == now.directory(today.spec)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spooled:
    """Joined rows in the checkpoint. `shape`: how they become results."""

    spark: SparkSession
    storage: Storage
    paths: tuple[str, ...]
    shape: Shape

    @property
    def tasks(self) -> int:
        """How many tasks Spark spreads them over."""
        return 1 if _are_few(self.storage, self.paths, self.shape.joined) else len(self.paths)

    @property
    def parts(self) -> Iterator[DataFrame]:
        """The results, in parts of a task each."""
        for paths in [self.paths] if self.tasks == 1 else [(path,) for path in self.paths]:
            yield replace(self, paths=paths).frame()

    def frame(self) -> DataFrame:
        """Return the results as Spark computes them: joined rows in, one task a file."""
        return project(joined_rows(self.spark, self.storage, self.paths, self.shape.joined), self.shape)

    def table(self, binding: Binding | None) -> pa.Table:
        """Return the results as Arrow; those that take no expression of Spark need not pass through it. `binding`: the
        query that has this shape, None if there is none any more.
        """
        schema = None if binding is None else binding.arrow_output
        made = None if binding is None or binding.made is None or schema is None else self._made(binding.made)
        if made is None or schema is None:
            rows = self.frame().toArrow()
            return rows if schema is None else rows.cast(schema)
        columns = [column.cast(field.type) for column, field in zip(made.columns, schema, strict=True)]
        return pa.Table.from_arrays(columns, schema=schema)

    def _made(self, made: Made) -> pa.Table | None:
        """Return the results made without Spark; None if for some row they cannot be."""
        parts = list[pa.RecordBatch]()
        try:
            for path in self.paths:
                with self.storage.open_mapped(path) as mapped, pa.ipc.open_file(mapped) as reader:
                    parts += [made_rows(reader.get_batch(part), made) for part in range(reader.num_record_batches)]
        except EvaluationError:
            return None
        return rows_of_all([pa.Table.from_batches([part]) for part in parts])


def project(frame: DataFrame, shape: Shape) -> DataFrame:
    """Return the results: the projection evaluated by Spark over joined rows, with the names Spark gave it."""
    return computed(frame, shape).toDF(*shape.output.names)


def computed(frame: DataFrame, shape: Shape) -> DataFrame:
    """Return the results with names that Python workers can be told: c0, c1 ..."""
    columns = [
        expr(sql).cast(nullable(field.dataType)).alias(f"c{i}")
        for i, (sql, field) in enumerate(zip(shape.sql, shape.output.fields, strict=True))
    ]
    return frame.select(*columns)


def joined_rows(spark: SparkSession, storage: Storage, paths: Sequence[str], schema: StructType) -> DataFrame:
    """Return the rows in these spooled files, `schema` being theirs, in as many partitions as there are files, none of
    them empty; in one if rows are few.

    Few become part of Spark's plan, which spares it a stage of Python tasks; else a task reads each file.
    """
    if _are_few(storage, paths, schema):
        return spark.createDataFrame(_read(storage, paths, schema), schema).coalesce(1)
    numbers = spark.range(0, len(paths), 1, len(paths))
    return numbers.mapInArrow(read_spool(tuple(paths), storage, tuple(schema.names)), schema)


def _are_few(storage: Storage, paths: Sequence[str], schema: StructType) -> bool:
    """Tell whether the rows fit into a plan: neither many, nor of types that Arrow and Spark do not hand over alike."""
    types = [str(field.dataType.simpleString()).lower() for field in schema.fields]
    if not types or not all(_FLAT.fullmatch(type_) for type_ in types):
        return False
    size = 0
    for path in paths:
        with storage.open_mapped(path) as mapped:
            size += mapped.size()
        if size > _MOST_BYTES:
            return False
    return True


def _read(storage: Storage, paths: Sequence[str], schema: StructType) -> pa.Table:
    parts: list[pa.Table] = []
    for path in paths:
        with storage.open_mapped(path) as mapped, pa.ipc.open_file(mapped) as reader:
            parts.append(reader.read_all().select(schema.names))
    return rows_of_all(parts)


def written_by_tasks(binding: Binding, checkpoint: str) -> Delivery | None:
    """Return how tasks hand over results that Spark has computed, None if the sink takes them in another way only."""
    columns = tuple(ColumnRef(relation="", column=name) for name in binding.output.names)
    projection = Projection(
        query=binding.query.name,
        checkpoint=checkpoint,
        joined=columns,
        made=tuple(range(len(columns))),
        schema=binding.arrow_output,
    )
    delivery = kind_of(binding.sink.spec).delivery(binding.sink.spec, projection)
    return delivery if isinstance(delivery, Direct | Discarded) else None


def deliver_together(
    spark: SparkSession,
    storage: Storage,
    deliveries: Sequence[tuple[Binding, Undelivered, Delivery]],
    *,
    slots: int,
) -> dict[str, tuple[Publication, ...]]:
    """Deliver the results of all these queries, `slots` tasks at a time; return what is to be published, by query.

    Whatever is wrong with one of them fails all: then each has to be delivered by itself.
    """
    frames = [_written(spark, storage, binding, late, delivery) for binding, late, delivery in deliveries]
    united = reduce(lambda left, right: left.union(right), frames)
    publications: dict[str, tuple[Publication, ...]] = {late.query: () for _, late, _ in deliveries}
    for query, publication in reports(united.coalesce(slots).collect()):
        publications[query] += (publication,)
    return publications


def _written(
    spark: SparkSession, storage: Storage, binding: Binding, late: Undelivered, delivery: Delivery
) -> DataFrame:
    """Return the reports of the tasks that write one query's results, a file for each that is spooled."""
    joined = joined_rows(spark, storage, late.paths, binding.joined_schema)
    return computed(joined, binding.shape).mapInArrow(write_results(delivery, late.batch, storage), REPORT)


__all__ = ["Deliverer", "deliver_together", "written_by_tasks"]
