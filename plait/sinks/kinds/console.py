"""Results on standard output. A batch that was cut short is printed again."""

from __future__ import annotations

from plait.option_values import COUNT
from plait.sinks.kind import Results, Sink, SinkKind
from plait.sinks.options import accepting, option_of
from plait.sinks.staging import Publication


class Console(SinkKind):
    """Prints some rows of every batch."""

    name = "console"
    options = accepting(COUNT, "rows")

    def deliver(self, sink: Sink, results: Results) -> tuple[Publication, ...]:
        """Print up to ``rows`` results."""
        print(f"-- {results.query}, batch {results.batch}")
        results.rows.show(int(option_of(sink.spec.options, "rows") or 20), truncate=False)
        return ()
