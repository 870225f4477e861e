"""Estimate what flows along every edge of a plan.

A step's path fixes everything its numbers depend on (the members and all equalities between them), so a step that
several queries share has one estimate, and an equal plan has equal numbers whatever the queries were called.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from plait.optimizer.cardinality import Cardinality
from plait.optimizer.cost import arriving, join_size, step_cost, storage_cost
from plait.optimizer.extents import Extents, extent_of
from plait.plan.model import Estimate, Member, Plan, ProbeTree, Step, Store, is_routed
from plait.plan.walks import kept_stores


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Sizes around one step: the join before it and after it, and the number of streams in each.

    Sizes are per window of the starting relation, which `pace` (windows per second) makes comparable between trees.
    """

    size_before: float
    streams_before: int
    size_after: float
    streams_after: int
    pace: float

    @property
    def arriving(self) -> float:
        """Return the tuples that come in on the edge, each counted once."""
        return arriving(self.size_before, self.streams_before)

    @property
    def arriving_per_s(self) -> float:
        """Return the tuples that come in on the edge per second of event time, each counted once."""
        return self.arriving * self.pace

    @property
    def results(self) -> float:
        """Return the tuples that match."""
        return arriving(self.size_after, self.streams_after)


def flows(trees: Iterable[ProbeTree], stores: tuple[Store, ...], cardinality: Cardinality) -> dict[str, Flow]:
    """Return the flow of every edge."""
    extents = Extents(stores=stores, cardinality=cardinality)
    found: dict[str, Flow] = {}

    def visit(path: tuple[Member, ...], size: float, streams: int, steps: tuple[Step, ...]) -> None:
        for step in steps:
            flow = Flow(
                size_before=size,
                streams_before=streams,
                size_after=join_size((size, extents.added_rows(step)), extents.selectivities(path, step)),
                streams_after=streams + extents.streams(step.members),
                pace=extents.pace(path[0]),
            )
            found[step.edge] = flow
            visit((*path, *step.members), flow.size_after, flow.streams_after, step.children)

    for tree in trees:
        visit((tree.start,), extents.rows(tree.start), 1, tree.children)
    return found


def with_estimates(
    trees: tuple[ProbeTree, ...], stores: tuple[Store, ...], found: dict[str, Flow]
) -> tuple[ProbeTree, ...]:
    """Write the estimates into the steps, now that the partitioning of every store is known."""
    by_id = {store.id: store for store in stores}

    def annotate(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(
            replace(
                step,
                estimate=_estimate(step, by_id[step.member.store], found[step.edge]),
                children=annotate(step.children),
            )
            for step in steps
        )

    return tuple(replace(tree, children=annotate(tree.children)) for tree in trees)


def _estimate(step: Step, store: Store, flow: Flow) -> Estimate:
    copies = 1 if is_routed(store, step) else store.parallelism
    return Estimate(
        probe_tuples=step_cost(flow.size_before, streams=flow.streams_before, copies=copies), results=flow.results
    )


def stored_rows(plan: Plan, cardinality: Cardinality) -> float:
    """Return the rows that all stores keep; overlaps between selections are not known and not subtracted."""
    kept = kept_stores(plan)
    extents = Extents(stores=plan.stores, cardinality=cardinality)
    stores = [store for store in plan.stores if store.id in kept]
    return storage_cost(
        (_kept_rows(store, cardinality) for store in stores if store.intermediate is None),
        (extents.size(store.intermediate) for store in stores if store.intermediate is not None),
    )


def _kept_rows(store: Store, cardinality: Cardinality) -> float:
    extent = extent_of(store, store.window_us)
    share = sum(cardinality.share(extent.source, selection) for selection in store.selections)
    return cardinality.rows(extent) * min(share, 1.0)
