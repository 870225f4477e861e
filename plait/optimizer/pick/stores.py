"""Which intermediate stores pay: those that save more than it costs to fill and to keep them.

From none on, the store is added that lowers the cost of all orders most, until none is worth having; then those go that
have become superfluous. A store is one whichever query has it, and filled as the first of them by name would. What is
weighed is limited to `_MOST` stores, those that keep least for each query that has them: where many relations are
joined there are too many to try, and large stores rarely pay.

A store whose size nobody knows is not weighed at all. It would be filled with whatever there is, on a guess; once a
batch has arrived more is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from plait.optimizer.estimate.storage_budget import StorageBudget
from plait.optimizer.options import ProbeCosts
from plait.optimizer.pick.best_order import Units
from plait.optimizer.pick.goals import Arrangement, Goal, Reached, arranged, shared_cost
from plait.optimizer.pick.query_costs import QueryCosts
from plait.query.masks import Mask, positions

_MOST = 24
_GAIN = 0.01
"""A store that saves less than this share is not worth having: it has to be filled, and may have to go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An intermediate store, with what it joins by query, and what it takes of the storage budget."""

    id: str
    masks: tuple[tuple[int, Mask], ...]
    size: float

    @property
    def queries(self) -> frozenset[int]:
        """The queries that have it."""
        return frozenset(number for number, _ in self.masks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """All orders with some intermediate stores, and what they cost per second with keeping these."""

    orders: tuple[Reached, ...]
    cost: float


def choose_stores(
    queries: Sequence[QueryCosts], budget: StorageBudget, costs: ProbeCosts, batch_s: float | None = None
) -> Choice:
    """Return the orders of all queries, and of the intermediate stores they use. `batch_s`: event time of a batch."""
    without = _answered(queries)
    first = Choice(orders=without.orders, cost=shared_cost(without.orders))
    candidates = _candidates(queries, budget)
    if not candidates:
        return first
    kept = _Kept(queries, without, costs, batch_s)
    _add_worthwhile(kept, candidates, budget.left, first.cost * _GAIN)
    _drop_superfluous(kept, first.cost * _GAIN)
    choice = kept.choice()
    return choice if choice.cost < first.cost * (1 - _GAIN) else first


def _answered(queries: Sequence[QueryCosts]) -> Arrangement:
    """Return orders of all queries without intermediate stores: what comes of the cheapest of each by itself, or of
    those of `greedy` if that is cheaper, as it may be where queries share steps. Wide queries have the latter.
    """
    for query in queries:
        query.kept = frozenset()
    goals = [
        Goal(costs=costs, start=1 << start, target=costs.everything)
        for costs in queries
        for start in positions(costs.streams)
    ]
    alone = arranged((goal, _greedy(goal) if goal.costs.is_wide else None) for goal in goals)
    if len({goal.content for goal in goals}) == len(goals):
        return alone
    greedy = arranged((goal, _greedy(goal)) for goal in goals)
    return greedy if shared_cost(greedy.orders) < shared_cost(alone.orders) else alone


def _greedy(goal: Goal) -> Units:
    return goal.costs.greedy(goal.start)


class _Kept:
    """Orders beside the intermediate stores there are, which come and go one at a time."""

    def __init__(
        self, queries: Sequence[QueryCosts], arrangement: Arrangement, costs: ProbeCosts, batch_s: float | None
    ) -> None:
        self._queries, self._arrangement, self._costs = queries, arrangement, costs
        self._standing = costs.of_stores(1, batch_s)
        self.stores: dict[str, Candidate] = {}
        self._fills: dict[str, tuple[Goal, ...]] = {}

    @property
    def size(self) -> float:
        """What all stores take of the budget."""
        return sum(self.stores[store].size for store in sorted(self.stores))

    def gain(self, candidate: Candidate) -> float:
        """Return what a store would save, less filling and keeping it. Everything is left as it was."""
        before = self._arrangement.orders
        gain = self.add(candidate)
        self._undo(candidate, before)
        return gain

    def loss(self, candidate: Candidate) -> float:
        """Return what a store saves that is there. Everything is left as it was."""
        before = self._arrangement.orders
        loss = -self.drop(candidate)
        for number, mask in candidate.masks:
            self._queries[number].kept |= {mask}
        self.stores[candidate.id] = candidate
        self._fills[candidate.id] = tuple(_fills(self._queries, candidate))
        self._restore(before)
        return loss

    def add(self, candidate: Candidate) -> float:
        """Add a store, and let the orders use it that it makes cheaper; return what that saves."""
        concerned = self._of(candidate.queries)
        for number, mask in candidate.masks:
            self._queries[number].kept |= {mask}
        fills = self._fills[candidate.id] = tuple(_fills(self._queries, candidate))
        self.stores[candidate.id] = candidate
        spent = sum(self._arrangement.take(goal) for goal in fills)
        saved = self._arrangement.improve((*concerned, *fills))
        return saved - spent - self._keeping(fills) - self._standing

    def drop(self, candidate: Candidate) -> float:
        """Let a store go, and the orders that used it go another way; return what that saves, less than 0 mostly."""
        saved = self._keeping(self._fills[candidate.id]) + self._standing
        for goal in self._fills.pop(candidate.id):
            saved += self._arrangement.leave(goal)
        del self.stores[candidate.id]
        masks = dict(candidate.masks)
        for number, mask in candidate.masks:
            self._queries[number].kept -= {mask}
        concerned = self._of(candidate.queries)
        numbers = {query: number for number, query in enumerate(self._queries)}
        for goal in concerned:
            if masks[numbers[goal.costs]] in self._arrangement.of(goal):
                saved += self._arrangement.leave(goal) - self._arrangement.take(goal)
        return saved + self._arrangement.improve(concerned)

    def choice(self) -> Choice:
        """Return the orders, made better together, without stores that none of them asks any more."""
        while True:
            self._arrangement.improve([each.goal for each in self._arrangement.orders])
            orders = self._arrangement.orders
            asked = {each.goal.costs.store(unit) for each in orders for unit in each.units if unit & (unit - 1)}
            unused = [self.stores[store] for store in sorted(self.stores.keys() - asked)]
            if not unused:
                break
            for candidate in unused:
                self.drop(candidate)
        fills = [each.goal for each in orders if each.goal.fills]
        cost = shared_cost(orders) + self._keeping(fills) + len(self.stores) * self._standing
        return Choice(orders=orders, cost=cost)

    def _of(self, queries: frozenset[int]) -> list[Goal]:
        costs = {self._queries[number] for number in queries}
        return [each.goal for each in self._arrangement.orders if each.goal.costs in costs]

    def _keeping(self, fills: Iterable[Goal]) -> float:
        arrangement = self._arrangement
        return sum(Reached(goal=goal, units=arrangement.of(goal)).tuples for goal in fills) * self._costs.keep

    def _undo(self, candidate: Candidate, before: Sequence[Reached]) -> None:
        for goal in self._fills.pop(candidate.id):
            self._arrangement.leave(goal)
        del self.stores[candidate.id]
        for number, mask in candidate.masks:
            self._queries[number].kept -= {mask}
        self._restore(before)

    def _restore(self, before: Sequence[Reached]) -> None:
        self._arrangement.restore(before)


def _add_worthwhile(kept: _Kept, candidates: Sequence[Candidate], left: float, least: float) -> None:
    """Add the store that saves most, one after the other. What the others save changes where they concern the same
    queries.
    """
    gains = {each.id: kept.gain(each) for each in candidates}
    by_id = {each.id: each for each in candidates}
    while gains:
        fitting = [store for store in gains if kept.size + by_id[store].size <= left]
        best = max(fitting, key=lambda store: (gains[store], store), default=None)
        if best is None or not gains[best] > least:
            return
        chosen = by_id[best]
        kept.add(chosen)
        del gains[best]
        for store in gains:
            if by_id[store].queries & chosen.queries:
                gains[store] = kept.gain(by_id[store])


def _drop_superfluous(kept: _Kept, least: float) -> None:
    """Let stores go that are not worth having any more beside those that came after them."""
    for store in sorted(kept.stores):
        candidate = kept.stores[store]
        if not kept.loss(candidate) > least:
            kept.drop(candidate)


def _candidates(queries: Sequence[QueryCosts], budget: StorageBudget) -> list[Candidate]:
    masks: dict[str, dict[int, Mask]] = {}
    for number, costs in enumerate(queries):
        for mask in costs.connected():
            if _is_probed(costs, mask) and costs.knows_size(mask):
                masks.setdefault(costs.store(mask), {}).setdefault(number, mask)
    candidates = []
    for store, by_query in masks.items():
        number, mask = min(by_query.items())
        costs = queries[number]
        rows = costs.size(mask)
        width = sum(budget.width_bytes[costs.query.relation(alias).source] for alias in costs.among(mask))
        size = budget.size(rows, rows * width)
        if 0 < size <= budget.left:  # one that is thought to be empty is not known well enough
            ranked = rows / len(by_query), store
            candidates.append((ranked, Candidate(id=store, masks=tuple(sorted(by_query.items())), size=size)))
    return [candidate for _, candidate in sorted(candidates, key=lambda each: each[0])[:_MOST]]


def _is_probed(costs: QueryCosts, mask: Mask) -> bool:
    """Tell whether anything arrives beside a store."""
    return bool(costs.streams & ~mask)


def _fills(queries: Sequence[QueryCosts], store: Candidate) -> Iterator[Goal]:
    number, mask = store.masks[0]
    costs = queries[number]
    for start in positions(mask & costs.streams):
        yield Goal(costs=costs, start=1 << start, target=mask, fills=True)


__all__ = ["Candidate", "Choice", "choose_stores"]
