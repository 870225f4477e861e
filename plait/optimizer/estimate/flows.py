"""Estimate what flows along every edge of a plan.

A step's path fixes everything its numbers depend on (the members and all equalities between them), so a step that
several queries share has one estimate, and an equal plan has equal numbers whatever the queries were called.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.cost import arriving, step_cost, storage_cost
from plait.optimizer.estimate.join_sizes import MemberSizes, extent_of, join_size
from plait.plan.model import Estimate, Member, Plan, ProbeTree, Step, Store, StoredEstimate, is_routed
from plait.plan.walks import kept_stores


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Sizes around one step: the join before it and after it, and the number of streams in each.

    Sizes are per window of the starting relation, which `pace` (windows per second) makes comparable between trees.
    `endless_before` and `endless_after` count the streams among what has been probed that are kept for ever.
    """

    size_before: float
    streams_before: int
    size_after: float
    streams_after: int
    pace: float
    endless_before: int = 0
    endless_after: int = 0

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

    @property
    def steady_per_s(self) -> float:
        """Return the tuples that come in on the edge per second of event time, once windows are full.

        The share 1/j of the papers is of a history that begins with nothing: on average an arrival then finds part of
        the others. A window that slides is always full, so only streams that are kept for ever take that share.
        """
        return arriving(self.size_before, 1 + self.endless_before) * self.pace

    @property
    def steady_results_per_s(self) -> float:
        """Return the tuples that match per second of event time, once windows are full."""
        return arriving(self.size_after, 1 + self.endless_after) * self.pace


def flows(trees: Iterable[ProbeTree], stores: tuple[Store, ...], cardinality: Cardinality) -> dict[str, Flow]:
    """Return the flow of every edge."""
    sizes = MemberSizes(stores=stores, cardinality=cardinality)
    by_edge: dict[str, Flow] = {}

    def visit(path: tuple[Member, ...], size: float, streams: int, steps: tuple[Step, ...]) -> None:
        endless = sizes.endless(path[1:])
        for step in steps:
            flow = Flow(
                size_before=size,
                streams_before=streams,
                size_after=join_size((size, sizes.added_rows(step)), sizes.selectivities(path, step)),
                streams_after=streams + sizes.streams(step.members),
                pace=sizes.pace(path[0]),
                endless_before=endless,
                endless_after=endless + sizes.endless(step.members),
            )
            by_edge[step.edge] = flow
            visit((*path, *step.members), flow.size_after, flow.streams_after, step.children)

    for tree in trees:
        visit((tree.start,), sizes.rows(tree.start), 1, tree.children)
    return by_edge


def with_estimates(
    trees: tuple[ProbeTree, ...], stores: tuple[Store, ...], by_edge: Mapping[str, Flow]
) -> tuple[ProbeTree, ...]:
    """Write the estimates into the steps, now that the partitioning of every store is known."""
    by_id = {store.id: store for store in stores}

    def annotate(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(
            replace(
                step,
                estimate=_estimate(step, by_id[step.member.store], by_edge[step.edge]),
                children=annotate(step.children),
            )
            for step in steps
        )

    return tuple(replace(tree, children=annotate(tree.children)) for tree in trees)


def _estimate(step: Step, store: Store, flow: Flow) -> Estimate:
    copies = 1 if is_routed(store, step) else store.parallelism
    return Estimate(
        probe_tuples=step_cost(flow.size_before, streams=flow.streams_before, copies=copies),
        results=flow.results,
        probe_tuples_per_s=flow.steady_per_s * copies,
        results_per_s=flow.steady_results_per_s,
    )


def with_stored(plan: Plan, cardinality: Cardinality) -> Plan:
    """Return the plan with what its stores keep; overlaps between selections are not known and not subtracted."""
    kept = kept_stores(plan)
    sizes = MemberSizes(stores=plan.stores, cardinality=cardinality)
    stores = [store for store in plan.stores if store.id in kept]
    rows = {
        store.id: _kept_rows(store, cardinality) if store.intermediate is None else sizes.size(store.intermediate)
        for store in stores
    }
    made = {store.id for store in stores if store.intermediate is not None}
    stored = tuple(
        StoredEstimate(store=store.id, rows=rows[store.id], bytes=rows[store.id] * _row_bytes(plan, store, cardinality))
        for store in stores
    )
    total = storage_cost(
        (count for name, count in rows.items() if name not in made), (rows[name] for name in sorted(made))
    )
    return replace(plan, stored_rows_estimate=total, stored=stored)


def reestimated(plan: Plan, cardinality: Cardinality) -> Plan:
    """Return the same plan with estimates from other statistics."""
    trees = with_estimates(plan.trees, plan.stores, flows(plan.trees, plan.stores, cardinality))
    return with_stored(replace(plan, trees=trees), cardinality)


def _row_bytes(plan: Plan, store: Store, cardinality: Cardinality) -> float:
    """Return the bytes of one row: user columns, keys, real values of hashed keys, event times, bits of selections."""
    parts: tuple[Store, ...] = (store,)
    if store.intermediate is not None:
        parts = tuple(plan.store(part.store) for part in store.intermediate.parts)
    values = (
        len(store.columns) + len(store.keys) + len(store.values) + sum(key.value_name is not None for key in store.keys)
    )
    values += sum(not part.is_table for part in parts)
    values += 1 if store.intermediate is not None or len(store.selections) > 1 else 0
    return values * cardinality.assumed.column_bytes


def _kept_rows(store: Store, cardinality: Cardinality) -> float:
    extent = extent_of(store, store.window_us)
    passing = sum(cardinality.selectivity(extent.source, selection) for selection in store.selections)
    return cardinality.rows(extent) * min(passing, 1.0)
