"""What sharing would save, which intermediate stores pay, which query costs most, and which numbers are missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from plait.optimizer.advise.marginal_benefit import MarginalBenefit
from plait.optimizer.advise.undecided import Undecided, undecided_of
from plait.optimizer.advise.unknowns import Assumption, assumptions, supposing
from plait.optimizer.assemble.estimates import reestimated
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.options import PlanOptions
from plait.optimizer.planner import plan
from plait.optimizer.strategies import STRATEGIES
from plait.plan.expected import Solution
from plait.plan.explain import PlanCost, expected_cost
from plait.plan.explain.closings import Closing
from plait.plan.explain.sharing import sharing_of
from plait.plan.model import Plan
from plait.plan.strategy_names import DEFAULT_STRATEGY, StrategyName
from plait.query.model import Query
from plait.stats.model import Statistics

LADDER: Final[tuple[StrategyName, ...]] = ("independent", "shared", DEFAULT_STRATEGY, "ilp")
"""Strategies that share nothing, what is equal anyway, what pays for a query after the other, and as much as pays for
all together.
"""

_APART = 10.0
"""How far from the truth an assumption may well be, either way."""
_TRIED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAdvice:
    """An intermediate store of the best plan: what it keeps, and how many probe tuples it spares (an upper bound)."""

    store: str
    queries: tuple[str, ...]
    rows: float
    bytes: float
    saved_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAdvice:
    """What a query adds to the best plan (steps that nobody else needs), and what it would cost alone."""

    query: str
    added_per_s: float
    alone_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AssumptionAdvice:
    """An assumption, and the probe tuples of the best plan if the truth is ten times less or more (None: not tried)."""

    assumption: Assumption
    low_per_s: float | None = None
    high_per_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """All that can be said. `costs`: the plans of `LADDER`; `best` is the cheapest of them in probe tuples,
    and in stored rows among equals.
    `undecided`: what is kept until the watermark decides, or for ever.

    Stores come by what they save, queries by what they add, assumptions by how much rests on them; largest first.
    """

    costs: tuple[PlanCost, ...]
    best: Plan
    solution: Solution | None
    stores: tuple[StoreAdvice, ...]
    queries: tuple[QueryAdvice, ...]
    assumptions: tuple[AssumptionAdvice, ...]
    undecided: Undecided = field(default_factory=Undecided)


def advise(
    queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions, closings: Iterable[Closing] = ()
) -> Advice:
    """Return advice on these queries. `closings`: what of them comes by the watermark."""
    plans = [plan(queries, statistics, replace(options, strategy=name)) for name in LADDER if name in STRATEGIES]
    costs = tuple(expected_cost(made) for made in plans)
    # The later of two equals, which shares more; `min` would take the first.
    best, _ = min(zip(reversed(plans), reversed(costs), strict=True), key=lambda each: _work(each[1]))
    return Advice(
        costs=costs,
        best=best,
        solution=plans[-1].solution,
        stores=_stores(best, queries, statistics, options),
        queries=_queries(best, queries, statistics, options),
        assumptions=_assumptions(best, statistics),
        undecided=undecided_of(queries, closings, best, Cardinality(statistics=statistics)),
    )


def _stores(
    best: Plan, queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions
) -> tuple[StoreAdvice, ...]:
    uses = sharing_of(best).stores
    if not uses:
        return ()
    benefit = MarginalBenefit(best, queries, statistics, options)
    kept = {advised.store: advised for advised in best.stored}
    advised = [
        StoreAdvice(
            store=store,
            queries=use.queries,
            rows=kept[store].rows,
            bytes=kept[store].bytes,
            saved_per_s=benefit.saved_per_s(store),
        )
        for store, use in uses.items()
    ]
    return tuple(sorted(advised, key=lambda each: (-_rounded(each.saved_per_s), each.store)))


def _queries(
    best: Plan, queries: tuple[Query, ...], statistics: Statistics, options: PlanOptions
) -> tuple[QueryAdvice, ...]:
    needs = sharing_of(best).needs
    added = dict.fromkeys(best.queries, 0.0)
    for tree in best.trees:
        for _, step in tree.walk():
            if len(needs[step.edge]) == 1:
                (query,) = needs[step.edge]
                added[query] += step.estimate.probe_tuples_per_s or 0.0
    alone = replace(options, strategy="shared")
    advised = [
        QueryAdvice(
            query=query.name,
            added_per_s=added[query.name],
            alone_per_s=expected_cost(plan((query,), statistics, alone)).probe_tuples_per_s or 0.0,
        )
        for query in queries
    ]
    return tuple(
        sorted(advised, key=lambda each: (-_rounded(each.added_per_s), -_rounded(each.alone_per_s), each.query))
    )


def _assumptions(best: Plan, statistics: Statistics) -> tuple[AssumptionAdvice, ...]:
    listed = assumptions(best, Cardinality(statistics=statistics))

    def supposed(assumption: Assumption, value: float) -> float | None:
        told = Cardinality(statistics=supposing(statistics, assumption.unknown, value))
        return expected_cost(reestimated(best, told)).probe_tuples_per_s

    tried = [
        AssumptionAdvice(
            assumption=assumption,
            low_per_s=supposed(assumption, assumption.value / _APART),
            high_per_s=supposed(assumption, assumption.value * _APART),
        )
        for assumption in listed[:_TRIED]
        if assumption.share > 0
    ]
    return (*tried, *(AssumptionAdvice(assumption=assumption) for assumption in listed[len(tried) :]))


def _work(cost: PlanCost) -> tuple[float, float]:
    """Return what plans are compared by: probe tuples, and of as many, stored rows."""
    return _rounded(cost.probe_tuples_per_s or 0.0), _rounded(cost.stored_rows or 0.0)


def _rounded(number: float) -> float:
    """Return what is compared when sorting, so that the order does not hang on the last digit of a sum."""
    return float(f"{number:.9g}")
