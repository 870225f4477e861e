"""Merge probe orders into probe trees (paper 000, fig. 4)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TypeAlias

from plait.optimizer.assemble.covering import CoveredQueries
from plait.optimizer.assemble.draft import Draft
from plait.optimizer.assemble.intermediate_stores import Subset, member_of, residual_content
from plait.optimizer.probe_orders import ProbeOrder
from plait.plan.conditions import between, placed
from plait.plan.model import Fill, Member, Output, Place, Probed, ProbeTree, Selection, Step, part_column
from plait.plan.relations import StoreName, member_name
from plait.query.model import Query
from plait.query.predicates import Conjunction, by_kind, mapped


@dataclass(slots=True)
class _Node:
    """A tree while it grows: what ends here, and what is probed next."""

    outputs: list[Output] = field(default_factory=list)
    fills: list[Fill] = field(default_factory=list)
    children: dict[Arrow, _Node] = field(default_factory=dict)


def merge_into_trees(draft: Draft) -> Draft:
    """Make one probe tree for each distinct starting member, equal prefixes merged, in canonical order.

    A step is the path before it, the member probed and the equalities matched; aliases play no part, so steps of
    several queries that compute the same thing are one step.
    """
    queries, store_name = draft.queries, draft.store_name
    by_name = {query.name: query for query in queries.joined}
    roots: dict[Member, _Node] = {}
    for order in draft.orders:
        node, joined = _insert(roots, by_name[order.query], order, store_name)
        _end(node, by_name[order.query], order, joined, (queries, store_name))
    names = edge_names(path for start, node in roots.items() for path in _paths((Arrow(member=start),), node))
    trees = (
        ProbeTree(
            start=start,
            outputs=_sorted_outputs(roots[start]),
            children=_freeze((Arrow(member=start),), roots[start], names),
        )
        for start in sorted(roots, key=lambda member: member.order)
    )
    return replace(draft, trees=tuple(trees))


def _insert(
    roots: dict[Member, _Node], query: Query, order: ProbeOrder, store_name: StoreName
) -> tuple[_Node, tuple[str, ...]]:
    """Follow an order down its tree, which grows where needed; return where it ends and the aliases by position."""
    covered = [alias for unit in order.units for alias in unit]
    # Ordinals in an intermediate store count what is in it, so that queries can share the steps that fill it.
    among = covered if order.fills else None
    joined = order.units[0]
    node = roots.setdefault(member_of(query, joined[0], store_name, among=among), _Node())
    for unit in order.units[1:]:
        arrow, added = arrow_to(query, joined, unit, store_name, among)
        node = node.children.setdefault(arrow, _Node())
        joined = (*joined, *added)
    return node, joined


def arrow_to(
    query: Query,
    joined: tuple[str, ...],
    unit: tuple[str, ...],
    store_name: StoreName,
    among: Collection[str] | None = None,
) -> tuple[Arrow, tuple[str, ...]]:
    """Return the step from what has been joined, aliases by position, to what is probed next, and the aliases that it
    adds, by position. `among`: the aliases of which ordinals count occurrences, default all.
    """
    if len(unit) == 1:
        member = member_of(query, unit[0], store_name, among=among)
        return Arrow(member=member, predicates=_probing(query, joined, unit, lambda _, name: name)), unit
    subset = Subset.of(query, unit, store_name)
    arrow = Arrow(
        member=Member(store=subset.store, ordinal=0, selection=Selection(), window_us=subset.window_us),
        predicates=_probing(query, joined, subset.aliases, _names_in(subset.aliases)),
        parts=tuple(member_of(query, alias, store_name, among=among) for alias in subset.aliases),
    )
    return arrow, subset.aliases


StoredName: TypeAlias = Callable[[str, str], str]
"""(alias, column or key of the relation) → its name in the store that is probed."""


def _probing(query: Query, joined: tuple[str, ...], probed: Sequence[str], stored: StoredName) -> Conjunction[Probed]:
    """Return what joins a probe path (aliases by position) with the relations it probes next: equalities first, then
    bands, the two-sided ones before the others.
    """
    predicates = []
    for position, alias in enumerate(joined):
        for mine in probed:

            def place(known: Probed, mine: str = mine) -> Probed:
                return Place(None, stored(mine, known.name)) if known.at is None else known

            predicates += [mapped(each, place) for each in placed(between(query, alias, mine), position, None)]
    kinds = by_kind(predicates)
    bands = sorted(kinds.bands, key=lambda band: (band.low is None) + (band.high is None))
    return (*kinds.equalities, *bands, *kinds.residuals)


def _names_in(parts: tuple[str, ...]) -> StoredName:
    """Return how the columns of these relations are called in the intermediate store of which they are the parts."""
    return lambda alias, name: part_column(parts.index(alias), name)


def _end(
    node: _Node, query: Query, order: ProbeOrder, joined: tuple[str, ...], context: tuple[CoveredQueries, StoreName]
) -> None:
    queries, store_name = context
    if order.fills:
        subset = Subset.of(query, joined, store_name)
        fill = Fill(store=subset.store, positions=tuple(joined.index(alias) for alias in subset.aliases))
        if fill not in node.fills:
            node.fills.append(fill)
    else:
        positions = tuple(sorted((alias, position) for position, alias in enumerate(joined)))
        residual_filters = queries.residual_filters(query.name, positions)
        node.outputs.append(
            Output(
                query=query.name,
                positions=positions,
                residual_filters=residual_filters,
                counts=not residual_filters and _may_count(query, order),
            )
        )


def _may_count(query: Query, order: ProbeOrder) -> bool:
    """Tell whether the query does without the pairs that the last step of an order would make."""
    last = order.units[-1]
    countable = () if query.aggregation is None else query.aggregation.countable
    return len(order.units) > 1 and len(last) == 1 and last[0] in countable


def _paths(path: Path, node: _Node) -> Iterable[Path]:
    for arrow, child in node.children.items():
        yield (*path, arrow)
        yield from _paths((*path, arrow), child)


def _freeze(path: Path, node: _Node, names: dict[Path, str]) -> tuple[Step, ...]:
    steps = []
    for arrow in sorted(node.children, key=arrow_order):
        child = node.children[arrow]
        here = (*path, arrow)
        steps.append(
            Step(
                edge=names[here],
                member=arrow.member,
                predicates=arrow.predicates,
                outputs=_sorted_outputs(child),
                fills=tuple(sorted(child.fills, key=lambda fill: (fill.store, fill.positions))),
                children=_freeze(here, child, names),
                parts=arrow.parts,
            )
        )
    return tuple(steps)


def _sorted_outputs(node: _Node) -> tuple[Output, ...]:
    return tuple(sorted(node.outputs, key=lambda output: (output.query, output.positions)))


def arrow_order(arrow: Arrow) -> tuple[object, ...]:
    """Return what steps that follow on one path are ordered by."""
    return arrow.member.order, content_of(arrow.predicates), [part.order for part in arrow.parts]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """One step of a path by content, or the starting member without matches."""

    member: Member
    predicates: Conjunction[Probed] = ()
    parts: tuple[Member, ...] = ()

    @classmethod
    def of(cls, step: Step) -> Arrow:
        """Return what a step does, whatever comes of it."""
        return cls(member=step.member, predicates=step.predicates, parts=step.parts)

    def is_of(self, step: Step) -> bool:
        """Tell whether a step does this."""
        return self.member == step.member and self.predicates == step.predicates and self.parts == step.parts


Path: TypeAlias = tuple[Arrow, ...]
"""A probe path from its starting member on."""


_SHORTEST_DIGEST = 4


def path_name(path: Path) -> str:
    """Return the stores of a path."""
    return "→".join(member_name(arrow.member) for arrow in path)


def path_digest(path: Path) -> str:
    """Return what tells a path from others over the same stores."""
    return blake2b(_content(path).encode(), digest_size=16).hexdigest()


def edge_names(paths: Iterable[Path]) -> dict[Path, str]:
    """Name the last step of every path: its stores, and a digest of its content where these do not tell it apart.

    Two paths over the same stores differ in selections, windows or predicates.
    """
    groups: dict[str, list[Path]] = {}
    for path in paths:
        groups.setdefault(path_name(path), []).append(path)
    names: dict[Path, str] = {}
    for name, group in groups.items():
        if len(group) == 1:
            names[group[0]] = name
        else:
            names.update((path, f"{name}~{digest}") for path, digest in _digests(group).items())
    return names


def _digests(paths: list[Path]) -> dict[Path, str]:
    """Return the shortest digests, all of one length, that tell the paths apart."""
    full = {path: path_digest(path) for path in paths}
    length = _SHORTEST_DIGEST
    while len({digest[:length] for digest in full.values()}) < len(full):
        length += 1
    return {path: digest[:length] for path, digest in full.items()}


def _content(path: Path) -> str:
    return repr(
        [
            (
                *_member_content(arrow.member),
                *content_of(arrow.predicates),
                *(_member_content(part) for part in arrow.parts),
            )
            for arrow in path
        ]
    )


def content_of(predicates: Conjunction[Probed]) -> tuple[object, ...]:
    """Return what a step requires, for ordering and digests: equalities alone where there is nothing else.

    Identifiers in checkpoints come of it, so it stays as it was first written.
    """
    kinds = by_kind(predicates)
    return (
        [(each.left.at, each.left.name, each.right.name) for each in kinds.equalities],
        *(
            f"SpanMatch(position={each.left.at}, probe_key={each.left.name!r}, store_key={each.right.name!r}, "
            f"low={each.low}, high={each.high})"
            for each in kinds.bands
        ),
        *(f"Check({residual_content(each)})" for each in kinds.residuals),
    )


def _member_content(member: Member) -> tuple[object, ...]:
    return member.store, member.ordinal, member.selection.sql, member.window_us
