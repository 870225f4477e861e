"""Results as rows of a Delta table, each exactly once.

A batch is one commit of the table. With it Delta notes which batch of the query it was (``txnAppId``, ``txnVersion``),
and makes no commit of a batch that it has. Whether the table has more than the checkpoint knows of, its log tells: the
mark of the results stands there too (``userMetadata``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

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
        path, application = self.directory(sink.spec) or "", _application(results)
        known = f"{application} {path}"
        wrote_before = results.connections.pop(known, None) is not None
        if wrote_before or not _is_there(path, results):
            self._add(sink.spec, path, results)
        results.connections[known] = Known()
        return ()

    def has(self, sink: Sink, results: Results) -> bool:
        """Look into the table's log."""
        last = last_transaction(self.directory(sink.spec) or "", _application(results), results.batch)
        return results.are_in(last)

    def _add(self, spec: SinkSpec, path: str, results: Results) -> None:
        writer = results.rows.write.format("delta").mode("append")
        writer = writer.option("txnAppId", _application(results)).option("txnVersion", results.batch)
        writer = writer.option("userMetadata", results.mark)
        writer = writer.options(**{name: value for name, value in spec.options if folded(name) not in _OWN})
        partition_by = option_of(spec.options, "partitionBy")
        if partition_by is not None:
            writer = writer.partitionBy(*partition_columns(partition_by))
        writer.save(for_spark(path))
        reach("written")


def _application(results: Results) -> str:
    return f"plait-{results.checkpoint}-{results.query}"


def _is_there(path: str, results: Results) -> bool:
    """Tell whether a table has the batch. Raises SinkError if it has more than the checkpoint knows of."""
    last = last_transaction(path, _application(results), results.batch)
    advice = (
        "Delta forgets no batch, not by RESTORE either. Go on with the checkpoint that has written them; or name "
        "another table, which then has all results from this backup on"
    )
    results.require_known(last, f"the Delta table '{path}'", advice)
    return results.are_in(last)


__all__ = ["Delta"]
