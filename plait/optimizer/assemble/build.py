"""Turn probe orders into a plan: the part that all strategies share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from plait.optimizer.assemble.access import choose_access
from plait.optimizer.assemble.covering import Carried
from plait.optimizer.assemble.intermediates import gather_intermediates
from plait.optimizer.assemble.probe_trees import merge_orders
from plait.optimizer.assemble.source_stores import gather_stores
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.flows import flows, with_estimates, with_stored
from plait.optimizer.estimate.join_sizes import MemberSizes
from plait.optimizer.options import PlanOptions
from plait.optimizer.probe_orders import ProbeOrder, StoreName, one_per_source
from plait.plan.model import Plan, Store
from plait.query.model import Query
from plait.stats.model import Statistics


def build(
    queries: Iterable[Query],
    orders: Iterable[ProbeOrder],
    statistics: Statistics,
    options: PlanOptions,
    store_name: StoreName = one_per_source,
    wide: Iterable[Query] = (),
) -> Plan:
    """Return the plan that runs these probe orders; the order of queries and of probe orders does not matter.

    `wide`: wider queries that are joined in the place of those of the same name (`plait.optimizer.assemble.covering`).
    """
    ordered = tuple(sorted(queries, key=lambda query: query.name))
    wider = {query.name: query for query in wide}
    carried = Carried(own=ordered, joined=tuple(wider.get(query.name, query) for query in ordered))
    listed = tuple(orders)
    cardinality = Cardinality(statistics=statistics)
    stores = gather_stores(ordered, options, store_name) + gather_intermediates(carried, listed, options, store_name)
    kept = tuple(sorted(_spread(stores, cardinality, options), key=lambda store: store.id))
    trees = merge_orders(carried, listed, store_name)
    found = flows(trees, kept, cardinality)
    arrivals = {edge: flow.arriving_per_s for edge, flow in found.items()}
    stores = choose_access(kept, trees, arrivals, cardinality, options.at_random)
    made = Plan(
        strategy=options.strategy,
        queries=tuple(query.name for query in ordered),
        ranks=options.ranks,
        stores=stores,
        trees=with_estimates(trees, stores, found),
    )
    return with_stored(made, cardinality)


def _spread(stores: tuple[Store, ...], cardinality: Cardinality, options: PlanOptions) -> Iterator[Store]:
    """Yield the stores, those of intermediate results with as many partitions as what they keep asks for."""
    sizes = MemberSizes(stores=stores, cardinality=cardinality)
    for store in stores:
        if store.intermediate is None or options.task_rows is None:
            yield store
        else:
            yield replace(store, parallelism=options.partitions_of_join((), sizes.size(store.intermediate)))
