"""Put a plan beside what other strategies would make of the same queries and statistics."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from typing_extensions import assert_never

from plait.optimizer.advise.unknowns import Unknown, assumptions
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.options import PlanOptions
from plait.optimizer.planner import plan
from plait.plan.explain import wording
from plait.plan.explain.costs import Comparison, expected_cost
from plait.plan.model import Plan
from plait.plan.strategy_names import StrategyName
from plait.query.model import Query
from plait.stats.model import Statistics

BASELINES: Final[tuple[StrategyName, ...]] = ("independent", "shared")
"""Every query by itself; every query planned by itself, equal steps run once."""


def compare(
    made: Plan,
    queries: tuple[Query, ...],
    statistics: Statistics,
    options: PlanOptions,
    others: tuple[StrategyName, ...] = BASELINES,
) -> Comparison:
    """Return what other strategies would cost where `made` has been estimated from the same statistics."""
    return Comparison(
        others=tuple(expected_cost(plan(queries, statistics, replace(options, strategy=other))) for other in others),
        assumed=tuple(
            unknown_text(assumption.unknown) for assumption in assumptions(made, Cardinality(statistics=statistics))
        ),
    )


def unknown_text(unknown: Unknown) -> str:
    """Return an unknown number in words."""
    source = wording.name(unknown.source)
    match unknown.what:
        case "rate":
            return f"the rate of {source}"
        case "rows":
            return f"the rows of {source}"
        case "distinct":
            return f"the distinct values of {wording.sql(unknown.of, source)}"
        case "selectivity":
            return f"how often {wording.sql(unknown.of, source)} holds"
        case _:
            assert_never(unknown.what)
