"""Probe orders: what a strategy decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from plait.optimizer.cardinality import Cardinality
from plait.optimizer.cost import JoinSizes
from plait.optimizer.graph import candidates, starts
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


Choice: TypeAlias = Callable[[JoinSizes, tuple[str, ...], tuple[str, ...]], str]
"""(sizes, joined so far, candidates in canonical order) → the candidate probed next."""


def choose_orders(
    queries: Iterable[Query], statistics: Statistics, options: PlanOptions, choose: Choice
) -> tuple[ProbeOrder, ...]:
    """Extend every starting relation of every query by one choice after the other."""
    cardinality = Cardinality(statistics=statistics)
    return tuple(
        ProbeOrder(query=query.name, units=tuple((alias,) for alias in _extend(sizes, start, choose)))
        for query in queries
        for sizes in (JoinSizes(query, cardinality, options),)
        for start in starts(query)
    )


def _extend(sizes: JoinSizes, start: str, choose: Choice) -> tuple[str, ...]:
    joined: tuple[str, ...] = (start,)
    while len(joined) < len(sizes.query.relations):
        joined = (*joined, choose(sizes, joined, candidates(sizes.query, joined)))
    return joined
