"""(queries, statistics, options) → plan, by one of several strategies. Pure: no I/O, no clock, no Spark."""

from plait.optimizer.options import PlanOptions
from plait.optimizer.planner import plan
from plait.optimizer.strategies import STRATEGIES

__all__ = ["STRATEGIES", "PlanOptions", "plan"]
