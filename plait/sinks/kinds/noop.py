"""No results: for measurements."""

from __future__ import annotations

from plait.query.model import SinkSpec
from plait.sinks.delivery import Delivery, Discarded, Projection
from plait.sinks.kind import Results, Sink, SinkKind
from plait.sinks.staging import Publication
from plait.sinks.storable import Atomic, SparkType, parts_of


class Noop(SinkKind):
    """Computes results and discards them."""

    name = "noop"

    def type_problem(self, type_: SparkType) -> str | None:
        """Refuse what Spark computes for no table, not even for one that discards it."""
        return "cast it to a string" if Atomic("interval") in parts_of(type_) else None

    def delivery(self, spec: SinkSpec, projection: Projection) -> Delivery:
        """Discard results in the tasks, once those have made them, unless an expression takes Spark."""
        if projection.made is None:
            return super().delivery(spec, projection)
        return Discarded(query=projection.query, columns=projection.joined, made=projection.made)

    def deliver(self, sink: Sink, results: Results) -> tuple[Publication, ...]:
        """Have Spark compute every result."""
        results.rows.write.format("noop").mode("append").save()
        return ()
