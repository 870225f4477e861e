"""What every probe order of a query takes, cycle by cycle, counted by the product's own operators without Spark.

One batch is one cycle. Each is stored once and then probed with one plan after the other, until every order of every
starting relation has been taken; plans without intermediate stores leave the same state, whatever they probe.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from benchmarks.simulator.operators import CLOCK_MS, EVERY_BATCH, Operators, storage_in_memory
from plait.adapt.planning import probing_only
from plait.operators.close.closing import close
from plait.operators.close.keeping import live_buckets
from plait.operators.close.next_manifest import next_manifest
from plait.operators.reports import ProbeReport
from plait.operators.traversal.scheduling import Spread, probe_in_phases
from plait.optimizer.assemble.build import build
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.options import PlanOptions
from plait.optimizer.pick.query_costs import QueryCosts
from plait.optimizer.probe_orders import ProbeOrder
from plait.plan.model import Plan
from plait.query.masks import Mask, positions
from plait.query.model import Query, Stream
from plait.state.model import Bucket, Manifest, SourceProgress
from plait.stats.model import Statistics

Batch = Mapping[str, pa.Table]
"""The rows of every stream that arrive together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeCounts:
    """What one step took in one cycle: tuples that probed, how many matched anything, all their matches."""

    probes: int = 0
    matched: int = 0
    matches: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """One cycle: the buckets there were before it and those that arrived, progress before and after, and the counts of
    every step of every order.
    """

    stored: tuple[Bucket, ...]
    arrived: tuple[Bucket, ...]
    before: Mapping[str, SourceProgress]
    after: Mapping[str, SourceProgress]
    edges: Mapping[str, EdgeCounts]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """All cycles of a query over streams. `orders`: every probe order by starting alias; `stores`: a plan's."""

    query: Query
    streams: tuple[Stream, ...]
    orders: Mapping[str, tuple[ProbeOrder, ...]]
    cycles: tuple[Cycle, ...]

    def options(self, strategy: str = "fixed") -> PlanOptions:
        """Return options to plan with, for this data without intermediate stores."""
        return plan_options(self.streams, strategy)


def plan_options(streams: tuple[Stream, ...], strategy: str = "fixed") -> PlanOptions:
    """Return options for one partition a store and no intermediate stores."""
    return PlanOptions(strategy=strategy, sources=streams, parallelism=1, storage_rows=0)  # type: ignore[arg-type]


def every_order(query: Query, options: PlanOptions) -> dict[str, tuple[ProbeOrder, ...]]:
    """Return all probe orders without cross joins, by starting alias."""
    costs = QueryCosts(query, Cardinality(statistics=Statistics()), options)

    def extended(joined: Mask) -> Iterator[tuple[Mask, ...]]:
        if joined == costs.everything:
            yield ()
            return
        for unit in costs.following(joined, costs.everything):
            for rest in extended(joined | unit):
                yield (unit, *rest)

    return {
        costs.aliases[start]: tuple(
            ProbeOrder(query=query.name, units=tuple(map(costs.among, (1 << start, *units))))
            for units in extended(1 << start)
        )
        for start in positions(costs.streams)
    }


def plans_of(query: Query, orders: Mapping[str, Sequence[ProbeOrder]], options: PlanOptions) -> tuple[Plan, ...]:
    """Return plans that together take every order, on the stores of the first."""
    rounds = max(len(found) for found in orders.values())
    made = [
        build((query,), [found[number % len(found)] for found in orders.values()], Statistics(), options)
        for number in range(rounds)
    ]
    fitting = [probing_only(made[0], each) for each in made]
    return tuple(each for each in fitting if each is not None)


def record(query: Query, streams: tuple[Stream, ...], batches: Sequence[Batch]) -> Recording:
    """Run the batches through the operators and count every order's steps."""
    options = plan_options(streams)
    orders = every_order(query, options)
    plans = plans_of(query, orders, options)
    with storage_in_memory("plait-simulated-") as storage:
        cycles = tuple(_Recorder(streams, plans, Operators(query, storage)).run(batches))
    return Recording(query=query, streams=streams, orders=orders, cycles=cycles)


class _Recorder:
    def __init__(self, streams: tuple[Stream, ...], plans: tuple[Plan, ...], operators: Operators) -> None:
        self._streams, self._plans, self._operators = streams, plans, operators

    def run(self, batches: Sequence[Batch]) -> Iterator[Cycle]:
        plan, manifest = self._plans[0], Manifest(batch=-1, watermark_us=None, plan="recorded")
        for number, batch in enumerate(batches):
            ingested = tuple(
                self._operators.ingested(plan, stream, batch[stream.name], number) for stream in self._streams
            )
            arrived = tuple(bucket for report in ingested for bucket in report.buckets)
            live = live_buckets(plan, manifest)
            edges: dict[str, EdgeCounts] = {}
            for each in self._plans:
                reports = self._probed(each, number, live, arrived)
                edges.update(_counts(reports))
            before = replace(manifest, buckets=live)
            closed = close(before, plan, self._streams, ingested, (), CLOCK_MS + number, EVERY_BATCH)
            following = next_manifest(
                before,
                closed,
                plan=plan,
                plan_id="recorded",
                batch=number,
                ingested=ingested,
                probed=(),
                publications=(),
                undelivered=(),
            )
            yield Cycle(
                stored=live,
                arrived=arrived,
                before={found.source: found for found in manifest.sources},
                after={found.source: found for found in following.sources},
                edges=edges,
            )
            manifest = following

    def _probed(
        self, plan: Plan, number: int, live: tuple[Bucket, ...], arrived: tuple[Bucket, ...]
    ) -> tuple[ProbeReport, ...]:
        context = self._operators.context(plan, number)
        return probe_in_phases(context, live, arrived, self._operators.probed, Spread(slots=1))


def _counts(reports: tuple[ProbeReport, ...]) -> dict[str, EdgeCounts]:
    sums: dict[str, list[int]] = {}
    for report in reports:
        for place, counts in enumerate((report.probe_tuples, report.matched, report.matches)):
            for edge, count in counts:
                sums.setdefault(edge, [0, 0, 0])[place] += count
    return {
        edge: EdgeCounts(probes=probes, matched=matched, matches=matches)
        for edge, (probes, matched, matches) in sums.items()
    }


__all__ = [
    "Batch",
    "Cycle",
    "EdgeCounts",
    "Recording",
    "every_order",
    "plan_options",
    "plans_of",
    "record",
]
