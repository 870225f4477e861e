"""The cheapest orders of several queries and intermediate stores together, each shared step paid for once.

One goal after the other takes the order that is cheapest beside what the others take, until none can do better alone.
Every round lowers the cost of all, so it ends; it need not be the least there is, as two goals may have to move at once
(`ilp` looks for that).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
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
    def content(self) -> Hashable:
        """Tell goals of one starting relation, whichever query has them, from others."""
        return self.costs.content(self.start, self.target)

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
        joined, tuples, costs = self.goal.start, self.goal.rate, self.goal.costs
        for unit in self.units:
            tuples *= costs.step(joined, unit, costs.origin(self.goal.start)).growth
            joined |= unit
        return tuples


class Arrangement:
    """An order for each of some goals, and the steps these take together. Costs are per second."""

    def __init__(self) -> None:
        self._orders: dict[Goal, Units] = {}
        self._taken: dict[Hashable, Taken] = {}
        self._searches: dict[tuple[QueryCosts, Mask, frozenset[Mask]], BestOrders] = {}

    @property
    def orders(self) -> tuple[Reached, ...]:
        """The orders, in the order in which their goals first came."""
        return tuple(Reached(goal=goal, units=units) for goal, units in self._orders.items())

    def of(self, goal: Goal) -> Units:
        """Return the order that leads to a goal."""
        return self._orders[goal]

    def alone(self, goal: Goal) -> Units:
        """Return the cheapest order if there were no others."""
        return self._search(goal).of(goal.start).units

    def take(self, goal: Goal, units: Units | None = None) -> float:
        """Let a new goal take an order, by default the cheapest beside the others'; return what that costs beyond
        the steps that others take.
        """
        taken = self._taken.setdefault(goal.content, Taken())
        if units is None:
            units = self._search(goal).of(goal.start, taken).units
        cost = goal.rate * order_cost(goal.costs, goal.start, units, taken)
        taken.add(goal.costs, goal.start, goal.target, units)
        self._orders[goal] = units
        return cost

    def leave(self, goal: Goal) -> float:
        """Let a goal go; return what its order costs beyond the steps that others take."""
        units, taken = self._orders.pop(goal), self._taken[goal.content]
        taken.remove(goal.costs, goal.start, goal.target, units)
        return goal.rate * order_cost(goal.costs, goal.start, units, taken)

    def restore(self, orders: Iterable[Reached]) -> None:
        """Let goals have these orders again."""
        for each in orders:
            now = self._orders.get(each.goal)
            if now != each.units:
                if now is not None:
                    self.leave(each.goal)
                self.take(each.goal, each.units)

    def improve(self, goals: Iterable[Goal]) -> float:
        """Let one goal after the other take the order that is cheapest beside the others', until none of them can do
        better alone; return what that saves. Those of wide queries keep theirs.
        """
        asked = tuple(goal for goal in goals if not goal.costs.is_wide)
        waiting, saved = asked, 0.0
        for _ in range(_ROUNDS):
            moved = set[Hashable]()
            for goal in waiting:
                gain = self._improve(goal)
                saved += gain
                moved |= {goal.content} if gain > 0 else set()
            waiting = tuple(goal for goal in asked if goal.content in moved)
            if not waiting:
                break
        return saved

    def _improve(self, goal: Goal) -> float:
        """Return what a better order saves; 0 if there is none."""
        units, taken = self._orders[goal], self._taken[goal.content]
        taken.remove(goal.costs, goal.start, goal.target, units)
        before = order_cost(goal.costs, goal.start, units, taken)
        order = self._search(goal).of(goal.start, taken)
        is_better = order.cost < before * (1 - _LESS)
        if is_better:
            units = order.units
        taken.add(goal.costs, goal.start, goal.target, units)
        self._orders[goal] = units
        return goal.rate * (before - order.cost) if is_better else 0.0

    def _search(self, goal: Goal) -> BestOrders:
        asked = goal.costs, goal.target, goal.costs.kept
        if asked not in self._searches:
            self._searches[asked] = BestOrders(goal.costs, goal.target)
        return self._searches[asked]


def arranged(orders: Iterable[tuple[Goal, Units | None]]) -> Arrangement:
    """Return goals with these orders, or the cheapest that each has by itself where there is none, made better
    together.
    """
    arrangement, goals = Arrangement(), list[Goal]()
    for goal, units in orders:
        arrangement.take(goal, arrangement.alone(goal) if units is None else units)
        goals.append(goal)
    arrangement.improve(goals)
    return arrangement


def shared_cost(reached: Sequence[Reached]) -> float:
    """Return what all orders cost per second, each step that several take once."""
    taken: dict[Hashable, Taken] = {}
    cost = 0.0
    for each in reached:
        goal = each.goal
        tree = taken.setdefault(goal.content, Taken())
        cost += goal.rate * order_cost(goal.costs, goal.start, each.units, tree)
        tree.add(goal.costs, goal.start, goal.target, each.units)
    return cost


__all__ = ["Arrangement", "Goal", "Reached", "arranged", "shared_cost"]
