"""Estimate what flows along every edge of a plan.

A step's path fixes everything its numbers depend on (the members and all equalities between them), so a step that
several queries share has one estimate, and an equal plan has equal numbers whatever the queries were called.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from plait.optimizer.assemble.draft import Draft, Flow
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.join_sizes import MemberSizes, arriving, extent_of, join_size, storage_cost
from plait.plan.model import Estimate, Plan, ProbeTree, Step, Store, StoredEstimate, is_routed
from plait.plan.traversals import conditions_of_step, kept_stores, path_members


def flows(trees: Iterable[ProbeTree], stores: tuple[Store, ...], cardinality: Cardinality) -> dict[str, Flow]:
    """Return the flow of every edge."""
    sizes = MemberSizes(stores=stores, cardinality=cardinality)
    by_edge: dict[str, Flow] = {}
    for tree in trees:
        pace = cardinality.pace(sizes.of(tree.start))
        # The join so far by the edge that leads there: each step multiplies what the one before it has.
        reached = {"": (sizes.rows(tree.start), 1)}
        for steps, step in tree.walk():
            size, streams = reached[steps[-1].edge if steps else ""]
            path = path_members(tree.start, steps)
            required = conditions_of_step(sizes.store(step.member.store), step, len(path))
            selectivities = sizes.selectivities(required, (*path, *step.members))
            size_after = join_size((size, sizes.added_rows(step)), selectivities.values())
            streams_after = streams + sizes.streams(step.members)
            endless = sizes.endless(path[1:])
            endless_after = endless + sizes.endless(step.members)
            by_edge[step.edge] = Flow(
                arriving=arriving(size, streams),
                arriving_per_s=arriving(size, streams) * pace,
                results=arriving(size_after, streams_after),
                steady_per_s=arriving(size, 1 + endless) * pace,
                steady_results_per_s=arriving(size_after, 1 + endless_after) * pace,
            )
            reached[step.edge] = size_after, streams_after
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
        probe_tuples=flow.arriving * copies,
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


def estimate_flows(draft: Draft) -> Draft:
    """Estimate how many tuples come in on each edge and how many match."""
    return replace(draft, flows=flows(draft.trees, draft.stores, draft.cardinality))


def write_estimates(draft: Draft) -> Draft:
    """Write the estimates into the steps; how often a tuple is copied depends on the partitioning of what it probes."""
    return replace(draft, trees=with_estimates(draft.trees, draft.stores, draft.flows))
