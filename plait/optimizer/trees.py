"""Merge probe orders into probe trees (paper 000, fig. 4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from plait.optimizer.graph import matches
from plait.optimizer.naming import Path, StoreName, edge_names
from plait.optimizer.orders import ProbeOrder
from plait.plan.model import KeyMatch, Member, Output, ProbeTree, Step
from plait.plan.relations import ordinal_of, selection_of, window_of
from plait.query.model import Query


@dataclass(slots=True)
class _Node:
    """A tree while it grows: what ends here, and what is probed next by (member, matches)."""

    outputs: list[Output] = field(default_factory=list)
    children: dict[tuple[Member, tuple[KeyMatch, ...]], _Node] = field(default_factory=dict)


def merge_orders(
    queries: Iterable[Query], orders: Iterable[ProbeOrder], store_name: StoreName
) -> tuple[ProbeTree, ...]:
    """Return one tree per distinct starting member, equal prefixes merged, in canonical order, without estimates.

    A step is the path before it, the member probed and the equalities matched; aliases play no part, so steps of
    several queries that compute the same thing are one step.
    """
    by_name = {query.name: query for query in queries}
    roots: dict[Member, _Node] = {}
    for order in orders:
        _insert(roots, by_name[order.query], tuple(unit[0] for unit in order.units), store_name)
    names = edge_names(path for start, node in roots.items() for path in _paths(((start, ()),), node))
    return tuple(
        ProbeTree(
            start=start,
            outputs=_sorted_outputs(roots[start]),
            children=_freeze(((start, ()),), roots[start], names),
        )
        for start in sorted(roots, key=_member_order)
    )


def _insert(roots: dict[Member, _Node], query: Query, aliases: tuple[str, ...], store_name: StoreName) -> None:
    node = roots.setdefault(_member(query, aliases[0], store_name), _Node())
    for position, alias in enumerate(aliases[1:], start=1):
        step = (_member(query, alias, store_name), matches(query, aliases[:position], alias))
        node = node.children.setdefault(step, _Node())
    positions = tuple(sorted((alias, position) for position, alias in enumerate(aliases)))
    node.outputs.append(Output(query=query.name, positions=positions))


def _member(query: Query, alias: str, store_name: StoreName) -> Member:
    relation = query.relation(alias)
    return Member(
        store=store_name(query.name, relation.source),
        ordinal=ordinal_of(query, alias),
        selection=selection_of(relation),
        window_us=window_of(relation),
    )


def _paths(path: Path, node: _Node) -> Iterable[Path]:
    for step, child in node.children.items():
        yield (*path, step)
        yield from _paths((*path, step), child)


def _freeze(path: Path, node: _Node, names: dict[Path, str]) -> tuple[Step, ...]:
    steps = []
    for member, step_matches in sorted(node.children, key=_step_order):
        child = node.children[member, step_matches]
        here = (*path, (member, step_matches))
        steps.append(
            Step(
                edge=names[here],
                member=member,
                matches=step_matches,
                outputs=_sorted_outputs(child),
                children=_freeze(here, child, names),
            )
        )
    return tuple(steps)


def _sorted_outputs(node: _Node) -> tuple[Output, ...]:
    return tuple(sorted(node.outputs, key=lambda output: (output.query, output.positions)))


def _member_order(member: Member) -> tuple[str, int, str, bool, int]:
    return member.store, member.ordinal, member.selection.sql, member.window_us is None, member.window_us or 0


def _step_order(step: tuple[Member, tuple[KeyMatch, ...]]) -> tuple[object, ...]:
    member, step_matches = step
    return _member_order(member), [(match.position, match.probe_key, match.store_key) for match in step_matches]
