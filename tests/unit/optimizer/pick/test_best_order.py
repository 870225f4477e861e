"""The order found is the cheapest of all, by trying all, whatever others take already."""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterator
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.optimizer.pick.best_order import BestOrders, StepCost, Taken, Units, covered, order_cost
from plait.query.masks import Mask, positions


class RandomCosts:
    """A random join graph with random costs by set; some sets of two have a store."""

    def __init__(self, rng: random.Random, relations: int) -> None:
        self.relations = relations
        self.near = [0] * relations
        for position in range(1, relations):
            self._join(position, rng.randrange(position))
        for _ in range(rng.randrange(relations)):
            self._join(*rng.sample(range(relations), 2))
        self.stores = [
            1 << left | 1 << right
            for left in range(relations)
            for right in range(left)
            if self.near[left] >> right & 1 and rng.random() < 0.3
        ]
        self._rng, self._steps = rng, dict[tuple[Mask, Mask, Mask], StepCost]()
        self.mattering = rng.choice((0, rng.randrange(1 << relations)))

    def _join(self, left: int, right: int) -> None:
        self.near[left] |= 1 << right
        self.near[right] |= 1 << left

    def following(self, joined: Mask, target: Mask) -> Units:
        reached = 0
        for position in positions(joined):
            reached |= self.near[position]
        near = reached & target & ~joined
        units = [1 << position for position in positions(near)]
        return (*units, *(store for store in self.stores if store & ~joined & target == store and store & near))

    def step(self, joined: Mask, unit: Mask, start: Mask = 0) -> StepCost:
        if (joined, unit, start) not in self._steps:
            self._steps[joined, unit, start] = StepCost(
                self._rng.choice((0.5, 1.0, 7.0)), self._rng.choice((0.0, 0.3, 1.0, 9.0))
            )
        return self._steps[joined, unit, start]

    def origin(self, start: Mask) -> Mask:
        return start & self.mattering

    def content(self, joined: Mask, target: Mask) -> Hashable:
        return joined


def every_order(costs: RandomCosts, joined: Mask, target: Mask) -> Iterator[Units]:
    """Yield every order there is, as algorithm 4 of paper 003 does."""
    if joined == target:
        yield ()
        return
    for unit in costs.following(joined, target):
        for rest in every_order(costs, joined | unit, target):
            yield (unit, *rest)


@given(st.integers(0, 10**9), st.integers(2, 6))
@settings(max_examples=150, deadline=None)
def test_no_order_is_cheaper_than_the_one_found_whatever_is_taken(seed: int, relations: int) -> None:
    rng = random.Random(seed)
    costs = RandomCosts(rng, relations)
    target = (1 << relations) - 1
    search = BestOrders(costs, target)
    for start in (1 << position for position in range(relations)):
        orders = list(every_order(costs, start, target))
        taken = Taken()
        for units in rng.sample(orders, min(rng.randrange(3), len(orders))):
            taken.add(costs, start, target, units[: rng.randint(1, len(units))])
        found = search.of(start, taken)
        least = min(order_cost(costs, start, units, taken) for units in orders)
        assert found.cost == pytest.approx(least)
        assert order_cost(costs, start, found.units, taken) == pytest.approx(least)
        assert covered(start, found.units) == target


def test_of_seven_relations_all_joined_with_each_other_it_is_the_cheapest_too() -> None:
    costs = RandomCosts(random.Random(7), 7)
    costs.near = [0b1111111 ^ 1 << position for position in range(7)]
    costs.stores = []
    found = BestOrders(costs, 0b1111111).of(1)
    orders = (tuple(1 << position for position in order) for order in permutations(range(1, 7)))
    assert found.cost == pytest.approx(min(order_cost(costs, 1, units) for units in orders))


def test_what_others_take_costs_nothing_as_far_as_they_go_the_same_way() -> None:
    costs = RandomCosts(random.Random(1), 3)
    costs.near, costs.stores, costs.mattering = [0b110, 0b101, 0b011], [], 0
    for joined, unit in ((1, 2), (1, 4), (3, 4), (5, 2)):
        costs._steps[joined, unit, 0] = StepCost(price=10.0, growth=2.0)
    costs._steps[1, 2, 0] = StepCost(price=11.0, growth=2.0)
    alone = BestOrders(costs, 7).of(1)
    assert (alone.units, alone.cost) == ((4, 2), 30.0)
    taken = Taken()
    taken.add(costs, 1, 7, (2,))
    beside = BestOrders(costs, 7).of(1, taken)
    assert (beside.units, beside.cost) == ((2, 4), 20.0)
    taken.add(costs, 1, 7, (4, 2))
    assert BestOrders(costs, 7).of(1, taken).cost == 0.0
