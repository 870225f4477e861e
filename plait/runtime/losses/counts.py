"""What became of the rows of each source, as the listener and the summary are told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from plait.operators.ingest.badrows import shortened
from plait.operators.ingest.report_sums import highest, lowest, merged_null_keys
from plait.operators.reports import IngestReport, ProbeReport
from plait.plan.explain import wording
from plait.plan.relations import keys_of, selection_of
from plait.query.model import Query, Relation
from plait.query.partners import kept_alone
from plait.query.remembering import remembered
from plait.state.model import BadReason, BadRows, NullKey


@dataclass(frozen=True, slots=True, kw_only=True)
class BadCount:
    """Rows of a source set aside for one reason, with one of them. `column`: which of its columns is to blame, where
    that can be told; `hint`: what to do.
    """

    reason: BadReason
    rows: int
    sample: str = ""
    column: str | None = None
    hint: str | None = None

    def plus(self, other: BadCount) -> BadCount:
        """Return the sum of two counts of one reason, explained by whichever is."""
        first = self if self.hint is not None or other.hint is None else other
        return replace(first, rows=self.rows + other.rows)

    def as_json(self) -> dict[str, Any]:
        """Return the count as a JSON object."""
        return {
            "reason": self.reason,
            "rows": self.rows,
            "sample": shortened(self.sample),
            "column": self.column,
            "hint": self.hint,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCounts:
    """What became of the rows of one source: `rows` are `late`, bad, `outside` all selections, without a key that would
    let them be joined (`null_keys`), or can be joined.

    `null_keys_by`: rows whose key is NULL, by key; they may be joinable by another one. `tau_min` and `tau_max`: the
    event times of rows that have a good one. `gone`: offsets of a topic that held no record any more, beside `rows`.
    """

    source: str
    rows: int = 0
    gone: int = 0
    late: int = 0
    bad: tuple[BadCount, ...] = ()
    outside: int = 0
    null_keys: int = 0
    null_keys_by: tuple[NullKey, ...] = ()
    tau_min: int | None = None
    tau_max: int | None = None

    @property
    def bad_rows(self) -> int:
        """The bad rows, whatever the reason."""
        return sum(bad.rows for bad in self.bad)

    def plus(self, other: SourceCounts) -> SourceCounts:
        """Return the sum of two counts of one source."""
        bad = {each.reason: each for each in self.bad}
        for each in other.bad:
            bad[each.reason] = bad[each.reason].plus(each) if each.reason in bad else each
        return SourceCounts(
            source=self.source,
            rows=self.rows + other.rows,
            gone=self.gone + other.gone,
            late=self.late + other.late,
            bad=tuple(bad[reason] for reason in sorted(bad)),
            outside=self.outside + other.outside,
            null_keys=self.null_keys + other.null_keys,
            null_keys_by=merged_null_keys(self.null_keys_by, other.null_keys_by),
            tau_min=lowest(self.tau_min, other.tau_min),
            tau_max=highest(self.tau_max, other.tau_max),
        )

    def as_json(self) -> dict[str, Any]:
        """Return the counts as a JSON object."""
        return {
            "rows": self.rows,
            **({"gone": self.gone} if self.gone else {}),
            "late": self.late,
            "bad": [bad.as_json() for bad in self.bad],
            "outside_selections": self.outside,
            "null_keys": self.null_keys,
            "null_keys_by": {wording.sql(key.key): key.rows for key in self.null_keys_by},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationCounts:
    """Of `rows` in time that a relation of a query could take part with, `outside` do not satisfy its selection."""

    query: str
    alias: str
    source: str
    rows: int
    outside: int

    @property
    def key(self) -> tuple[str, str]:
        """The relation."""
        return self.query, self.alias

    def plus(self, other: RelationCounts) -> RelationCounts:
        """Return the sum of two counts of one relation."""
        return replace(self, rows=self.rows + other.rows, outside=self.outside + other.outside)


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeFlow:
    """Tuples `sent` along an edge of a probe tree, and pairs that matched there."""

    edge: str
    sent: int
    matched: int


def counts_of(ingested: Iterable[IngestReport], queries: Iterable[Query] = ()) -> tuple[SourceCounts, ...]:
    """Return what became of the rows of a batch, by source. Rows whose key is NULL are not lost where one of the
    queries has them without a partner.
    """
    by_source: dict[str, SourceCounts] = {}
    coming_out = frozenset[tuple[str, str]]().union(*map(_keys_kept_alone, queries))
    for report in ingested:
        counts = SourceCounts(
            source=report.source,
            rows=report.rows,
            late=report.late,
            bad=tuple(_count(bad) for bad in report.bad_rows),
            outside=report.outside,
            null_keys=report.null_keys,
            null_keys_by=tuple(each for each in report.null_keys_by if (report.source, each.key) not in coming_out),
            tau_min=report.tau_min,
            tau_max=report.tau_max,
        )
        by_source[report.source] = by_source[report.source].plus(counts) if report.source in by_source else counts
    return tuple(by_source[source] for source in sorted(by_source))


@remembered(1 << 12)  # the same ones are asked with every batch
def _keys_kept_alone(query: Query) -> frozenset[tuple[str, str]]:
    """Return the keys of which a row is in a result of a query although it is NULL there, each with its source."""
    if not query.joins:
        return frozenset()
    relations = (query.relation(alias) for alias in kept_alone(query))
    return frozenset(
        (relation.source, key.expression.sql) for relation in relations for key in keys_of(query, relation.alias)
    )


def _count(bad: BadRows) -> BadCount:
    return BadCount(reason=bad.reason, rows=bad.rows, sample=bad.sample)


def relation_counts(queries: Iterable[Query], ingested: Iterable[IngestReport]) -> tuple[RelationCounts, ...]:
    """Return for each relation of a query how many rows of a batch its selection left out.

    Where queries share a wider selection their own was not evaluated on arrival; these are left out.
    """
    in_time: dict[str, int] = {}
    kept: dict[tuple[str, str], int] = {}
    for report in ingested:
        in_time[report.source] = in_time.get(report.source, 0) + report.rows - report.late - report.bad
        for selection, rows in report.kept:
            kept[report.source, selection] = kept.get((report.source, selection), 0) + rows
    selected = (
        (query.name, relation, kept.get((relation.source, _selection(relation))))
        for query in queries
        for relation in query.relations
    )
    return tuple(
        RelationCounts(
            query=query,
            alias=relation.alias,
            source=relation.source,
            rows=in_time[relation.source],
            outside=in_time[relation.source] - rows,
        )
        for query, relation, rows in selected
        if rows is not None
    )


@remembered(1 << 13)  # the same ones are asked for with every batch
def _selection(relation: Relation) -> str:
    return selection_of(relation).sql


def edge_flows(probed: Iterable[ProbeReport]) -> tuple[EdgeFlow, ...]:
    """Return what flowed along each edge."""
    sent: dict[str, int] = {}
    matched: dict[str, int] = {}
    for report in probed:
        for edge, count in report.probe_tuples:
            sent[edge] = sent.get(edge, 0) + count
        for edge, count in report.matches:
            matched[edge] = matched.get(edge, 0) + count
    return tuple(EdgeFlow(edge=edge, sent=sent[edge], matched=matched.get(edge, 0)) for edge in sorted(sent))


def outside_by_query(relations: Iterable[RelationCounts]) -> dict[str, dict[str, int]]:
    """Return the rows that selections left out, by query and alias; relations that lost none are left out."""
    by_query: dict[str, dict[str, int]] = {}
    for each in relations:
        if each.outside:
            by_query.setdefault(each.query, {})[each.alias] = each.outside
    return by_query
