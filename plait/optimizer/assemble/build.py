"""Turn probe orders into a plan, step by step: `ASSEMBLY` has the steps in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from plait.optimizer.assemble.access import choose_indexes_and_partitionings
from plait.optimizer.assemble.covering import CoveredQueries
from plait.optimizer.assemble.draft import Draft
from plait.optimizer.assemble.estimates import with_stored, write_estimates
from plait.optimizer.assemble.flows import estimate_flows
from plait.optimizer.assemble.intermediate_stores import (
    lay_out_intermediate_stores,
    settle_parallelism,
)
from plait.optimizer.assemble.probe_trees import merge_into_trees
from plait.optimizer.assemble.source_stores import lay_out_source_stores
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.options import PlanOptions
from plait.optimizer.probe_orders import ProbeOrder
from plait.plan.model import Plan
from plait.plan.relations import StoreName, one_per_source
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
