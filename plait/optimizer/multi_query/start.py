"""Where the search starts: the probe orders of `greedy`, as paths through the network."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from plait.optimizer.multi_query.network import Network
from plait.optimizer.options import PlanOptions
from plait.optimizer.probe_orders import cheapest_extension, choose_orders
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
