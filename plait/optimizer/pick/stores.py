"""Which intermediate stores pay: those that save more than it costs to fill and to keep them.

From none on, the store is added or taken away that lowers the cost of all orders most, until nothing does. A store is
one whichever query has it, and filled as the first of them by name would. What is weighed together is limited to
`_MOST` stores, those that keep least: where many relations are joined there are too many to try, and large stores
rarely pay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from plait.optimizer.estimate.storage_budget import StorageBudget
from plait.optimizer.options import ProbeCosts
from plait.optimizer.pick.goals import Goal, Reached, reach_all, shared_cost
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """All orders with some intermediate stores, and what they cost per second with keeping these."""

    orders: tuple[Reached, ...]
    cost: float


def choose_stores(queries: Sequence[QueryCosts], budget: StorageBudget, costs: ProbeCosts) -> Choice:
    """Return the orders of all queries, and of the intermediate stores they use."""
    candidates = {each.id: each for each in _candidates(queries, budget)}
    kept: frozenset[str] = frozenset()
    best = _with_stores(queries, (), costs)
    while candidates:
        tried = [
            (_with_stores(queries, [candidates[store] for store in sorted(stores)], costs), stores)
            for stores in _neighbours(kept, candidates, budget.left)
        ]
        if not tried:
            break
        choice, stores = min(tried, key=lambda each: (each[0].cost, len(each[1]), sorted(each[1])))
        if not choice.cost < best.cost * (1 - _GAIN):
            break
        best, kept = choice, stores
    return best


def _neighbours(kept: frozenset[str], candidates: Mapping[str, Candidate], left: float) -> Iterator[frozenset[str]]:
    """Yield what stores there are with one more or less, within the budget."""
    for store in sorted(candidates):
        changed = kept ^ {store}
        if sum(candidates[each].size for each in sorted(changed)) <= left:
            yield changed


def _candidates(queries: Sequence[QueryCosts], budget: StorageBudget) -> list[Candidate]:
    masks: dict[str, dict[int, Mask]] = {}
    for number, costs in enumerate(queries):
        for mask in costs.connected():
            if _is_probed(costs, mask):
                masks.setdefault(costs.store(mask), {}).setdefault(number, mask)
    candidates = []
    for store, by_query in masks.items():
        number, mask = min(by_query.items())
        costs = queries[number]
        rows = costs.size(mask)
        width = sum(budget.width_bytes[costs.query.relation(alias).source] for alias in costs.among(mask))
        size = budget.size(rows, rows * width)
        if 0 < size <= budget.left:  # one that is thought to be empty is not known well enough
            candidates.append((rows, Candidate(id=store, masks=tuple(sorted(by_query.items())), size=size)))
    return [candidate for _, candidate in sorted(candidates, key=lambda each: (each[0], each[1].id))[:_MOST]]


def _is_probed(costs: QueryCosts, mask: Mask) -> bool:
    """Tell whether anything arrives beside a store."""
    return bool(costs.streams & ~mask)


def _with_stores(queries: Sequence[QueryCosts], stores: Sequence[Candidate], costs: ProbeCosts) -> Choice:
    """Return the cheapest orders with these stores, less those that none of them probes."""
    while True:
        for number, query in enumerate(queries):
            query.kept = frozenset(mask for store in stores for owner, mask in store.masks if owner == number)
        orders = reach_all((*_answers(queries), *_fills(queries, stores)))
        used = _used(orders)
        if all(store.id in used for store in stores):
            break
        stores = [store for store in stores if store.id in used]
    keeping = sum(each.tuples for each in orders if each.goal.fills) * costs.keep
    return Choice(orders=orders, cost=shared_cost(orders) + keeping)


def _used(orders: Iterable[Reached]) -> frozenset[str]:
    return frozenset(each.goal.costs.store(unit) for each in orders for unit in each.units if unit & (unit - 1))


def _answers(queries: Sequence[QueryCosts]) -> Iterator[Goal]:
    for costs in queries:
        for start in positions(costs.streams):
            yield Goal(costs=costs, start=1 << start, target=costs.everything)


def _fills(queries: Sequence[QueryCosts], stores: Sequence[Candidate]) -> Iterator[Goal]:
    for store in stores:
        number, mask = store.masks[0]
        costs = queries[number]
        for start in positions(mask & costs.streams):
            yield Goal(costs=costs, start=1 << start, target=mask, fills=True)


__all__ = ["Candidate", "Choice", "choose_stores"]
