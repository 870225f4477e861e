"""Results on standard output. A batch that was cut short is printed again."""

from __future__ import annotations

from plait.sinks.kind import Results, Sink, SinkKind
from plait.sinks.staging import Publication


class Console(SinkKind):
    """Prints some rows of every batch."""

    name = "console"

    def deliver(self, sink: Sink, results: Results) -> tuple[Publication, ...]:
        """Print up to ``rows`` results."""
        print(f"-- {results.query}, batch {results.batch}")
        results.frame().show(int(dict(sink.spec.options).get("rows", "20")), truncate=False)
        return ()
