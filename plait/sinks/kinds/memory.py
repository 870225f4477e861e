"""Results kept in the engine's process, and gone with it."""

from __future__ import annotations

from plait.sinks.kind import Results, Sink, SinkKind
from plait.sinks.staging import Publication


class Memory(SinkKind):
    """Keeps all results; a batch done twice replaces itself."""

    name = "memory"

    def deliver(self, sink: Sink, results: Results) -> tuple[Publication, ...]:
        """Keep the results."""
        results.kept[results.batch] = results.table()
        return ()
