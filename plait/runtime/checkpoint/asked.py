"""What is to run on a checkpoint, and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from plait.adapt.planning import PlanRequest
from plait.optimizer.incremental.former import Former
from plait.plan.model import Plan
from plait.query.model import Stream
from plait.runtime.inputs.opening import OpenSource
from plait.runtime.outputs.binding import Binding
from plait.runtime.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is to run, and where. `clock_ms`: now; `dropped`: the queries that were dropped by name, rather than left
    out: results that their sinks have not taken are discarded. `plan`: made for just this, None to make one, beside a
    `former` one if there is one. `running`: what answers queries by now.
    """

    spark: SparkSession
    checkpoint: str
    settings: Settings
    request: PlanRequest
    sources: Mapping[str, OpenSource]
    bindings: Mapping[str, Binding]
    clock_ms: int
    dropped: frozenset[str] = frozenset()
    plan: Plan | None = None
    former: Former | None = None
    running: Former | None = None

    def streams_of(self, plan: Plan | None) -> tuple[Stream, ...]:
        """Return the streams that arrive and that the plan reads, in order of registration. None: all."""
        used = set(self.sources) if plan is None else {store.source for store in plan.stores}
        registered = (opened.source for opened in self.sources.values())
        streams = (source for source in registered if isinstance(source, Stream) and source.derived is None)
        return tuple(stream for stream in streams if stream.name in used)

    @property
    def derived(self) -> tuple[Stream, ...]:
        """The streams whose rows are the groups of queries, those that others read."""
        registered = (opened.source for opened in self.sources.values())
        return tuple(source for source in registered if isinstance(source, Stream) and source.derived is not None)


__all__ = ["Asked"]
