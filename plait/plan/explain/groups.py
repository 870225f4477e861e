"""Groups: queries that take different rows of a relation, and have it joined once, as wide as any of them needs it."""

from __future__ import annotations

from dataclasses import dataclass

from plait.plan.model import Member, Plan
from plait.plan.traversals import endings, path_members


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Queries, and the relations that are joined for all of them, each wider than some of them take it."""

    queries: tuple[str, ...]
    members: tuple[Member, ...]


def groups_of(plan: Plan) -> tuple[Group, ...]:
    """Return the groups of a plan, those of most queries first."""
    users: dict[Member, set[str]] = {}
    wide = set[Member]()
    for start, steps, output in endings(plan):
        path = path_members(start, steps)
        for member in path:
            users.setdefault(member, set()).add(output.query)
        wide.update(path[each.position] for each in output.residual_filters)
    members: dict[tuple[str, ...], list[Member]] = {}
    for member in sorted(wide, key=lambda member: member.order):
        members.setdefault(tuple(sorted(users[member])), []).append(member)
    found = (Group(queries=queries, members=tuple(shared)) for queries, shared in members.items())
    return tuple(sorted(found, key=lambda group: (-len(group.queries), group.queries)))


__all__ = ["Group", "groups_of"]
