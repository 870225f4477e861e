"""Which columns of each member are needed later on a path, so that no step gathers or sends more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from plait.plan.model import Output, Plan, ProbeTree, Step
from plait.query.model import ColumnRef

Wanted = Mapping[str, tuple[ColumnRef, ...]]
"""Per query: the joined-row columns its projection reads."""

Columns = tuple[tuple[str, ...], ...]
"""Column names per position of a path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """The columns of one tree's positions. Edges identify points of the tree; ``""`` is its start.

    `after`: what each position must still supply once the tuples have probed along the edge (the new position
    included). `along`: what must arrive over the edge, that is `after` plus what the probe itself reads, for the
    positions before it.
    """

    after: Mapping[str, Columns]
    along: Mapping[str, Columns]


def demand_of(tree: ProbeTree, plan: Plan, wanted: Wanted) -> Demand:
    """Return the demand of every point of a tree, from its leaves up."""
    after: dict[str, Columns] = {}
    along: dict[str, Columns] = {}

    def visit(edge: str, stores: tuple[str, ...], outputs: tuple[Output, ...], children: tuple[Step, ...]) -> Columns:
        needs: list[dict[str, None]] = [{} for _ in stores]
        for output in outputs:
            for alias, position in output.positions:
                read = [ref.column for ref in wanted[output.query] if ref.relation == alias]
                needs[position].update(dict.fromkeys(read))
        for child in children:
            later = visit(child.edge, (*stores, child.member.store), child.outputs, child.children)
            arriving = [dict.fromkeys(columns) for columns in later[:-1]]
            for position, name in probe_columns(child, stores, plan):
                arriving[position][name] = None
            along[child.edge] = tuple(tuple(columns) for columns in arriving)
            for position, columns in enumerate(arriving):
                needs[position].update(columns)
        after[edge] = tuple(tuple(columns) for columns in needs)
        return after[edge]

    visit("", (tree.start.store,), tree.outputs, tree.children)
    return Demand(after=after, along=along)


def probe_columns(step: Step, stores: tuple[str, ...], plan: Plan) -> list[tuple[int, str]]:
    """Return the (position, column) pairs that probing along this step reads: keys, and values to verify."""
    columns = []
    for match in step.matches:
        key = plan.store(stores[match.position]).key(match.probe_key)
        columns.append((match.position, key.name))
        if key.value_name is not None:
            columns.append((match.position, key.value_name))
    return columns
