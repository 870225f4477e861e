"""Plan for a set of queries on a forecast, and on the stores there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from plait.adapt.forecast import NEXT_CYCLE, Outlook, forecast
from plait.optimizer.incremental.former import Former
from plait.optimizer.options import PlanOptions
from plait.optimizer.planner import plan
from plait.plan.model import Plan, Store
from plait.plan.strategy_names import StrategyName
from plait.query.model import Query
from plait.state.model import Manifest
from plait.stats.model import QuerySets, Statistics

Sampled: TypeAlias = Callable[[Manifest | None], tuple[QuerySets, ...]]
"""Samples the query sets of what a manifest says is stored."""

GROUPING: Final[frozenset[StrategyName]] = frozenset({"adhoc", "ilp"})
"""The strategies that let queries share steps although they take different rows."""


@dataclass(frozen=True, slots=True)
class Known:
    """Samples that have been taken already."""

    sets: tuple[QuerySets, ...]

    def __call__(self, manifest: Manifest | None) -> tuple[QuerySets, ...]:
        """Return them, whatever is stored."""
        return self.sets


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """Everything a plan depends on except statistics. `sampled` looks at what is stored for the part of these that no
    batch has counted: which selections rows pass together.
    """

    queries: tuple[Query, ...]
    options: PlanOptions
    sampled: Sampled | None = field(default=None, compare=False)

    def plan(self, manifest: Manifest | None, outlook: Outlook = NEXT_CYCLE, former: Former | None = None) -> Plan:
        """Return the plan for these queries with today's forecast; None: nothing has been measured yet. `former`: the
        plan in force, of which all that is not touched by other queries stays as it is.
        """
        return plan(self.queries, self.statistics(manifest, outlook), self.options, former)

    def statistics(self, manifest: Manifest | None, outlook: Outlook = NEXT_CYCLE) -> Statistics:
        """Return what plans are made and weighed by: the forecast, with samples of what is stored if the strategy lets
        queries share what overlaps.
        """
        statistics = forecast(self.options.sources, manifest, outlook)
        if self.sampled is None or self.options.strategy not in GROUPING:
            return statistics
        return replace(statistics, query_sets=self.sampled(manifest))


def probing_only(running: Plan, wanted: Plan) -> Plan | None:
    """Return `wanted` on the stores of `running`, so that only probing changes; None if it needs other stores.

    Buckets keep their sort order and partitioning; an index they lack is built when it is first probed. Intermediate
    stores may come and go: nothing that arrives is read or kept differently for them.
    """
    stores = {store.id: store for store in running.stores if store.intermediate is None}
    if {store.id for store in wanted.stores if store.intermediate is None} != set(stores):
        return None
    kept = []
    for store in wanted.stores:
        if store.intermediate is not None:
            kept.append(store)
            continue
        old = stores[store.id]
        if _content(old) != _content(store):
            return None
        added = tuple(index for index in store.indexes if index not in old.indexes)
        kept.append(replace(old, indexes=old.indexes + added))
    return replace(wanted, stores=tuple(kept))


def _content(store: Store) -> Store:
    """Return the store without what may differ between plans over the same buckets."""
    return replace(store, indexes=(), partition_by=(), parallelism=1)


__all__ = ["GROUPING", "Known", "PlanRequest", "probing_only"]
