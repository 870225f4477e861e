"""Turn probe orders into a plan, step by step: `ASSEMBLY` has the steps in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from plait.optimizer.assemble.access import choose_access
from plait.optimizer.assemble.covering import CoveredQueries
from plait.optimizer.assemble.intermediate_stores import gather_intermediates
from plait.optimizer.assemble.probe_trees import merge_orders
from plait.optimizer.assemble.source_stores import gather_stores
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.flows import Flow, flows, with_estimates, with_stored
from plait.optimizer.estimate.join_sizes import MemberSizes
from plait.optimizer.options import PlanOptions
from plait.optimizer.probe_orders import ProbeOrder, StoreName, one_per_source
from plait.plan.model import Plan, ProbeTree, Store
from plait.query.model import Query
from plait.stats.model import Statistics


def build(
    queries: Iterable[Query],
    orders: Iterable[ProbeOrder],
    statistics: Statistics,
    options: PlanOptions,
    store_name: StoreName = one_per_source,
    covering: Iterable[Query] = (),
) -> Plan:
    """Return the plan that runs these probe orders; the order of queries and of probe orders does not matter.

    `covering`: queries that are joined in the place of those of the same name (`plait.optimizer.assemble.covering`).
    """
    draft = Draft(
        queries=CoveredQueries.of(queries, covering),
        orders=tuple(orders),
        options=options,
        cardinality=Cardinality(statistics=statistics),
        store_name=store_name,
    )
    for step in ASSEMBLY:
        draft = step(draft)
    plan = Plan(
        strategy=options.strategy,
        queries=tuple(query.name for query in draft.queries.own),
        ranks=options.ranks,
        stores=draft.stores,
        trees=draft.trees,
    )
    return with_stored(plan, draft.cardinality)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A plan in the making: what is given, then what the steps have made of it so far. `flows`: by edge."""

    queries: CoveredQueries
    orders: tuple[ProbeOrder, ...]
    options: PlanOptions
    cardinality: Cardinality
    store_name: StoreName
    stores: tuple[Store, ...] = ()
    trees: tuple[ProbeTree, ...] = ()
    flows: Mapping[str, Flow] = field(default_factory=dict)


def lay_out_source_stores(draft: Draft) -> Draft:
    """Add the stores of sources, with what they keep for whom."""
    return replace(draft, stores=gather_stores(draft.queries.own, draft.options, draft.store_name))


def lay_out_intermediate_stores(draft: Draft) -> Draft:
    """Add the stores of intermediate results, with all that orders need from them later."""
    made = gather_intermediates(draft.queries, draft.orders, draft.options, draft.store_name)
    return replace(draft, stores=tuple(sorted((*draft.stores, *made), key=lambda store: store.id)))


def settle_parallelism(draft: Draft) -> Draft:
    """Give intermediate stores as many partitions as what they keep asks for, if tasks have a size."""
    sizes = MemberSizes(stores=draft.stores, cardinality=draft.cardinality)

    def settled(store: Store) -> Store:
        if store.intermediate is None or draft.options.task_rows is None:
            return store
        return replace(store, parallelism=draft.options.partitions_of_join((), sizes.size(store.intermediate)))

    return replace(draft, stores=tuple(map(settled, draft.stores)))


def merge_into_trees(draft: Draft) -> Draft:
    """Make one probe tree for each starting member: equal prefixes of probe orders are the same steps."""
    return replace(draft, trees=merge_orders(draft.queries, draft.orders, draft.store_name))


def estimate_flows(draft: Draft) -> Draft:
    """Estimate how many tuples come in on each edge and how many match."""
    return replace(draft, flows=flows(draft.trees, draft.stores, draft.cardinality))


def choose_indexes_and_partitionings(draft: Draft) -> Draft:
    """Let stores be indexed and partitioned as suits most of the tuples that probe them."""
    arrivals = {edge: flow.arriving_per_s for edge, flow in draft.flows.items()}
    stores = choose_access(draft.stores, draft.trees, arrivals, draft.cardinality, draft.options.at_random)
    return replace(draft, stores=stores)


def write_estimates(draft: Draft) -> Draft:
    """Write the estimates into the steps; how often a tuple is copied depends on the partitioning of what it probes."""
    return replace(draft, trees=with_estimates(draft.trees, draft.stores, draft.flows))


Assemble: TypeAlias = Callable[[Draft], Draft]

ASSEMBLY: tuple[Assemble, ...] = (
    lay_out_source_stores,
    lay_out_intermediate_stores,
    settle_parallelism,
    merge_into_trees,
    estimate_flows,
    choose_indexes_and_partitionings,
    write_estimates,
)
"""From probe orders to a plan. Each step needs what those above it have made, so the order is the only one."""
