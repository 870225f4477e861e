"""Hand spooled results to sinks that are not fed by the probe tasks directly."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from urllib.parse import quote

import pyarrow as pa
import pyarrow.fs as pafs
from pyspark.sql import DataFrame, SparkSession

from plait.errors import SinkError
from plait.faults import reach
from plait.operators.staging import STAGING, filesystem_of, not_shared
from plait.runtime.binding import Binding, project
from plait.runtime.session import for_spark
from plait.runtime.tasks import read_spool
from plait.state.model import Publication
from plait.state.storage import Storage


@dataclass(slots=True)
class MemoryResults:
    """Results of a query with a memory sink, by batch: a batch done twice replaces itself."""

    schema: pa.Schema
    batches: dict[int, pa.Table] = field(default_factory=dict)

    def table(self) -> pa.Table:
        """Return all results so far, in batch order."""
        parts = [self.batches[batch] for batch in sorted(self.batches)]
        return pa.concat_tables(parts) if parts else self.schema.empty_table()


class Deliverer:
    """Feeds sinks from spooled files. Every file sink stages; nothing is visible before `publish`."""

    def __init__(self, spark: SparkSession, storage: Storage) -> None:
        self._spark, self._storage = spark, storage
        self.memory: dict[str, MemoryResults] = {}

    def deliver(self, binding: Binding, batch: int, paths: tuple[str, ...]) -> tuple[Publication, ...]:
        """Give one batch's results of one query to its sink; return what is to be published on commit."""
        sink = binding.sink
        match sink.spec.format:
            case "memory":
                results = self.memory.setdefault(binding.query.name, MemoryResults(binding.arrow_output))
                results.batches[batch] = self._table(binding, paths)
                return ()
            case "parquet" | "csv" | "json":
                return self._stage(binding, batch, paths)
            case "console":
                self._show(binding, batch, self._frame(binding, paths))
                return ()
            case "foreach":
                self._call(binding, batch, self._frame(binding, paths))
                return ()
            case _:
                self._frame(binding, paths).write.format(sink.spec.format).mode("append").save()
                return ()

    def _frame(self, binding: Binding, paths: tuple[str, ...]) -> DataFrame:
        joined = self._spark.range(0, len(paths), 1, len(paths)).mapInArrow(
            read_spool(paths, self._storage, tuple(binding.joined_schema.names)), binding.joined_schema
        )
        return project(joined, binding)

    def _table(self, binding: Binding, paths: tuple[str, ...]) -> pa.Table:
        """Return the results as Arrow; without expressions to evaluate they need not pass through Spark."""
        if not binding.is_plain:
            return self._frame(binding, paths).toArrow().cast(binding.arrow_output)
        parts = []
        for path in paths:
            with self._storage.open_mapped(path) as mapped, pa.ipc.open_file(mapped) as reader:
                parts.append(reader.read_all())
        names = [column.expression.columns[0].name for column in binding.query.output]
        table = pa.concat_tables(parts)
        columns = [table.column(name).cast(binding.arrow_output.field(i).type) for i, name in enumerate(names)]
        return pa.Table.from_arrays(columns, schema=binding.arrow_output)

    def _stage(self, binding: Binding, batch: int, paths: tuple[str, ...]) -> tuple[Publication, ...]:
        """Write with Spark into the staging area. File names say query, batch and number, so a repeat replaces
        itself.
        """
        options = dict(binding.sink.spec.options)
        directory = options.pop("path")
        prefix = f"{quote(binding.query.name, safe='')}-{batch:08d}"
        staged = posixpath.join(directory, STAGING, prefix)
        format = binding.sink.spec.format
        self._frame(binding, paths).write.format(format).options(**options).mode("overwrite").save(for_spark(staged))
        reach("staged")
        filesystem, path = filesystem_of(staged)
        infos = filesystem.get_file_info(pafs.FileSelector(path))
        names = sorted(info.base_name for info in infos if info.base_name.startswith("part-"))
        if len(names) < len(paths):  # a task each, all of which had rows to write
            raise not_shared(directory)
        return tuple(
            Publication(
                staged=posixpath.join(staged, name),
                final=posixpath.join(directory, f"{prefix}-{number:05d}.{name.split('.', 1)[1]}"),
            )
            for number, name in enumerate(names)
        )

    def _call(self, binding: Binding, batch: int, frame: DataFrame) -> None:
        """Call the user's function; whatever it raises is the sink's failure, not the engine's."""
        function = binding.sink.function
        if function is None:
            raise SinkError(
                f"query '{binding.query.name}': a foreach sink needs a function: use plait.sinks.foreach(function)"
            )
        try:
            function(frame, batch)
        except Exception as error:
            raise SinkError(
                f"query '{binding.query.name}': its foreach function raised {type(error).__name__}: {error}"
            ) from error

    def _show(self, binding: Binding, batch: int, frame: DataFrame) -> None:
        rows = int(dict(binding.sink.spec.options).get("rows", "20"))
        print(f"-- {binding.query.name}, batch {batch}")
        frame.show(rows, truncate=False)
