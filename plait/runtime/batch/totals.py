"""Add up the batches of a run. What is held grows neither with their number nor with that of the queries that came and
went: of those that are gone only the last ones are remembered.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from plait.runtime.batch.events import BatchEvent, Summary
from plait.runtime.losses.counts import EdgeFlow, RelationCounts, SourceCounts
from plait.runtime.notice import Notice, NoticeKind
from plait.state.model import Bucket

MOST_GONE: Final = 1_000
"""Of so many queries that are gone it is known what they had found, and so many warnings are remembered."""

_SPARE_EDGES: Final = 1_000


@dataclass(slots=True)
class Totals:
    """What a run has come to so far."""

    last: BatchEvent | None = None
    batches: int = 0
    rows_in: int = 0
    late: int = 0
    bad: int = 0
    probe_tuples: int = 0
    sampled_tuples: int = 0
    filling_tuples: int = 0
    shuffled_bytes: int = 0
    stored_tuples: int = 0
    stored_bytes: int = 0
    queries: dict[str, int] = field(default_factory=dict)
    sources: dict[str, SourceCounts] = field(default_factory=dict)
    relations: dict[tuple[str, str], RelationCounts] = field(default_factory=dict)
    flows: dict[str, EdgeFlow] = field(default_factory=dict)
    failing: tuple[tuple[str, str], ...] = ()
    warnings: list[Notice] = field(default_factory=list)
    _told: int = 0

    def warn(self, notices: Iterable[Notice]) -> None:
        """Take up notices; each is told once, whoever finds it again."""
        told = {self._identity(notice) for notice in self.warnings}
        for notice in notices:
            if self._identity(notice) not in told:
                told.add(self._identity(notice))
                self.warnings.append(notice)
        spare = min(len(self.warnings) - MOST_GONE, self._told)
        if spare > 0:
            del self.warnings[:spare]
            self._told -= spare

    @staticmethod
    def _identity(notice: Notice) -> tuple[str, str, str]:
        return (notice.kind, notice.of, "" if notice.is_of_start else notice.text)

    def untold(self) -> tuple[Notice, ...]:
        """Return the warnings that no event has carried yet; from now on one has."""
        first, self._told = self._told, len(self.warnings)
        return tuple(self.warnings[first:])

    def warned_of(self, kind: NoticeKind) -> frozenset[str]:
        """Return the streams, tables or queries there is a warning of this kind for."""
        return frozenset(notice.of for notice in self.warnings if notice.kind == kind)

    def begin_with(self, stored: Iterable[Bucket], failing: tuple[tuple[str, str], ...] = ()) -> None:
        """Take up what a start finds stored, and whose results wait: it stays so until a batch has run."""
        self.failing = failing
        buckets = tuple(stored)
        self.stored_tuples, self.stored_bytes = sum(each.rows for each in buckets), sum(each.bytes for each in buckets)

    def add(self, event: BatchEvent) -> None:
        """Add a batch."""
        self.last, self.failing = event, event.failing
        self.stored_tuples, self.stored_bytes = event.stored_tuples, event.stored_bytes
        self.batches += 1
        self.rows_in += event.rows_in
        self.late += event.late
        self.bad += event.bad
        self.probe_tuples += event.probe_tuples
        self.sampled_tuples += event.sampled_tuples
        self.filling_tuples += event.filling_tuples
        self.shuffled_bytes += event.shuffled_bytes
        for query, rows in event.results:
            self.queries[query] = self.queries.pop(query, 0) + rows
        for counts in event.sources:
            known = self.sources.get(counts.source)
            self.sources[counts.source] = counts if known is None else known.plus(counts)
        for relation in event.relations:
            before = self.relations.get(relation.key)
            self.relations[relation.key] = relation if before is None else before.plus(relation)
        for flow in event.flows:
            was = self.flows.get(flow.edge, EdgeFlow(edge=flow.edge, sent=0, matched=0))
            self.flows[flow.edge] = EdgeFlow(
                edge=flow.edge, sent=was.sent + flow.sent, matched=was.matched + flow.matched
            )

        self._forget(event)

    def _forget(self, event: BatchEvent) -> None:
        """Let go of what is known of queries that are gone, the longest gone first, and of edges of earlier plans."""
        queries = {query for query, _ in event.results}
        while len(self.queries) > len(queries) + MOST_GONE:
            del self.queries[next(iter(self.queries))]
        if len(self.relations) > len(event.relations) and not queries.issuperset(query for query, _ in self.relations):
            self.relations = {key: counts for key, counts in self.relations.items() if key[0] in queries}
        if len(self.flows) > 2 * len(event.flows) + _SPARE_EDGES:
            live = {flow.edge for flow in event.flows}
            self.flows = {edge: flow for edge, flow in self.flows.items() if edge in live}

    def summary(
        self, queries: Iterable[str], *, wall_seconds: float, hints: tuple[tuple[str, str], ...] = ()
    ) -> Summary:
        """Return the summary, which names all `queries` there are, also those without results."""
        rows = {**dict.fromkeys(queries, 0), **self.queries}
        return Summary(
            batches=self.batches,
            rows_in=self.rows_in,
            late=self.late,
            bad=self.bad,
            wall_seconds=wall_seconds,
            probe_tuples=self.probe_tuples,
            sampled_tuples=self.sampled_tuples,
            filling_tuples=self.filling_tuples,
            filling=() if self.last is None else self.last.filling,
            shuffled_bytes=self.shuffled_bytes,
            stored_tuples=self.stored_tuples,
            stored_bytes=self.stored_bytes,
            queries=tuple(sorted(rows.items())),
            failing=self.failing,
            sources=tuple(self.sources[source] for source in sorted(self.sources)),
            relations=tuple(self.relations[key] for key in sorted(self.relations)),
            warnings=tuple(self.warnings),
            hints=hints,
            latency=None if self.last is None else self.last.latency,
        )
