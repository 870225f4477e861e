"""Strategies by name. A strategy is a function (queries, statistics, options) → plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from plait.optimizer.options import PlanOptions
from plait.optimizer.strategies.adhoc import adhoc
from plait.optimizer.strategies.bushy import bushy
from plait.optimizer.strategies.chain import chain
from plait.optimizer.strategies.dppick import dppick
from plait.optimizer.strategies.fixed import fixed
from plait.optimizer.strategies.flat import flat
from plait.optimizer.strategies.greedy import greedy
from plait.optimizer.strategies.ilp import ilp
from plait.optimizer.strategies.independent import independent
from plait.optimizer.strategies.left_deep import left_deep
from plait.optimizer.strategies.selectivity import selectivity
from plait.optimizer.strategies.shared import shared
from plait.plan.model import Plan
from plait.plan.strategy_names import StrategyName
from plait.query.model import Query
from plait.stats.model import Statistics

Strategy: TypeAlias = Callable[[tuple[Query, ...], Statistics, PlanOptions], Plan]

STRATEGIES: Mapping[StrategyName, Strategy] = MappingProxyType(
    {
        "fixed": fixed,
        "selectivity": selectivity,
        "greedy": greedy,
        "dppick": dppick,
        "ilp": ilp,
        "adhoc": adhoc,
        "flat": flat,
        "left-deep": left_deep,
        "chain": chain,
        "bushy": bushy,
        "independent": independent,
        "shared": shared,
    }
)
