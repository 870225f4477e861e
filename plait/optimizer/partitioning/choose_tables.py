"""Choose tables within a time budget: algorithm 1 of paper 001, before and after it a search of our own.

The paper's loop goes on to the next heuristic while the solver finds nothing. Here a choice is known from the start
(that of `quick.search`, or each operator by itself), so a stage counts as found when it proves its gap; otherwise what
it has found is kept if it is better, and the next one begins. What is left of the budget goes into local moves.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias, get_args

import numpy as np

from plait.optimizer.linear.highs import Limits
from plait.optimizer.linear.linear_program import Ints
from plait.optimizer.partitioning.exact import Proved, columns_of, solve_exactly
from plait.optimizer.partitioning.heuristics import (
    Part,
    TimeBudget,
    gaps,
    merge_key_groups,
    merge_partitions,
    parts,
    run_in_bunches,
    unite_pairwise,
)
from plait.optimizer.partitioning.local_moves import compile_moves
from plait.optimizer.partitioning.lower_bound import lower_bound
from plait.optimizer.partitioning.objective import cost_of
from plait.optimizer.partitioning.quick import alone, search
from plait.optimizer.partitioning.traffic import Traffic

Heuristic: TypeAlias = Literal[
    "streams apart", "wider gap", "time budget", "fewer groups", "query tree", "hybrid", "fewer partitions"
]
HEURISTICS: Final[frozenset[Heuristic]] = frozenset(get_args(Heuristic))

_UNLIMITED = 1e9
_QUICK_S = 0.2
_QUICK_SHARE = 0.25
_SMALL_COLUMNS = 3000
"""Programs with no more columns are solved at once, which is often over sooner than a search."""

_WHOLE_SHARE = 0.6
"""Of the time that is left when the whole problem is given to the solver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """`seconds` and the relative `gap` to be content with; `iterations` of the loop; `heuristics` that may be used;
    `searches`: our own search before and after. `nodes`: the fewest logical partitions.
    """

    seconds: float = 4.0
    gap: float = 1e-4
    iterations: int = 4
    heuristics: frozenset[Heuristic] = HEURISTICS
    searches: bool = True
    nodes: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The partition of each group, its cost, what no choice can cost less than, and which stages found it."""

    choice: Ints
    cost: float
    bound: float
    found_by: tuple[str, ...]

    @property
    def gap(self) -> float:
        """The share of the cost that may be avoidable."""
        return max(0.0, 1.0 - self.bound / self.cost) if self.cost > 0 else 0.0


def choose_tables(traffic: Traffic, options: TableOptions | None = None) -> Chosen:
    """Return the best choice found within the budget; never dearer than each operator partitioned by itself."""
    options = options or TableOptions()
    if options.searches:
        compile_moves()
    if "streams apart" not in options.heuristics:
        return _Choosing(traffic, options).run()
    apart = parts(traffic)
    with ThreadPoolExecutor(max_workers=max(1, min(len(apart), os.cpu_count() or 1))) as pool:
        found = list(pool.map(lambda part: _part(part, apart, options), apart))
    choice = np.zeros(traffic.groups, dtype=np.int64)
    for part, each in zip(apart, found, strict=True):
        choice[part.groups] = each.choice
    cost = cost_of(traffic, choice).total
    return Chosen(
        choice=choice,
        cost=cost,
        bound=min(cost, sum(each.bound for each in found)),
        found_by=tuple(name for each in found for name in each.found_by),
    )


def _part(part: Part, apart: tuple[Part, ...], options: TableOptions) -> Chosen:
    """Solve a part in its share of the time: they take turns where there are more of them than cores."""
    turns = -(-len(apart) // max(1, min(len(apart), os.cpu_count() or 1)))
    return _Choosing(part.traffic, replace(options, seconds=options.seconds / turns)).run()


class _Choosing:
    """The stages on one traffic, with the best choice so far."""

    def __init__(self, traffic: Traffic, options: TableOptions) -> None:
        self._traffic, self._options = traffic, options
        self._budget = TimeBudget(options.seconds if "time budget" in options.heuristics else _UNLIMITED)
        self._best, self._found_by = alone(traffic), "alone"
        self._cost = cost_of(traffic, self._best).total
        self._bound = min(lower_bound(traffic), self._cost)

    def run(self) -> Chosen:
        """Go through the stages until one proves its gap or the time is up."""
        options = self._options
        if options.searches:
            seconds = _QUICK_SHARE * options.seconds
            self._take(search(self._traffic, min(_QUICK_S, seconds)).choice, "search")
            is_small = columns_of(self._traffic) <= _SMALL_COLUMNS
            if not is_small and not self._is_over(options.gap) and seconds > _QUICK_S:
                self._take(search(self._traffic, seconds - _QUICK_S, self._best, seed=2).choice, "search")
        if not self._is_proved(options.gap):
            self._whole(options.gap, _WHOLE_SHARE * self._budget.left)
        for turn, gap in enumerate(gaps(options.gap, options.iterations, widen="wider gap" in options.heuristics), 1):
            if self._is_over(gap) or not self._climb(turn, gap):
                break
        if options.searches and not self._is_over(options.gap) and np.isfinite(self._budget.left):
            seconds = min(self._budget.left, options.seconds)
            self._take(search(self._traffic, seconds, self._best, seed=3).choice, "search")
        return Chosen(choice=self._best, cost=self._cost, bound=self._bound, found_by=(self._found_by,))

    def _climb(self, turn: int, gap: float) -> bool:
        """Take one turn of the loop; False if there is nothing in it to try."""
        ladder = list(self._ladder(turn))
        for place, (name, stage) in enumerate(ladder):
            if self._is_over(gap):
                break
            # Half of the time is left to later turns and the search that comes last.
            seconds = self._budget.share(2 * (len(ladder) - place))
            self._take(stage(_Solver(seconds, gap, self._options.searches)), name)
        return bool(ladder)

    def _ladder(self, turn: int) -> Iterator[tuple[str, Callable[[_Solver], Ints]]]:
        """Yield the stages of a turn in the order of algorithm 1."""
        traffic, allowed = self._traffic, self._options.heuristics
        if "fewer groups" in allowed:
            yield "fewer groups", lambda solve: merge_key_groups(traffic, turn, solve)
        if "fewer partitions" in allowed and traffic.partitions > 2:
            yield "fewer partitions", lambda solve: merge_partitions(traffic, turn, self._options.nodes, solve)
        operators = len(np.unique(traffic.operator))
        if "query tree" in allowed and operators > 2:
            yield "query tree", lambda solve: unite_pairwise(traffic, solve)
        if "hybrid" in allowed and operators > 2:
            yield "hybrid", lambda solve: run_in_bunches(traffic, solve)

    def _whole(self, gap: float, seconds: float) -> None:
        proved = solve_exactly(self._traffic, self._best, Limits(seconds=seconds, gap=gap))
        self._bound = max(self._bound, proved.bound)
        self._take(proved.choice, "exact")

    def _take(self, choice: Ints, name: str) -> None:
        cost = cost_of(self._traffic, choice).total
        if cost < self._cost:
            self._best, self._cost, self._found_by = choice, cost, name

    def _is_proved(self, gap: float) -> bool:
        return self._cost - self._bound <= gap * self._cost

    def _is_over(self, gap: float) -> bool:
        return self._is_proved(gap) or self._budget.left <= 0.0


class _Solver:
    """`ExecOptimizer` of algorithm 1: the exact model on a smaller problem, within a share of the time.

    A stage may have several problems solved; each may take half of what is left of its time.
    """

    def __init__(self, seconds: float, gap: float, searches: bool) -> None:
        self._budget, self._gap, self._searches = TimeBudget(seconds), gap, searches

    def __call__(self, traffic: Traffic) -> Ints:
        """Return the best choice found."""
        seconds = self._budget.share(2)
        start = search(traffic, 0.2 * seconds).choice if self._searches else alone(traffic)
        proved: Proved = solve_exactly(traffic, start, Limits(seconds=0.8 * seconds, gap=self._gap))
        return proved.choice
