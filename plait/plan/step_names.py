"""Names of steps by content: what is measured of a step in one plan is known to every later plan that takes it.

A step is (what has been joined before it, what after it), whatever the order in which that was joined and whichever
relation began: a tuple of R and S that probes T finds as many partners either way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple, TypeAlias

from plait.plan.conditions import Conditions, conditions_text, renamed
from plait.plan.model import Member, Plan, ProbeTree
from plait.plan.relations import member_name
from plait.plan.traversals import conditions_on, path_members

_DIGEST_BYTES = 4


class StepName(NamedTuple):
    """What has been joined before the step, and after it (`joined_name`)."""

    before: str
    after: str


_ByTree: TypeAlias = dict[int, tuple[ProbeTree, tuple[tuple[str, StepName], ...]]]

_RECENT: Final[deque[tuple[Plan, _ByTree]]] = deque(maxlen=4)
"""The last plans, with the names of the steps of their trees."""


def joined_name(members: Sequence[Member], joined_on: Conditions) -> str:
    """Return the name of a join of these members; `joined_on` has their positions in `members`.

    The relations are there for people, in an order of their own; the digest tells selections, windows and predicates.
    """
    positions = sorted(range(len(members)), key=lambda position: members[position].order)
    place = {position: index for index, position in enumerate(positions)}
    ordered = [members[position] for position in positions]
    content = repr([[member.order for member in ordered], conditions_text(renamed(joined_on, place.__getitem__))])
    digest = blake2b(content.encode(), digest_size=_DIGEST_BYTES).hexdigest()
    return f"{'⋈'.join(map(member_name, ordered))}~{digest}"


def named_steps(plan: Plan) -> Iterator[tuple[str, StepName]]:
    """Yield the name of the step on every edge of a plan, by edge.

    Of plans that follow each other most trees are the same, and have their steps named once. An intermediate store is
    known by its content, so no other plan has one that is called alike and is another.
    """
    recent = tuple(_RECENT)  # another thread may plan meanwhile
    named: _ByTree = {}
    for tree in plan.trees:
        known = next((known[id(tree)] for _, known in recent if id(tree) in known), None)
        named[id(tree)] = known if known is not None and known[0] is tree else (tree, tuple(_named(tree, plan)))
    if all(other is not plan for other, _ in recent):
        _RECENT.append((plan, named))
    return (each for _, names in named.values() for each in names)


def _named(tree: ProbeTree, plan: Plan) -> Iterator[tuple[str, StepName]]:
    names = {"": joined_name((tree.start,), frozenset())}
    for path, step in tree.walk():
        steps = (*path, step)
        names[step.edge] = joined_name(path_members(tree.start, steps), conditions_on(plan, steps))
        yield step.edge, StepName(names[path[-1].edge if path else ""], names[step.edge])


__all__ = ["StepName", "joined_name", "named_steps"]
