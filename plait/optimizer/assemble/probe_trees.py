"""Merge probe orders into probe trees (paper 000, fig. 4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from plait.optimizer.assemble.covering import CoveredQueries, widest
from plait.optimizer.assemble.edge_names import Arrow, Path, content_of, edge_names
from plait.optimizer.assemble.intermediate_stores import Subset, member_of
from plait.optimizer.join_graph import probing
from plait.optimizer.probe_orders import ProbeOrder, StoreName
from plait.plan.model import Fill, Member, Output, ProbeTree, Selection, Step
from plait.query.model import Query


@dataclass(slots=True)
class _Node:
    """A tree while it grows: what ends here, and what is probed next."""

    outputs: list[Output] = field(default_factory=list)
    fills: list[Fill] = field(default_factory=list)
    children: dict[Arrow, _Node] = field(default_factory=dict)


def merge_orders(queries: CoveredQueries, orders: Iterable[ProbeOrder], store_name: StoreName) -> tuple[ProbeTree, ...]:
    """Return one tree per distinct starting member, equal prefixes merged, in canonical order, without estimates.

    A step is the path before it, the member probed and the equalities matched; aliases play no part, so steps of
    several queries that compute the same thing are one step.
    """
    by_name = {query.name: query for query in queries.joined}
    roots: dict[Member, _Node] = {}
    for order in orders:
        node, joined = _insert(roots, by_name[order.query], order, store_name)
        _end(node, by_name[order.query], order, joined, (queries, store_name))
    names = edge_names(path for start, node in roots.items() for path in _paths((Arrow(member=start),), node))
    return tuple(
        ProbeTree(
            start=start,
            outputs=_sorted_outputs(roots[start]),
            children=_freeze((Arrow(member=start),), roots[start], names),
        )
        for start in sorted(roots, key=_member_order)
    )


def _insert(
    roots: dict[Member, _Node], query: Query, order: ProbeOrder, store_name: StoreName
) -> tuple[_Node, tuple[str, ...]]:
    """Walk an order down its tree, which grows where needed; return where it ends and the aliases by position."""
    covered = [alias for unit in order.units for alias in unit]
    # Ordinals in an intermediate store count what is in it, so that queries can share the steps that fill it.
    among = covered if order.fills else None
    joined = order.units[0]
    node = roots.setdefault(member_of(query, joined[0], store_name, among=among), _Node())
    for unit in order.units[1:]:
        if len(unit) == 1:
            member = member_of(query, unit[0], store_name, among=among)
            arrow = Arrow(member=member, predicates=probing(query, joined, unit, lambda _, name: name))
        else:
            subset = Subset.of(query, unit, store_name)
            unit = subset.aliases
            arrow = Arrow(
                member=Member(store=subset.store, ordinal=0, selection=Selection(), window_us=widest(query, unit)),
                predicates=subset.probing(joined),
                parts=tuple(member_of(query, alias, store_name, among=among) for alias in unit),
            )
        node = node.children.setdefault(arrow, _Node())
        joined = (*joined, *unit)
    return node, joined


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
        narrowings = queries.residual_filters(query.name, positions)
        node.outputs.append(Output(query=query.name, positions=positions, narrowings=narrowings))


def _paths(path: Path, node: _Node) -> Iterable[Path]:
    for arrow, child in node.children.items():
        yield (*path, arrow)
        yield from _paths((*path, arrow), child)


def _freeze(path: Path, node: _Node, names: dict[Path, str]) -> tuple[Step, ...]:
    steps = []
    for arrow in sorted(node.children, key=_arrow_order):
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


def _member_order(member: Member) -> tuple[str, int, str, bool, int]:
    return member.store, member.ordinal, member.selection.sql, member.window_us is None, member.window_us or 0


def _arrow_order(arrow: Arrow) -> tuple[object, ...]:
    return _member_order(arrow.member), content_of(arrow.predicates), [_member_order(part) for part in arrow.parts]
