"""What the statistics do not tell, and how much of a plan's cost rests on what is assumed instead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from typing_extensions import assert_never

from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.join_sizes import MemberSizes
from plait.plan.model import KeyColumn, Member, Plan, Selection
from plait.plan.traversals import conditions_on, kept_stores, path_members
from plait.query.predicates import by_kind
from plait.stats.model import Statistics

UnknownKind: TypeAlias = Literal["rate", "rows", "distinct", "selectivity"]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Unknown:
    """A number about a source that nobody has declared or measured.

    `what` is ``rate`` (rows a second), ``rows`` in all, ``distinct`` values of the key `of`, or the
    ``selectivity`` of the condition `of` (Spark SQL over the source's columns). `column` is the column whose distinct
    values can be declared to settle it, None where it takes a measurement. `statistic` is its name in
    `SourceStatistics`: of a key, or of a selection.
    """

    source: str
    what: UnknownKind
    of: str = ""
    column: str | None = field(default=None, compare=False)
    statistic: str = field(default="", compare=False)

    @property
    def option(self) -> str | None:
        """The source option that would tell it; None if there is none."""
        match self.what:
            case "rate" | "rows":
                return self.what
            case "distinct" | "selectivity":
                return None if self.column is None else f"distinct.{self.column}"
            case _:
                assert_never(self.what)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """An unknown, what was assumed for it, and the share of the probe tuples whose estimate rests on it."""

    unknown: Unknown
    value: float
    share: float


def assumptions(plan: Plan, cardinality: Cardinality) -> tuple[Assumption, ...]:
    """Return what the estimates of a plan assume, most important first; last what only the stored rows rest on."""
    reader = _Reader(plan, cardinality)
    weights: dict[Unknown, float] = {}
    values: dict[Unknown, float] = {}
    total = 0.0
    for weight, unknowns in _dependencies(plan, reader):
        total += weight
        for unknown, value in unknowns.items():
            weights[unknown] = weights.get(unknown, 0.0) + weight
            values[unknown] = value
    kept = kept_stores(plan)
    for store in plan.stores:
        if store.id in kept and store.source is not None:
            whole = Member(store=store.id, ordinal=0, selection=Selection(), window_us=store.window_us)
            for unknown, value in reader.rows(whole).items():
                weights.setdefault(unknown, 0.0)
                values.setdefault(unknown, value)
    listed = [
        Assumption(unknown=unknown, value=values[unknown], share=weight / total if total else 0.0)
        for unknown, weight in weights.items()
    ]
    return tuple(sorted(listed, key=lambda each: (-round(each.share, 9), each.unknown)))


def supposing(statistics: Statistics, unknown: Unknown, value: float) -> Statistics:
    """Return the statistics as they would be if the unknown were known."""
    known = statistics.of(unknown.source)
    match unknown.what:
        case "rate":
            told = replace(known, rate_rows_per_s=value)
        case "rows":
            told = replace(known, rows=value)
        case "distinct":
            told = replace(known, distinct=(*known.distinct, (unknown.column or unknown.statistic, value)))
        case "selectivity":
            told = replace(known, selectivity=(*known.selectivity, (unknown.statistic, min(value, 1.0))))
        case _:
            assert_never(unknown.what)
    others = (each for each in statistics.sources if each.source != unknown.source)
    return Statistics(sources=tuple(sorted((*others, told), key=lambda each: each.source)))


Unknowns: TypeAlias = dict[Unknown, float]
"""Unknowns with the assumed value."""


def _dependencies(plan: Plan, reader: _Reader) -> Iterator[tuple[float, Unknowns]]:
    """Yield every step's probe tuples per second, and the unknowns among all that they are computed from."""
    for tree in plan.trees:
        for path, step in tree.walk():
            joined = path_members(tree.start, path)
            unknowns = reader.arrivals(joined[0])
            for member in joined:
                unknowns |= reader.selection(member)
            for member in joined[1:]:
                unknowns |= reader.rows(member)
            equalities = by_kind(conditions_on(plan, path)).equalities
            for pair in sorted(equalities, key=lambda each: (each.left, each.right)):
                unknowns |= reader.equality(*((joined[place.at], place.name) for place in (pair.left, pair.right)))
            yield step.estimate.probe_tuples_per_s or 0.0, unknowns


class _Reader:
    """Asks for numbers as the estimates do, and notes which are not known."""

    def __init__(self, plan: Plan, cardinality: Cardinality) -> None:
        self._cardinality = cardinality
        self._sizes = MemberSizes(stores=plan.stores, cardinality=cardinality)

    def arrivals(self, member: Member) -> Unknowns:
        """Return what is not known about how often the starting relation arrives."""
        source = self._sizes.of(member).source
        known = self._cardinality.statistics.of(source).rate_rows_per_s
        return (
            {}
            if known is not None
            else {Unknown(source=source, what="rate"): self._cardinality.assumed.rate_rows_per_s}
        )

    def rows(self, member: Member) -> Unknowns:
        """Return what is not known about how many rows of a relation there are to be found."""
        extent = self._sizes.of(member)
        if not extent.is_table and extent.window_us is not None:
            return self.arrivals(member)
        if self._cardinality.statistics.of(extent.source).rows is not None:
            return {}
        return {Unknown(source=extent.source, what="rows"): self._cardinality.rows(extent)}

    def selection(self, member: Member) -> Unknowns:
        """Return what is not known about how many rows pass."""
        source = self._sizes.of(member).source
        known = dict(self._cardinality.statistics.of(source).selectivity)
        if member.selection.sql in known:
            return {}
        conjuncts = (
            (conjunct.sql, Selection(conjuncts=(conjunct,)).sql)
            for alternative in member.selection.alternatives
            if alternative.sql not in known
            for conjunct in alternative.conjuncts
        )
        return {
            Unknown(
                source=source, what="selectivity", of=sql, statistic=statistic
            ): self._cardinality.assumed.conjunct_selectivity
            for sql, statistic in conjuncts
            if statistic not in known
        }

    def equality(self, left: tuple[Member, str], right: tuple[Member, str]) -> Unknowns:
        """Return what is not known about the side with more distinct values, which settles the selectivity."""
        sides = [(member, self._sizes.store(member.store).key(name)) for member, name in (left, right)]
        counts = [self._cardinality.distinct(self._sizes.of(member), key) for member, key in sides]
        unknowns: Unknowns = {}
        for (member, key), count in zip(sides, counts, strict=True):
            extent = self._sizes.of(member)
            if count == max(counts) and not self._cardinality.knows_distinct(extent, key):
                unknown = Unknown(
                    source=extent.source,
                    what="distinct",
                    of=key.expression.sql,
                    column=_column(key),
                    statistic=key.name,
                )
                unknowns[unknown] = count
        return unknowns


def _column(key: KeyColumn) -> str | None:
    """Return the column whose distinct values stand for those of the key."""
    columns = key.expression.columns
    return columns[0] if len(columns) == 1 else None
