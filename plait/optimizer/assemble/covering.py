"""Covering queries: so that several queries share a step although their selections or windows differ.

A covering query takes every tuple that one of the queries it stands for takes. Its probe orders serve them all; where
an order ends, each query keeps what is its own by a residual filter (`ResidualFilter`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from plait.plan.model import ResidualFilter, Selection
from plait.plan.relations import selection_of, widest_window, window_of
from plait.query.model import Query, Relation


@dataclass(frozen=True, slots=True, kw_only=True)
class CoveredQueries:
    """Queries by name, and what is joined for them: `joined[i]` is ``own[i]`` itself or the query that covers it."""

    own: tuple[Query, ...]
    joined: tuple[Query, ...]

    @classmethod
    def of(cls, queries: Iterable[Query], covering: Iterable[Query] = ()) -> CoveredQueries:
        """Return queries with those that cover them, which have the same names."""
        own = tuple(sorted(queries, key=lambda query: query.name))
        by_name = {query.name: query for query in covering}
        return cls(own=own, joined=tuple(by_name.get(query.name, query) for query in own))

    def residual_filters(self, query: str, positions: Iterable[tuple[str, int]]) -> tuple[ResidualFilter, ...]:
        """Return what the query of this name takes less than is joined for it, by position."""
        return next(
            residual_filters(own, joined, positions)
            for own, joined in zip(self.own, self.joined, strict=True)
            if own.name == query
        )


def widest_selection(selections: Iterable[Selection]) -> Selection:
    """Return the selection that holds wherever one of `selections` does.

    >>> from plait.query.model import SourceExpression
    >>> def where(text): return Selection(conjuncts=(SourceExpression(sql=text, columns=("v",)),))
    >>> widest_selection((where("`v` > 5"), where("`v` < 1"), where("`v` > 5"))).sql
    '((`v` < 1)) OR ((`v` > 5))'
    >>> widest_selection((where("`v` > 5"), Selection())).sql
    'true'
    """
    distinct = {selection.sql: selection for selection in selections}
    if Selection().sql in distinct:
        return Selection()
    if len(distinct) == 1:
        return next(iter(distinct.values()))
    return Selection(any_of=tuple(distinct[sql] for sql in sorted(distinct)))


Variant = Callable[[Query, Relation], str | None]
"""The group of relations that share one selection and window; None for a relation that keeps its own."""


def cover(queries: tuple[Query, ...], group: Variant) -> tuple[Query, ...]:
    """Return covering queries: all relations of one group (over one source each) take what any of them takes."""
    members: dict[str, list[Relation]] = {}
    for query in queries:
        for relation in query.relations:
            name = group(query, relation)
            if name is not None:
                members.setdefault(name, []).append(relation)
    common = {
        name: (
            widest_selection(selection_of(relation) for relation in relations),
            widest_window(window_of(relation) for relation in relations),
        )
        for name, relations in members.items()
    }

    def covered(query: Query, relation: Relation) -> Relation:
        name = group(query, relation)
        if name is None:
            return relation
        selection, window_us = common[name]
        return replace(
            relation,
            selections=selection.conjuncts,
            alternatives=tuple(each.conjuncts for each in selection.any_of),
            window_us=None if relation.is_table else window_us,
        )

    return tuple(
        replace(query, relations=tuple(covered(query, relation) for relation in query.relations)) for query in queries
    )


def residual_filters(own: Query, covering: Query, positions: Iterable[tuple[str, int]]) -> tuple[ResidualFilter, ...]:
    """Return what `own` takes less than `covering`, by position."""
    filters = []
    for alias, position in positions:
        mine, theirs = own.relation(alias), covering.relation(alias)
        selection, window_us = selection_of(mine), window_of(mine)
        residual = ResidualFilter(
            position=position,
            selection=None if selection == selection_of(theirs) else selection,
            window_us=None if window_us == window_of(theirs) else window_us,
        )
        if residual != ResidualFilter(position=position):
            filters.append(residual)
    return tuple(sorted(filters, key=lambda residual: residual.position))
