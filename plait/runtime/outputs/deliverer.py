"""Hand spooled results to sinks that are not fed by the probe tasks directly."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from plait.errors import PlaitError, SinkError
from plait.operators.probe.evaluating import EvaluationError
from plait.operators.traversal.results import made_rows
from plait.runtime.outputs.binding import Binding, check_output, project
from plait.runtime.outputs.shape import Shape, decoded, decoded_sink
from plait.runtime.outputs.spooled import joined_rows, tasks_for
from plait.sinks.kind import Sink
from plait.sinks.kinds import kind_of
from plait.sinks.staging import Publication
from plait.state.model import Undelivered
from plait.state.storage import Storage


@dataclass(slots=True)
class MemoryResults:
    """Results of a query with a memory sink, by batch: a batch done twice replaces itself. `binding` says what query
    that is: another one that has its name later has results of its own.
    """

    binding: Binding
    batches: dict[int, pa.Table] = field(default_factory=dict)

    def table(self) -> pa.Table:
        """Return all results so far, in batch order."""
        parts = [self.batches[batch] for batch in sorted(self.batches)]
        return pa.concat_tables(parts) if parts else (self.binding.arrow_output or pa.schema([])).empty_table()

    def are_of(self, binding: Binding) -> bool:
        """Tell whether this is the query whose results these are."""
        return self.binding.query == binding.query and self.binding.output == binding.output


class Deliverer:
    """Feeds sinks from spooled files. Every file sink stages; nothing is visible before `publish`."""

    def __init__(self, spark: SparkSession, storage: Storage, checkpoint: str) -> None:
        self._spark, self._storage, self._checkpoint = spark, storage, checkpoint
        self.memory: dict[str, MemoryResults] = {}

    def deliver(self, binding: Binding, late: Undelivered) -> tuple[Publication, ...]:
        """Give one batch's results of one query to its sink; return what is to be published on commit.

        If the query was another one when they were found, they are what that one wanted of them. Raises SinkError if
        they then do not fit the sink.
        """
        is_former = late.shape not in ("", binding.shape.encoded())
        former = decoded(late.shape) if is_former else None
        sink = binding.sink if former is None else _sink_for(binding, former, late)
        results = _SpooledResults(
            spark=self._spark,
            storage=self._storage,
            binding=binding,
            former=former,
            paths=late.paths,
            batch=late.batch,
            checkpoint=self._checkpoint,
            kept={} if is_former else self._memory_of(binding).batches,
        )
        return kind_of(sink.spec).deliver(sink, results)

    def _memory_of(self, binding: Binding) -> MemoryResults:
        kept = self.memory.get(binding.query.name)
        if kept is None or not kept.are_of(binding):
            kept = self.memory[binding.query.name] = MemoryResults(binding)
        return kept


def _sink_for(binding: Binding, former: Shape, late: Undelivered) -> Sink:
    """Return the sink that takes what a former query has found: that of today, which may be there because the one
    before took nothing, or else that one, where all it has written before them is in the same place.
    """
    name = binding.query.name
    try:
        check_output(name, binding.sink, former.output)
    except PlaitError as problem:
        before = None if not late.sink else Sink(spec=decoded_sink(late.sink))
        if before is not None and _place(before) is not None and _place(before) == _place(binding.sink):
            return before
        raise SinkError(
            f"{late.rows} results of batch {late.batch} wait for the sink of query '{name}', which was another query "
            f"when they were found. They do not fit its sink of today ({problem}), and what comes after them waits, "
            "too. Run it once with the sink it had, so that they are written there, or drop it by name (DROP QUERY), "
            "and they are deleted."
        ) from problem
    return binding.sink


def _place(sink: Sink) -> str | None:
    return kind_of(sink.spec).directory(sink.spec)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SpooledResults:
    """Results as a sink sees them (`plait.sinks.kind.Results`). `former`: what the query made of joined rows when these
    were found, None if it is the same now.
    """

    spark: SparkSession
    storage: Storage
    binding: Binding
    former: Shape | None
    paths: tuple[str, ...]
    batch: int
    checkpoint: str
    kept: dict[int, pa.Table]

    @property
    def query(self) -> str:
        """The query's name."""
        return self.binding.query.name

    @property
    def tasks(self) -> int:
        """How many tasks Spark spreads them over."""
        return tasks_for(self.storage, self.paths, (self.former or self.binding.shape).joined)

    def frame(self) -> DataFrame:
        """Return the results as Spark computes them: joined rows in, one task a file."""
        shape = self.former or self.binding.shape
        return project(joined_rows(self.spark, self.storage, self.paths, shape.joined), shape)

    def table(self) -> pa.Table:
        """Return the results as Arrow; those that take no expression of Spark need not pass through it."""
        if self.former is not None:
            return self.frame().toArrow()
        made, schema = self._made(), self.binding.arrow_output
        if made is None or schema is None:
            rows = self.frame().toArrow()
            return rows if schema is None else rows.cast(schema)
        columns = [column.cast(field.type) for column, field in zip(made.columns, schema, strict=True)]
        return pa.Table.from_arrays(columns, schema=schema)

    def _made(self) -> pa.Table | None:
        """Return the results made without Spark; None if they are not, or for some row cannot be."""
        made, parts = self.binding.made, list[pa.RecordBatch]()
        if made is None:
            return None
        try:
            for path in self.paths:
                with self.storage.open_mapped(path) as mapped, pa.ipc.open_file(mapped) as reader:
                    parts += [made_rows(reader.get_batch(part), made) for part in range(reader.num_record_batches)]
        except EvaluationError:
            return None
        return pa.Table.from_batches(parts)
