"""Shared partitioning: which partition each key group of each operator goes to (paper 001).

In: what key groups draw from the sources (`Traffic`, made of a sample by `overlap.counted`). Out: a partition for each
key group, what that costs, and a bound. What must hold: both inputs of a join have one table; never dearer than each
operator partitioned by itself; a bound is a bound.

The way through it: `overlap` (samples to traffic), `objective` (equations 4 to 10), `quick` (clusters and local moves,
0.2 s), `exact_program` and `exact` (the mixed-integer program), `heuristics` and `choose_tables` (algorithm 1).
"""

from plait.optimizer.partitioning.choose_tables import HEURISTICS, Chosen, Heuristic, TableOptions, choose_tables
from plait.optimizer.partitioning.objective import TableCost, cost_of
from plait.optimizer.partitioning.overlap import Operator, Sampled, aligned, counted, tables
from plait.optimizer.partitioning.quick import alone, by_remainder, search
from plait.optimizer.partitioning.traffic import Latencies, Traffic

__all__ = [
    "HEURISTICS",
    "Chosen",
    "Heuristic",
    "Latencies",
    "Operator",
    "Sampled",
    "TableCost",
    "TableOptions",
    "Traffic",
    "aligned",
    "alone",
    "by_remainder",
    "choose_tables",
    "cost_of",
    "counted",
    "search",
    "tables",
]
