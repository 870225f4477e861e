"""(queries, statistics, options) → plan, by one of several strategies. Pure: no I/O, no clock, no Spark.

The rooms, each building on those below it:

- `advise`: what a plan assumes, what sharing saves, what each query and store costs;
- `incremental`: the plan for queries that come and go beside one that is in force;
- `strategies`: one module each; they choose probe orders, and `planner` finds them by name;
- `multi_query`: the search of strategy `ilp`; `join_trees`: that of `bushy`, `chain`, `left-deep` and `flat`;
- `grouping`: that of `adhoc`; `pick`: that of `dppick`;
- `assemble`: probe orders to plan, the same for all strategies;
- `estimate`: how many rows, tuples and bytes.
"""

from plait.optimizer.options import PlanOptions
from plait.optimizer.planner import plan
from plait.optimizer.strategies import STRATEGIES

__all__ = ["STRATEGIES", "PlanOptions", "plan"]
