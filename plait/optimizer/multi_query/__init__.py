"""Multi-query optimization: decide for all queries together what to probe, keep and partition (strategy `ilp`).

In: queries (perhaps covering ones), statistics, options. Out: probe orders for every query and for every intermediate
store in use, and how near to the least possible cost they are. What must hold: what several queries compute costs once;
never dearer than the probe orders of `greedy`; equal input gives an equal decision unless time runs out.

The way through it: `patterns` (queries by content), `explore` (the network of all that could be done), `problem`
(its independent parts with prices), `solver` (local search, relaxation, branch and bound), `choose_plan` (all of it).
"""

from plait.optimizer.linear.highs import Limits
from plait.optimizer.multi_query.choose_plan import Decision, Space, cheapest_orders, decide, explore, quick_cost

__all__ = ["Decision", "Limits", "Space", "cheapest_orders", "decide", "explore", "quick_cost"]
