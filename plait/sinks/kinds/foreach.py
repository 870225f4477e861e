"""Results handed to a function of the user's. A batch that was cut short is handed over again; its id tells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from plait.errors import SinkError
from plait.sinks.kind import Results, Sink, SinkKind, SinkName
from plait.sinks.staging import Publication
from plait.sinks.storable import SparkType, memory_problem


class Foreach(SinkKind):
    """Calls ``function(dataframe, batch_id)``."""

    name: ClassVar[SinkName] = "foreach"
    script_problem = "the sink 'foreach' calls a Python function; use it from Python (plait.sinks.foreach)"

    def deliver(self, sink: Sink, results: Results) -> tuple[Publication, ...]:
        """Call the user's function; whatever it raises is the sink's failure, not the engine's."""
        if sink.function is None:
            raise SinkError(
                f"query '{results.query}': a {self.name} sink needs a function: use plait.sinks.{self.name}(function)"
            )
        try:
            sink.function(results.rows, results.batch)
        except Exception as error:
            raise SinkError(
                f"query '{results.query}': its {self.name} function raised {type(error).__name__}: {error}"
            ) from error
        return ()


class ForeachArrow(Foreach):
    """Calls ``function(table, batch_id)``, the table being Arrow's, which takes no Spark job."""

    name = "foreach_arrow"
    takes_arrow = True
    script_problem = "the sink 'foreach_arrow' calls a Python function; use it from Python (plait.sinks.foreach_arrow)"

    def type_problem(self, type_: SparkType) -> str | None:
        """Refuse what Arrow has no type for."""
        return memory_problem(type_)

    def wants_schema(self, types: Sequence[SparkType]) -> bool:
        """Want it always: results are handed over as Arrow."""
        return True


__all__ = ["Foreach", "ForeachArrow"]
