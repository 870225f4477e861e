"""Results kept in the engine's process, and gone with it."""

from __future__ import annotations

from collections.abc import Sequence

from plait.sinks.kind import Results, Sink, SinkKind
from plait.sinks.staging import Publication
from plait.sinks.storable import SparkType, memory_problem


class Memory(SinkKind):
    """Keeps all results; a batch done twice replaces itself."""

    name = "memory"
    takes_arrow = True

    def type_problem(self, type_: SparkType) -> str | None:
        """Refuse what Arrow has no type for."""
        return memory_problem(type_)

    def wants_schema(self, types: Sequence[SparkType]) -> bool:
        """Want it always: results are kept as Arrow."""
        return True

    def deliver(self, sink: Sink, results: Results) -> tuple[Publication, ...]:
        """Keep the results."""
        results.kept[results.batch] = results.rows
        return ()
