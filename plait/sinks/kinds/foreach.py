"""Results handed to a function of the user's. A batch that was cut short is handed over again; its id tells."""

from __future__ import annotations

from plait.errors import SinkError
from plait.sinks.kind import Results, Sink, SinkKind
from plait.sinks.staging import Publication


class Foreach(SinkKind):
    """Calls ``function(dataframe, batch_id)``."""

    name = "foreach"
    script_problem = "the sink 'foreach' calls a Python function; use it from Python (plait.sinks.foreach)"

    def deliver(self, sink: Sink, results: Results) -> tuple[Publication, ...]:
        """Call the user's function; whatever it raises is the sink's failure, not the engine's."""
        if sink.function is None:
            raise SinkError(
                f"query '{results.query}': a foreach sink needs a function: use plait.sinks.foreach(function)"
            )
        try:
            sink.function(results.rows, results.batch)
        except Exception as error:
            raise SinkError(
                f"query '{results.query}': its foreach function raised {type(error).__name__}: {error}"
            ) from error
        return ()
