"""What an engine tells of itself: results, plan, status, what has become of a row, what other queries would cost."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa

from plait.adapt.planning import PlanRequest
from plait.arguments import names, text
from plait.errors import OptionError
from plait.operators.close.watermark import mark_of
from plait.plan.explain import ExplainFormat, Shown, checked_format
from plait.query.model import Query, Source
from plait.runtime.answering import Answering
from plait.runtime.batch.events import Summary
from plait.runtime.checkpoint.observed import measure
from plait.runtime.checkpoint.partition_offsets import lag_of
from plait.runtime.explaining import explained_alone, explained_plan
from plait.runtime.previewing import Wanted, previewed
from plait.runtime.rehearsing import Rehearsal
from plait.runtime.status import part_of
from plait.runtime.why.findings import Trace
from plait.runtime.why.inquiry import Inquiry
from plait.state.manifest import ManifestLog
from plait.state.place import state_of


class Looking(Answering):
    """Shows what is registered and what a run has come to; changes nothing."""

    _checkpoint: str
    _started: float

    @abstractmethod
    def _queries(self) -> tuple[Query, ...]:
        """Return the queries that batches are to answer."""

    @abstractmethod
    def _request(
        self, queries: tuple[Query, ...] | None = None, sources: dict[str, Source] | None = None
    ) -> PlanRequest:
        """Return what a plan for these queries depends on, or for all; of these sources, or of those there are."""

    def results(self, query: str) -> pa.Table:
        """Return all results of a query with a memory sink so far."""
        binding = self._registry.bindings.get(query)
        if binding is None:
            raise OptionError(f"there is no query '{query}'; create it with sink=plait.sinks.memory()")
        return binding.results()

    def explain(
        self,
        format: ExplainFormat = "text",
        *,
        queries: str | Iterable[str] = (),
        streams: str | Iterable[str] = (),
        baselines: bool = True,
    ) -> str:
        """Return the plan in force, or the plan as of now, as ``text``, ``json`` or ``mermaid``: all of it, or what
        these queries need and rows of these streams go through.

        It is compared with the `baselines`, which takes planning them; once a batch is done, what was measured stands
        beside the estimates.
        """
        shown = Shown(queries=names("explain", "queries", queries), streams=names("explain", "streams", streams))
        storage = state_of(self._checkpoint)
        manifest = ManifestLog(storage).latest()
        aside = [
            each.text for each in self._setting_aside.among(self._registry.bindings) if each.query in shown.queries
        ]
        if aside:
            asked = (each.query for name, each in tuple(self._registry.bindings.items()) if name in shown.queries)
            return explained_alone(self._request(tuple(asked)), manifest, aside, checked_format(format), shown)
        request = self._request()
        plan = request.plan(manifest) if self._course is None else self._course.epoch.plan
        measured = None if manifest is None else measure(storage, plan, manifest)
        notes = () if self._course is None else (self._course.batches.admission.text,)
        return explained_plan(request, plan, manifest, measured, format, notes, shown, baselines=baselines)

    def summary(self) -> Summary:
        """Return what this run has come to so far."""
        seconds = time.perf_counter() - self._started if self._started else 0.0
        course, is_over = self._course, self._run is not None and not self._run.is_alive()
        hints = course.hints(self._queries(), self._telling.totals) if is_over and course is not None else ()
        summary = self._telling.totals.summary(sorted(self._registry.bindings), wall_seconds=seconds, hints=hints)
        aside = tuple((each.query, each.reason) for each in self._setting_aside.among(self._registry.bindings))
        return replace(summary, set_aside=aside, lacking=() if course is None else course.lacking)

    def why(self, query: str, row: str) -> Trace:
        """Return what has become of a row of a query, and why there is no result of it yet: `row` is a condition on one
        of its relations, such as ``o.id = 17``. The sources are read once more for that; nothing is changed.
        """
        if self._run is None:
            self._setting_aside.read()
        course = self._course
        inquiry = Inquiry(
            spark=self._spark,
            checkpoint=self._checkpoint,
            sources=self.sources(),
            queries=self.queries(),
            manifest=ManifestLog(state_of(self._checkpoint)).latest(),
            plan=None if course is None else course.epoch.plan,
            clock_ms=int(self._clock() * 1000),
            set_aside={each.query: each.reason for each in self._setting_aside.among(self._registry.bindings)},
            since=dict(self._since),
        )
        return inquiry.answer(names("why", "query", query)[0], text("why", "row", row, "'o.id = 17'"))

    def notices(self) -> tuple[str, ...]:
        """Return what the user should know of this start: streams that come back or rest, and what queries lack of
        the rows stored before them.
        """
        return () if self._course is None else tuple(notice.text for notice in self._course.notices)

    def status(self, *, queries: str | Iterable[str] = (), streams: str | Iterable[str] = ()) -> dict[str, Any]:
        """Return the state of the engine as plain values: whether it runs, the last batch, totals, who holds the
        watermark, what queries lack of the rows stored before them. Of all of it, or of these queries and those that
        read these streams.
        """
        wanted = Shown(queries=names("status", "queries", queries), streams=names("status", "streams", streams))
        wanted.require(self._registry.bindings, self._registry.streams())
        registered = (binding.query for binding in tuple(self._registry.bindings.values()))
        return part_of(self._whole_status(), registered, wanted.queries, wanted.streams)

    def _whole_status(self) -> dict[str, Any]:
        last, course = self._telling.totals.last, self._course
        failure = None if self._run is None else self._run.failure
        return {
            "running": self._run is not None and self._run.is_alive(),
            "failure": None if failure is None else str(self._explained(failure)),
            "queries": sorted(self._registry.bindings),
            "set_aside": {each.query: each.reason for each in self._setting_aside.among(self._registry.bindings)},
            "streams": self._registry.streams(),
            "notices": list(self.notices()),
            "lacking": [] if course is None else [each.as_json() for each in course.lacking],
            "batch_rows": self._options.batch_rows,
            "bounds": [] if course is None else [bound.as_json() for bound in course.batches.admission.bounds()],
            "marks": self._marks(),
            "lag": {} if self._run is None else lag_of(self._run.query, self._checkpoint, self._registry.streams()),
            "last_batch": None if last is None else last.as_json(),
            "totals": self.summary().as_json(),
        }

    def _marks(self) -> dict[str, int | None]:
        """Return for each stream that takes part up to which event time it has come: the smallest is the watermark."""
        course = self._course
        manifest = None if course is None else course.batches.processor.before
        if course is None or manifest is None:
            return {}
        known = {each.source: each for each in manifest.sources}
        return {stream.name: mark_of(stream, known.get(stream.name)) for stream in course.epoch.streams}

    def preview(self, added: Collection[Wanted], dropped: Collection[str] = ()) -> dict[str, Any]:
        """Return as plain values what it would cost to answer other queries: without those `dropped`, and with those
        `added`, in the place of any of the same name. Raises SqlError for one that cannot be.
        """
        rehearsal = self.rehearse(dropped)
        confirmed = [rehearsal.add(each.name, each.select, sink=each.sink, windows=each.windows) for each in added]
        wanted = {query.name: query for query in self._queries() if query.name not in dropped}
        wanted |= {binding.query.name: binding.query for binding in confirmed}
        manifest = ManifestLog(state_of(self._checkpoint)).latest()
        then = self._request(tuple(wanted.values()), rehearsal.sources())
        return previewed(self._request(), then, manifest, [each.name for each in added])

    def rehearse(self, dropped: Iterable[str] = ()) -> Rehearsal:
        """Return where other queries can be tried: beside those there are now, without those `dropped`."""
        return Rehearsal(self._registry, dropped, self.bound)


__all__ = ["Looking"]
