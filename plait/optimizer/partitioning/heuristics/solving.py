"""What a heuristic is given to have smaller problems solved."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from plait.optimizer.linear.linear_program import Ints
from plait.optimizer.partitioning.traffic import Traffic

Solve: TypeAlias = Callable[[Traffic], Ints]
"""Return a choice for a traffic, within the time that is left for it (`ExecOptimizer` of algorithm 1)."""
