"""Probe orders: what a strategy decides."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.join_sizes import JoinSizes
from plait.optimizer.options import PlanOptions
from plait.query.model import Query
from plait.stats.model import Statistics


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeOrder:
    """⟨R, S, TU⟩ of one query: what is probed one after the other, as tuples of aliases in FROM order.

    The first unit is the starting relation alone; a later one of several aliases is the intermediate store of these
    relations. An order with `fills` does not answer the query: its results are kept in the intermediate store of the
    relations it covers.
    """

    query: str
    units: tuple[tuple[str, ...], ...]
    fills: bool = False


def may_follow(query: Query, joined: Collection[str]) -> tuple[str, ...]:
    """Return the relations that may be probed next, in canonical order.

    Connected ones if there are any; otherwise all that remain, which only an explicit CROSS JOIN brings about.
    """
    remaining = [relation.alias for relation in query.relations if relation.alias not in joined]
    return tuple(sorted(query.graph.neighbours_of(joined) or remaining, key=query.canonical))


ChooseNext: TypeAlias = Callable[[JoinSizes, tuple[str, ...], tuple[str, ...]], str]
"""(sizes, joined so far, candidates in canonical order) → the candidate probed next."""


def choose_orders(
    queries: Iterable[Query], statistics: Statistics, options: PlanOptions, choose: ChooseNext
) -> tuple[ProbeOrder, ...]:
    """Extend every starting relation of every query by one choice after the other."""
    cardinality = Cardinality(statistics=statistics)
    return tuple(
        ProbeOrder(query=query.name, units=tuple((alias,) for alias in extended(sizes, start, choose)))
        for query in queries
        for sizes in (JoinSizes(query, cardinality, options),)
        for start in query.starts
    )


def extended(sizes: JoinSizes, start: str, choose: ChooseNext) -> tuple[str, ...]:
    """Return the relations in the order in which they are probed, by one choice after the other."""
    joined: tuple[str, ...] = (start,)
    while len(joined) < len(sizes.query.relations):
        joined = (*joined, choose(sizes, joined, may_follow(sizes.query, joined)))
    return joined


def cheapest_extension(sizes: JoinSizes, joined: tuple[str, ...], candidates: tuple[str, ...]) -> str:
    """Choose the Rj for which some Rk after it minimizes |X|·N(Rj) + |X ⋈ Rj|·N(Rk); ties: canonical.

    The paper lets Rk be any remaining relation; here it must be one that may be probed after Rj, like Rj itself.
    """
    before = sizes.size(frozenset(joined))

    def cost(alias: str) -> float:
        extended = (*joined, alias)
        following = min((sizes.parallelism(later) for later in may_follow(sizes.query, extended)), default=0)
        return before * sizes.parallelism(alias) + sizes.size(frozenset(extended)) * following

    return min(candidates, key=cost)
