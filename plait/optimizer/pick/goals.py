"""The cheapest orders of several queries and intermediate stores together, each shared step paid for once.

One goal after the other takes the order that is cheapest beside what the others take, until none can do better alone.
Every round lowers the cost of all, so it ends; it need not be the least there is, as two goals may have to move at once
(`ilp` looks for that).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plait.optimizer.pick.best_order import BestOrders, Taken, Units, order_cost
from plait.optimizer.pick.query_costs import QueryCosts
from plait.query.masks import Mask

_ROUNDS = 10
_LESS = 1e-9
"""The least share by which a cost must fall to be lower: not by rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What arrives on `start` is to be joined with all of `target`: the whole query, or an intermediate store that this
    `fills`.
    """

    costs: QueryCosts
    start: Mask
    target: Mask
    fills: bool = False

    @property
    def name(self) -> str:
        """Tell goals of one starting relation, whichever query has them, from others."""
        return self.costs.name(self.start, self.target)

    @property
    def rate(self) -> float:
        """How many tuples per second have this goal."""
        return self.costs.rate(self.start)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A goal and the order that leads to it."""

    goal: Goal
    units: Units

    @property
    def tuples(self) -> float:
        """How many tuples per second reach it."""
        joined, tuples = self.goal.start, self.goal.rate
        for unit in self.units:
            tuples *= self.goal.costs.step(joined, unit).growth
            joined |= unit
        return tuples


def reach_all(goals: Sequence[Goal]) -> tuple[Reached, ...]:
    """Return an order for each goal, in the order of the goals."""
    by_start: dict[str, list[int]] = {}
    for number, goal in enumerate(goals):
        by_start.setdefault(goal.name, []).append(number)
    by_goal: dict[int, Reached] = {}
    best: dict[tuple[int, Mask], BestOrders] = {}
    for numbers in by_start.values():
        sharing = [goals[number] for number in numbers]
        searches = [
            best.setdefault((id(goal.costs), goal.target), BestOrders(goal.costs, goal.target)) for goal in sharing
        ]
        for number, goal, units in zip(numbers, sharing, _together(sharing, searches), strict=True):
            by_goal[number] = Reached(goal=goal, units=units)
    return tuple(by_goal[number] for number in range(len(goals)))


def shared_cost(reached: Sequence[Reached]) -> float:
    """Return what all orders cost per second, each step that several take once."""
    taken: dict[str, Taken] = {}
    cost = 0.0
    for each in reached:
        goal = each.goal
        tree = taken.setdefault(goal.name, Taken())
        cost += goal.rate * order_cost(goal.costs, goal.start, each.units, tree)
        tree.add(goal.costs, goal.start, goal.target, each.units)
    return cost


def _together(goals: list[Goal], searches: list[BestOrders]) -> list[Units]:
    """Return the orders of goals of one starting relation."""
    orders = [search.of(goal.start).units for goal, search in zip(goals, searches, strict=True)]
    if len(goals) == 1:
        return orders
    for _ in range(_ROUNDS):
        changed = False
        for number, (goal, search) in enumerate(zip(goals, searches, strict=True)):
            others = Taken()
            for other, units in enumerate(orders):
                if other != number:
                    others.add(goals[other].costs, goals[other].start, goals[other].target, units)
            before = order_cost(goal.costs, goal.start, orders[number], others)
            order = search.of(goal.start, others)
            if order.cost < before * (1 - _LESS):
                orders[number], changed = order.units, True
        if not changed:
            break
    return orders


__all__ = ["Goal", "Reached", "reach_all", "shared_cost"]
