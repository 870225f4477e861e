"""The exact model solved by HiGHS, from a choice that is known, with the bound it has proved."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plait.optimizer.linear.highs import Limits, optimize
from plait.optimizer.linear.linear_program import Ints
from plait.optimizer.partitioning.exact_program import symmetric, table_program, values_of
from plait.optimizer.partitioning.lower_bound import lower_bound
from plait.optimizer.partitioning.objective import cost_of
from plait.optimizer.partitioning.traffic import Traffic

COLUMNS_PER_S = 20_000
"""Programs with more columns for each second there is are not begun: even their relaxation would outlast the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proved:
    """A choice, what it costs, and what no choice can cost less than."""

    choice: Ints
    cost: float
    bound: float

    @property
    def gap(self) -> float:
        """The share of the cost that may be avoidable."""
        return max(0.0, 1.0 - self.bound / self.cost) if self.cost > 0 else 0.0


def columns_of(traffic: Traffic) -> int:
    """Return about how many columns the program of a traffic has."""
    return traffic.partitions * (traffic.groups + len(traffic.group))


def solve_exactly(traffic: Traffic, start: Ints, limits: Limits) -> Proved:
    """Return the best choice found from a start within the limits, and the best bound."""
    known, bound = cost_of(traffic, start).total, lower_bound(traffic)
    proved = Proved(choice=start, cost=known, bound=min(bound, known))
    if proved.gap <= limits.gap or limits.seconds <= 0 or columns_of(traffic) > COLUMNS_PER_S * limits.seconds:
        return proved
    program = table_program(traffic)
    outcome = optimize(program.linear, values_of(traffic, program, symmetric(traffic, start)), limits)
    choice = start
    if outcome.values is not None:
        chosen = outcome.values[: traffic.groups * traffic.partitions].reshape(-1, traffic.partitions)
        found = np.argmax(chosen, axis=1)
        choice = found if cost_of(traffic, found).total < known else start
    cost = cost_of(traffic, choice).total
    return Proved(choice=choice, cost=cost, bound=min(max(bound, outcome.bound), cost))
