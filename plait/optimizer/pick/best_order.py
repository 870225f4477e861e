"""The cheapest way to join one tuple with all the others (paper 003, equations 1 to 3 and algorithm 3).

What a tuple costs from here on depends on what it has been joined with, not on the order in which: so the cheapest rest
is remembered by set of relations, of which there are 2ⁿ, not by sequence, of which there are n!.

    C(X) = min over what may follow of  price(X, next) + growth(X, next) · C(X ∪ next)

That holds for one starting relation. Where it does not matter which one that is, all of them have the same rests.

A departure from the paper's equation 8, which goes on once for a tuple that matches at all, with a list of partners:
here every match is a tuple of its own and goes on by itself, so γ·C becomes γ·μ·C. `growth` is that γ·μ, `price` the
rest of equation 8.

Steps that others take already cost nothing more (`Taken`). That does depend on the sequence: two orders share a step
only if they have come the same way. But a way that has once left the others never meets them again, so sequences are
looked at only as far as others have gone.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Protocol, TypeAlias

from plait.query.masks import Mask

Units: TypeAlias = tuple[Mask, ...]
"""What is probed one after the other: single relations, or those of an intermediate store."""


@dataclass(frozen=True, slots=True)
class StepCost:
    """What one tuple costs on a step, and how many tuples go on from there."""

    price: float
    growth: float


class Costs(Protocol):
    """What may be probed, and what that costs, by what has been joined."""

    def following(self, joined: Mask, target: Mask) -> Units:
        """Return what may be probed next on the way to `target`, in canonical order."""

    def step(self, joined: Mask, unit: Mask, start: Mask = 0) -> StepCost:
        """Return what one tuple costs that probes `unit`; `start`: the relation it began with, where that matters."""

    def origin(self, start: Mask) -> Mask:
        """Return the relation where it matters that a tuple began with it, else 0."""

    def content(self, joined: Mask, target: Mask) -> Hashable:
        """Return what has been joined, by content, as orders to `target` and to what others want may share it."""


@dataclass(slots=True)
class Taken:
    """The steps that other orders of the same starting relation take, as a tree: what follows on each, by content, and
    how many `orders` take that step.
    """

    after: dict[Hashable, Taken] = field(default_factory=dict)
    orders: int = 0

    def add(self, costs: Costs, start: Mask, target: Mask, units: Units) -> None:
        """Take the steps of an order on the way to a target."""
        here, joined = self, start
        for unit in units:
            joined |= unit
            here = here.after.setdefault(costs.content(joined, target), Taken())
            here.orders += 1

    def remove(self, costs: Costs, start: Mask, target: Mask, units: Units) -> None:
        """Let go of an order that was added; steps that no other takes are gone."""
        here, joined = self, start
        for unit in units:
            joined |= unit
            content = costs.content(joined, target)
            following = here.after[content]
            following.orders -= 1
            if not following.orders:
                del here.after[content]
            here = following


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An order from a starting relation to a target, and what it costs by starting tuple beyond what others take."""

    cost: float
    units: Units


class BestOrders:
    """The cheapest orders to one target, whatever the start; remembers the cheapest rest of every set."""

    def __init__(self, costs: Costs, target: Mask) -> None:
        self._costs, self._target = costs, target
        self._rest: dict[tuple[Mask, Mask], tuple[float, Mask]] = {}

    def of(self, start: Mask, taken: Taken | None = None) -> Order:
        """Return the cheapest order from `start`; of equal ones the canonical first."""
        units: list[Mask] = []
        joined, here, origin = start, taken, self._costs.origin(start)
        cost = self._beside(start, taken, origin)[0] if taken is not None else self.rest(start, origin)
        while joined != self._target:
            if here is not None and here.after:
                _, unit = self._beside(joined, here, origin)
                here = here.after.get(self._costs.content(joined | unit, self._target))
            else:
                here, unit = None, self._best(joined, origin)[1]
            units.append(unit)
            joined |= unit
        return Order(cost=cost, units=tuple(units))

    def rest(self, joined: Mask, origin: Mask = 0) -> float:
        """Return what a tuple costs from here to the target, if nobody else goes there."""
        return self._best(joined, origin)[0]

    def _best(self, joined: Mask, origin: Mask) -> tuple[float, Mask]:
        if joined == self._target:
            return 0.0, 0
        known = self._rest.get((joined, origin))
        if known is None:
            known = min(
                (
                    (step.price + step.growth * self.rest(joined | unit, origin), unit)
                    for unit in self._costs.following(joined, self._target)
                    for step in (self._costs.step(joined, unit, origin),)
                ),
                key=lambda way: way[0],
            )
            self._rest[joined, origin] = known
        return known

    def _beside(self, joined: Mask, taken: Taken, origin: Mask) -> tuple[float, Mask]:
        """Return the cheapest rest where others have come the same way, and what it probes next."""
        if joined == self._target or not taken.after:
            return self._best(joined, origin)
        prices = []
        for unit in self._costs.following(joined, self._target):
            step, shared = (
                self._costs.step(joined, unit, origin),
                taken.after.get(self._costs.content(joined | unit, self._target)),
            )
            if shared is None:
                prices.append((step.price + step.growth * self.rest(joined | unit, origin), unit))
            else:
                prices.append((step.growth * self._beside(joined | unit, shared, origin)[0], unit))
        return min(prices, key=lambda each: each[0])


def order_cost(costs: Costs, start: Mask, units: Units, taken: Taken | None = None) -> float:
    """Return what one starting tuple costs on an order beyond the steps that others take."""
    joined, tuples, cost, here, target = start, 1.0, 0.0, taken, covered(start, units)
    origin = costs.origin(start)
    for unit in units:
        step = costs.step(joined, unit, origin)
        here = None if here is None else here.after.get(costs.content(joined | unit, target))
        cost += 0.0 if here is not None else tuples * step.price
        tuples *= step.growth
        joined |= unit
    return cost


def covered(start: Mask, units: Units) -> Mask:
    """Return all that an order joins."""
    return reduce(or_, units, start)


__all__ = ["BestOrders", "Costs", "Order", "StepCost", "Taken", "Units", "covered", "order_cost"]
