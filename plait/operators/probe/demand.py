"""Which columns of each member are needed later on a path, so that no step gathers or sends more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from typing_extensions import assert_never

from plait.operators.probe.flat_trees import Flattening, FlatTrees
from plait.plan.model import Fill, Member, Output, Plan, ProbeTree, Step
from plait.plan.traversals import carried_columns, split_part
from plait.query.model import ColumnRef
from plait.query.predicates import Band, Equality, Residual, operands_of

Wanted = Mapping[str, tuple[ColumnRef, ...]]
"""Per query: the joined-row columns its projection reads."""

Columns = tuple[tuple[str, ...], ...]
"""Column names per position of a path."""

Path = tuple[Member, ...]
Ends = tuple[tuple[Output, ...], tuple[Fill, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """The columns of one tree's positions. Edges identify points of the tree; ``""`` is its start.

    `after`: what each position must still supply once the tuples have probed along the edge (new positions
    included). `along`: what must arrive over the edge, that is `after` plus what the probe itself reads, for the
    positions before it. `probing`: the latter alone, as (position, column) pairs.
    """

    after: Mapping[str, Columns]
    along: Mapping[str, Columns]
    probing: Mapping[str, tuple[tuple[int, str], ...]]


@dataclass(frozen=True, slots=True)
class _Known:
    """The demand of a tree, and what its queries wanted then."""

    tree: ProbeTree
    demand: Demand
    wanted: Wanted

    def holds(self, wanted: Wanted) -> bool:
        """Tell whether it is the demand still. What fills a store depends on what this keeps, so it may be another."""
        fills = any(step.fills for step in self.tree.steps())
        return not fills and all(wanted.get(query) == columns for query, columns in self.wanted.items())


class Demands:
    """The demands of a plan's trees, by number, each worked out once for as long as neither the tree nor what is wanted
    of it changes: of a plan that follows another most trees are the same.
    """

    def __init__(self) -> None:
        self._plan: Plan | None = None
        self._wanted: Wanted = {}
        self._demands: dict[int, Demand] = {}
        self._known: dict[int, _Known] = {}
        self._flattening = Flattening()

    def flat(self, plan: Plan) -> FlatTrees:
        """Return the trees of a plan as numbers, worked out as seldom."""
        return self._flattening.of(plan)

    def of(self, number: int, plan: Plan, wanted: Wanted) -> Demand:
        """Return the demand of a tree."""
        if plan is not self._plan or wanted is not self._wanted:
            if plan is not self._plan or wanted != self._wanted:
                self._demands = {}
                trees = {id(tree) for tree in plan.trees}
                self._known = {place: known for place, known in self._known.items() if place in trees}
            self._plan, self._wanted = plan, wanted
        if number not in self._demands:
            self._demands[number] = self._of(plan.trees[number], plan, wanted)
        return self._demands[number]

    def _of(self, tree: ProbeTree, plan: Plan, wanted: Wanted) -> Demand:
        known = self._known.get(id(tree))
        if known is not None and known.tree is tree and known.holds(wanted):
            return known.demand
        demand = demand_of(tree, plan, wanted)
        outputs = (*tree.outputs, *(output for step in tree.steps() for output in step.outputs))
        self._known[id(tree)] = _Known(tree, demand, {output.query: wanted[output.query] for output in outputs})
        return demand


def demand_of(tree: ProbeTree, plan: Plan, wanted: Wanted) -> Demand:
    """Return the demand of every point of a tree, from its leaves up."""
    after: dict[str, Columns] = {}
    along: dict[str, Columns] = {}
    probing: dict[str, tuple[tuple[int, str], ...]] = {}

    def visit(edge: str, path: Path, ends: Ends, children: tuple[Step, ...]) -> Columns:
        needs: list[dict[str, None]] = [{} for _ in path]
        for position, name in _ending_columns(ends, plan, wanted):
            needs[position][name] = None
        for child in children:
            later = visit(child.edge, (*path, *child.members), (child.outputs, child.fills), child.children)
            arriving = [dict.fromkeys(columns) for columns in later[: len(path)]]
            probing[child.edge] = tuple(probe_columns(child, path, plan))
            for position, name in probing[child.edge]:
                arriving[position][name] = None
            along[child.edge] = tuple(tuple(columns) for columns in arriving)
            for position, columns in enumerate(arriving):
                needs[position].update(columns)
        after[edge] = tuple(tuple(columns) for columns in needs)
        return after[edge]

    visit("", (tree.start,), (tree.outputs, ()), tree.children)
    return Demand(after=after, along=along, probing=probing)


def _ending_columns(ends: Ends, plan: Plan, wanted: Wanted) -> Iterator[tuple[int, str]]:
    """Yield the (position, column) pairs that the queries and intermediate stores which end here take."""
    outputs, fills = ends
    for output in outputs:
        yield from output_columns(output, wanted)
    for fill in fills:
        store = plan.store(fill.store)
        for name in carried_columns(store):
            part, own = split_part(store, name)
            yield fill.positions[part], own


def output_columns(output: Output, wanted: Wanted) -> Iterator[tuple[int, str]]:
    """Yield the (position, column) pairs that a query takes where it is complete."""
    for alias, position in output.positions:
        yield from ((position, ref.column) for ref in wanted[output.query] if ref.relation == alias)
    for residual in output.residual_filters:
        yield from ((residual.position, name) for name in residual.columns)


def probe_columns(step: Step, path: Path, plan: Plan) -> list[tuple[int, str]]:
    """Return the (position, column) pairs that probing along this step reads: keys, and values to verify."""
    columns = []
    for predicate in step.predicates:
        columns += [(place.at, place.name) for place in operands_of(predicate) if place.at is not None]
        match predicate:
            case Equality(left=left):
                if left.at is not None:
                    value_name = plan.store(path[left.at].store).key(left.name).value_name
                    columns += [] if value_name is None else [(left.at, value_name)]
            case Band() | Residual():
                pass
            case _:
                assert_never(predicate)
    return columns
