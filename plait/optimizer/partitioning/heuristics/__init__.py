"""The seven heuristics of paper 001 (section IV, figure 5), one a module, in the order of its algorithm 1 in `LADDER`.

All but the first three make the problem smaller, have that solved, and say what its solution means for the whole.
"""

from plait.optimizer.partitioning.heuristics.fewer_groups import merge_key_groups
from plait.optimizer.partitioning.heuristics.fewer_partitions import merge_partitions
from plait.optimizer.partitioning.heuristics.hybrid import run_in_bunches
from plait.optimizer.partitioning.heuristics.query_tree import unite_pairwise
from plait.optimizer.partitioning.heuristics.streams_apart import Part, parts
from plait.optimizer.partitioning.heuristics.time_budget import TimeBudget
from plait.optimizer.partitioning.heuristics.wider_gap import gaps

__all__ = [
    "Part",
    "TimeBudget",
    "gaps",
    "merge_key_groups",
    "merge_partitions",
    "parts",
    "run_in_bunches",
    "unite_pairwise",
]
