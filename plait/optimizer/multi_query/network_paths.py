"""Probe orders as paths through the network: those of `greedy`, where the search starts, and back from chosen arcs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from plait.optimizer.multi_query.network import Intermediate, Network
from plait.optimizer.multi_query.patterns import Asked
from plait.optimizer.options import PlanOptions
from plait.optimizer.probe_orders import ProbeOrder, cheapest_extension, choose_orders
from plait.query.masks import positions
from plait.query.model import Query
from plait.stats.model import Statistics


def greedy_paths(
    network: Network, queries: Mapping[str, Query], statistics: Statistics, options: PlanOptions
) -> dict[int, list[int]]:
    """Return for every goal the arcs of a greedy probe order that leads there."""
    nodes = {node: index for index, node in enumerate(network.nodes)}
    arcs = {ends: arc for arc, ends in enumerate(zip(network.tail.tolist(), network.head.tolist(), strict=True))}
    paths: dict[int, list[int]] = {}
    for number, asked in enumerate(network.asked):
        name, aliases = asked.queries[0]
        place = {alias: position for position, alias in enumerate(aliases)}
        for order in choose_orders((queries[name],), statistics, options, cheapest_extension):
            begin = network.member_bits[number][place[order.units[0][0]]]
            mask, visited = 0, []
            for unit in order.units:
                mask |= sum(1 << place[alias] for alias in unit)
                visited.append(nodes[begin, network.content(number, mask)])
            paths[visited[-1]] = [arcs[ends] for ends in pairwise(visited)]
    return paths


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The arc into each node that has one, by node, and the intermediate stores in use; indices of the network."""

    arc_into: Mapping[int, int]
    stores: tuple[int, ...]


def orders_of(network: Network, chosen: Chosen, queries: Mapping[str, Query]) -> tuple[ProbeOrder, ...]:
    """Return the probe orders of all queries, then those that fill intermediate stores."""
    orders = []
    for number, asked in enumerate(network.asked):
        for goal in network.goals[number]:
            bits = network.member_bits[number]
            for name, aliases in asked.queries:
                units = _units(network, chosen, goal, dict(zip(bits, aliases, strict=True)))
                orders.append(ProbeOrder(query=name, units=_in_from_order(units, queries[name])))
    orders.sort(key=lambda order: (order.query, order.units[0]))
    for store in chosen.stores:
        intermediate = network.stores[store].intermediate
        if intermediate is not None:
            orders += _fills(network, chosen, intermediate, queries)
    return tuple(orders)


def _fills(
    network: Network, chosen: Chosen, intermediate: Intermediate, queries: Mapping[str, Query]
) -> list[ProbeOrder]:
    name, aliases = _first_query(network.asked[intermediate.asked])
    members = [aliases[position] for position in positions(intermediate.mask)]
    alias_of = dict(zip(intermediate.member_bits, members, strict=True))
    return [
        ProbeOrder(
            query=name,
            units=_in_from_order(_units(network, chosen, fill, alias_of), queries[name]),
            fills=True,
        )
        for fill in intermediate.fills
    ]


def _first_query(asked: Asked) -> tuple[str, tuple[str, ...]]:
    return asked.queries[0]


def _units(network: Network, chosen: Chosen, node: int, alias_of: Mapping[int, str]) -> list[set[str]]:
    """Return what the path to a node probes, the starting relation first."""
    units: list[set[str]] = []
    while not network.is_root[node]:
        arc = chosen.arc_into[node]
        before = int(network.tail[arc])
        new = network.nodes[node][1] & ~network.nodes[before][1]
        units.append({alias for bit, alias in alias_of.items() if bit & new})
        node = before
    units.append({alias_of[network.nodes[node][0]]})
    return units[::-1]


def _in_from_order(units: list[set[str]], query: Query) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(relation.alias for relation in query.relations if relation.alias in unit) for unit in units)
