"""In which order the trees of a batch are walked.

A tuple of this batch finds an intermediate result of this batch if all its parts rank lower (`Plan.rank`), so the trees
that make such results are walked before: a tree comes one phase after the last tree of lower rank that fills a store it
probes. Without intermediate stores there is one phase.
"""

from __future__ import annotations

from collections import defaultdict

from plait.plan.model import Plan, ProbeTree
from plait.plan.traversals import fillings


def phases(plan: Plan) -> tuple[tuple[int, ...], ...]:
    """Return the numbers of the trees, phase by phase."""
    fillers: dict[str, set[int]] = defaultdict(set)
    numbers = {tree.start: number for number, tree in enumerate(plan.trees)}
    for start, _, fill in fillings(plan):
        fillers[fill.store].add(numbers[start])
    found: dict[int, int] = {}
    # A tree waits for trees of lower rank only, so in the order of ranks every tree finds what it waits for.
    for number in sorted(range(len(plan.trees)), key=lambda number: plan.rank(plan.trees[number].start)):
        tree = plan.trees[number]
        waits = (filler for store in _probed(tree) for filler in fillers[store])
        found[number] = max((found[other] + 1 for other in waits if _ranks_lower(plan, other, number)), default=0)
    count = max(found.values(), default=-1) + 1
    return tuple(tuple(number for number in sorted(found) if found[number] == phase) for phase in range(count))


def _probed(tree: ProbeTree) -> set[str]:
    return {step.member.store for _, step in tree.walk() if step.parts}


def _ranks_lower(plan: Plan, one: int, other: int) -> bool:
    return plan.rank(plan.trees[one].start) < plan.rank(plan.trees[other].start)
