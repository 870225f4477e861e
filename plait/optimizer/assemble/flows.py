"""Estimate what flows along every edge of a plan.

A step's path fixes everything its numbers depend on (the members and all equalities between them), so a step that
several queries share has one estimate, and an equal plan has equal numbers whatever the queries were called.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from plait.optimizer.assemble.draft import Draft, Flow
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.join_sizes import MemberSizes, arriving, join_size
from plait.plan.model import ProbeTree, Store
from plait.plan.traversals import conditions_of_step, path_members


def flows(trees: Iterable[ProbeTree], stores: tuple[Store, ...], cardinality: Cardinality) -> dict[str, Flow]:
    """Return the flow of every edge."""
    sizes = MemberSizes(stores=stores, cardinality=cardinality)
    by_edge: dict[str, Flow] = {}
    for tree in trees:
        pace = cardinality.pace(sizes.of(tree.start))
        # The join so far by the edge that leads there: each step multiplies what the one before it has.
        reached = {"": (sizes.rows(tree.start), 1)}
        for steps, step in tree.walk():
            size, streams = reached[steps[-1].edge if steps else ""]
            path = path_members(tree.start, steps)
            required = conditions_of_step(sizes.store(step.member.store), step, len(path))
            selectivities = sizes.selectivities(required, (*path, *step.members))
            size_after = join_size((size, sizes.added_rows(step)), selectivities.values())
            streams_after = streams + sizes.streams(step.members)
            endless = sizes.endless(path[1:])
            endless_after = endless + sizes.endless(step.members)
            by_edge[step.edge] = Flow(
                arriving=arriving(size, streams),
                arriving_per_s=arriving(size, streams) * pace,
                results=arriving(size_after, streams_after),
                steady_per_s=arriving(size, 1 + endless) * pace,
                steady_results_per_s=arriving(size_after, 1 + endless_after) * pace,
            )
            reached[step.edge] = size_after, streams_after
    return by_edge


def estimate_flows(draft: Draft) -> Draft:
    """Estimate how many tuples come in on each edge and how many match."""
    return replace(draft, flows=flows(draft.trees, draft.stores, draft.cardinality))
