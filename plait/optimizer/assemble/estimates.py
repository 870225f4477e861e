"""Write what is expected into a plan: how many tuples take each step, and what each store keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from plait.optimizer.assemble.draft import Draft, Flow
from plait.optimizer.assemble.flows import flows
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.join_sizes import MemberSizes, extent_of, storage_cost
from plait.plan.expected import Estimate, StoredEstimate
from plait.plan.model import Plan, ProbeTree, Step, Store, is_routed
from plait.plan.traversals import kept_stores


def write_estimates(draft: Draft) -> Draft:
    """Write the estimates into the steps; how often a tuple is copied depends on the partitioning of what it probes."""
    return replace(draft, trees=with_estimates(draft.trees, draft.stores, draft.flows))


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


def with_stored(plan: Plan, cardinality: Cardinality, before: Plan | None = None) -> Plan:
    """Return the plan with what its stores keep; overlaps between selections are not known and not subtracted. Stores
    that are the very same in a plan `before` keep what they did.
    """
    kept = kept_stores(plan)
    sizes = MemberSizes(stores=plan.stores, cardinality=cardinality)
    stores = [store for store in plan.stores if store.id in kept]
    known = {} if before is None else {each.store: each for each in before.stored}
    same = frozenset[str]() if before is None else frozenset(map(id, before.stores))

    def estimated(store: Store) -> StoredEstimate:
        if id(store) in same and store.id in known:
            return known[store.id]
        rows = _kept_rows(store, cardinality) if store.intermediate is None else sizes.size(store.intermediate)
        return StoredEstimate(store=store.id, rows=rows, bytes=rows * _row_bytes(plan, store, cardinality))

    stored = tuple(map(estimated, stores))
    made = {store.id for store in stores if store.intermediate is not None}
    rows = {each.store: each.rows for each in stored}
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
