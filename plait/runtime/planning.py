"""When to plan, with which numbers, and what of a new plan a running stream can take over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import MappingProxyType

from plait.errors import OptionError
from plait.optimizer.options import PlanOptions
from plait.optimizer.planner import plan
from plait.plan.changelog import changelog
from plait.plan.model import Plan, Store
from plait.query.model import Query, Source
from plait.sql.lexis.durations import parse_duration_us
from plait.state.model import Manifest, SourceProgress
from plait.stats.combine import combine
from plait.stats.declared import declared_statistics
from plait.stats.measured import Measurement, measured_statistics
from plait.stats.model import Statistics

_HALVINGS = 8
_BARE = "greedy"
"""A strategy without intermediate stores."""

_REPLAN_AFTER = frozenset({1, 4, 16})
"""After how many batches of a run the plan is reconsidered: by then the sample of what has arrived says something
new.
"""

PLANNING: Mapping[str, str] = MappingProxyType(
    {
        "storage_rows": "storage_rows",
        "task_rows": "task_rows",
        "storage_bytes": "storage_bytes",
        "store_weight": "store_weight",
        "time_limit": "time_limit_s",
        "gap": "gap",
    }
)
"""What planning may spend: fields of `PlanOptions` by option, ``plait.<option>``."""

PLANNING_DEFAULTS: Mapping[str, float] = MappingProxyType({"store_weight": 100.0})
"""Where an engine departs from the defaults of `PlanOptions`, which are the papers'.

To keep a row of an intermediate result its columns are gathered, sorted, indexed, written and later merged: measured on
joins of TPC-H, as much work as 5 to 20 probe tuples, depending on its width. It also takes space, often a job more in
each batch, and what it saves is an estimate. Over ten random joins of TPC-H (benchmark `tpch-random`, scale 1) a
weight of 30 ran no faster than 100, which keeps no intermediate result there and a seventh fewer bytes.
"""


def planning_option(option: str, value: str) -> dict[str, float]:
    """Return the field that an option of `PLANNING` sets. Raises OptionError for a duration that is none."""
    if option != "time_limit":
        return {PLANNING[option]: float(value)}
    limit_us = parse_duration_us(value)
    if limit_us is None:
        raise OptionError("'plait.time_limit' must be a duration, such as '20 seconds'")
    return {PLANNING[option]: limit_us / 1_000_000}


def statistics_of(sources: Iterable[Source], progress: Iterable[SourceProgress]) -> Statistics:
    """Return what is declared about the sources together with what finished batches showed."""
    measured = measured_statistics(
        Measurement(
            source=found.source,
            rows=found.rows,
            tau_min_us=found.tau_min,
            tau_max_us=found.tau_max,
            sketches=found.sketch,
            kept=found.kept,
            joins=tuple((*seen.equality, seen.pairs, seen.matches) for seen in found.joins),
        )
        for found in progress
    )
    return combine(declared_statistics(sources), measured)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """Everything a plan depends on except statistics."""

    queries: tuple[Query, ...]
    options: PlanOptions

    def plan(self, progress: tuple[SourceProgress, ...]) -> Plan:
        """Return the plan for these queries with today's statistics."""
        return plan(self.queries, statistics_of(self.options.sources, progress), self.options)


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


class Replanner:
    """Plans beside the stream; the outcome is taken at a later batch boundary."""

    def __init__(self, request: PlanRequest) -> None:
        self._request = request
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="plait-planning")
        self._running: Future[Plan] | None = None
        self._batches = 0

    def batch_done(self, manifest: Manifest) -> None:
        """Count a finished batch; begin to plan if it is time to."""
        self._batches += 1
        if self._batches in _REPLAN_AFTER and self._running is None:
            self._running = self._pool.submit(self._request.plan, manifest.sources)

    def plan_without(self, dropped: frozenset[str], manifest: Manifest, running: Plan) -> Plan | None:
        """Return a plan that does not want the stores that were just dropped to hold the budget; from now on plans take
        as little as this one. What was being planned is forgotten. None: no such plan works on the stores there are.

        Estimates were too low, so the plan is made for half of the room and half again until the stores are gone;
        whatever the estimates, a plan without any intermediate store is the last. A batch waits for this, so all of
        them share the time limit of one.
        """
        self._running = None
        options = self._request.options
        hurried = replace(options, time_limit_s=options.time_limit_s / _HALVINGS)
        shares = (options.storage_share / 2**halving for halving in range(1, _HALVINGS))
        for changed in (*({"storage_share": share} for share in shares), {"strategy": _BARE}):
            self._request = replace(self._request, options=replace(options, **changed))
            adapted = probing_only(
                running, replace(self._request, options=replace(hurried, **changed)).plan(manifest.sources)
            )
            if adapted is not None and dropped.isdisjoint(store.id for store in adapted.stores):
                return adapted
        return None

    def take(self, running: Plan) -> Plan | None:
        """Return a plan that is ready, differs from the one running and changes nothing but probing."""
        if self._running is None or not self._running.done():
            return None
        wanted, self._running = self._running.result(), None
        adapted = probing_only(running, wanted)
        return None if adapted is None or not changelog(running, adapted) else adapted

    def close(self) -> None:
        """Wait for a plan being made; it is dropped."""
        self._pool.shutdown(wait=True)
