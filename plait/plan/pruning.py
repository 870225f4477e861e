"""Parts of a plan: what only some of its queries need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from plait.plan.model import Member, Output, Plan, ProbeTree, Step

Wanted = Callable[[Member, Output], bool]


def last_starts(plan: Plan, queries: frozenset[str]) -> Plan:
    """Return the plan with each of `queries` answered from one starting relation only, that of the highest rank.

    Over tuples that are all there already, as when a query is filled up with the past, this relation alone finds every
    result once: among members that arrived together the one of the highest rank counts as the last.
    """
    last: dict[str, tuple[int, int]] = {}
    for tree in plan.trees:
        for output in _outputs(tree):
            last[output.query] = max(last.get(output.query, (-1, -1)), plan.rank(tree.start))

    def is_wanted(start: Member, output: Output) -> bool:
        return output.query in queries and plan.rank(start) == last[output.query]

    trees = (_prune_tree(tree, is_wanted) for tree in plan.trees)
    return replace(plan, trees=tuple(tree for tree in trees if tree.outputs or tree.children))


def _outputs(tree: ProbeTree) -> tuple[Output, ...]:
    return tree.outputs + tuple(output for _, step in tree.walk() for output in step.outputs)


def _prune_tree(tree: ProbeTree, is_wanted: Wanted) -> ProbeTree:
    return replace(
        tree,
        outputs=tuple(output for output in tree.outputs if is_wanted(tree.start, output)),
        children=_prune(tree.start, tree.children, is_wanted),
    )


def _prune(start: Member, steps: tuple[Step, ...], is_wanted: Wanted) -> tuple[Step, ...]:
    """Drop outputs that are not wanted, and the steps that then lead nowhere."""
    kept = []
    for step in steps:
        outputs = tuple(output for output in step.outputs if is_wanted(start, output))
        children = _prune(start, step.children, is_wanted)
        if outputs or children:
            kept.append(replace(step, outputs=outputs, children=children))
    return tuple(kept)
