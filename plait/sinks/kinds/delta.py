"""Results as rows of a Delta table, each exactly once.

A batch is one commit of the table. With it Delta notes which batch of the query it was (``txnAppId``, ``txnVersion``),
and makes no commit of a batch that it has. Whether the table has more than the checkpoint knows of, its log tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from plait.errors import SinkError
from plait.faults import reach
from plait.filesystems import for_spark
from plait.option_values import SWITCH, words
from plait.query.model import SinkSpec
from plait.sinks.delta_log import last_transaction
from plait.sinks.files import partition_columns, partition_problem
from plait.sinks.kind import Known, ResultColumn, Results, Sink, SinkKind
from plait.sinks.options import PARTITION_BY, PATH, SinkProblem, accepting, option_of
from plait.sinks.staging import Publication
from plait.sinks.storable import Atomic, SparkType, parquet_problem, parts_of
from plait.spelling import folded

_CODEC: Final = words("none", "uncompressed", "snappy", "gzip", "lz4", "zstd")
_OWN: Final = frozenset({"path", "partitionby"})


class Delta(SinkKind):
    """A Delta table, by its path. It is made where it is not there."""

    name = "delta"
    options = (PATH, PARTITION_BY, *accepting(SWITCH, "mergeSchema"), *accepting(_CODEC, "compression"))
    required = ("path",)
    by_name = True

    def directory(self, spec: SinkSpec) -> str | None:
        """Return the folder of the table."""
        return option_of(spec.options, "path")

    def column_problems(self, spec: SinkSpec, columns: Sequence[ResultColumn]) -> list[SinkProblem]:
        """Look at types, and at the columns that the table is to be partitioned by."""
        problems, value = super().column_problems(spec, columns), option_of(spec.options, "partitionBy")
        message = None if value is None else partition_problem(value, columns)
        return problems if message is None else [*problems, SinkProblem(message=message, option="partitionBy")]

    def type_problem(self, type_: SparkType) -> str | None:
        """Refuse what Parquet cannot hold, and columns of nothing."""
        if any(isinstance(part, Atomic) and part.name == "void" for part in parts_of(type_)):
            return "cast it: CAST(NULL AS STRING)"
        return parquet_problem(type_)

    def remembers(self, spec: SinkSpec) -> bool:
        """Tell that the table says which batches it has."""
        return True

    def deliver(self, sink: Sink, results: Results) -> tuple[Publication, ...]:
        """Add the batch, unless the table has it."""
        path, application = self.directory(sink.spec) or "", f"plait-{results.checkpoint}-{results.query}"
        known = f"{application} {path}"
        if results.connections.pop(known, None) is None:
            last = last_transaction(path, application)
            if last is not None and last > results.last:
                raise SinkError(
                    f"query '{results.query}': the Delta table '{path}' has results of batch {last} of this "
                    f"checkpoint, which itself has come to batch {results.last} only: it was restored from a backup, "
                    "or a copy of it goes on. Go on with the one that has written them, or RESTORE the table to a "
                    "version before, or name another table"
                )
        writer = results.rows.write.format("delta").mode("append")
        writer = writer.option("txnAppId", application).option("txnVersion", results.batch)
        writer = writer.options(**{name: value for name, value in sink.spec.options if folded(name) not in _OWN})
        partition_by = option_of(sink.spec.options, "partitionBy")
        if partition_by is not None:
            writer = writer.partitionBy(*partition_columns(partition_by))
        writer.save(for_spark(path))
        reach("written")
        results.connections[known] = Known()
        return ()


__all__ = ["Delta"]
