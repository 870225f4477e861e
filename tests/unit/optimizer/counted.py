"""What a plan sends and finds over given rows, counted tuple by tuple: what estimates are estimates of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from plait.plan.model import Member, Plan, Step

Row: TypeAlias = Mapping[str, int]
"""A tuple: its columns, and as ``at`` when it arrives; no two arrive at once."""


@dataclass(slots=True)
class Count:
    """Tuples that were sent along steps, and tuples that were found there."""

    sent: int = 0
    found: int = 0

    @property
    def work(self) -> int:
        return self.sent + self.found


def passes(row: Row, member: Member) -> bool:
    """Tell whether a member takes a row; conditions compare columns with numbers."""
    return any(
        all(eval(conjunct.sql.replace("`", "").replace("=", "=="), {}, dict(row)) for conjunct in each.conjuncts)
        for each in member.selection.alternatives
    )


def counted(plan: Plan, rows: Mapping[str, Sequence[Row]]) -> Count:
    """Count what a plan without intermediate stores does, every store having one partition."""
    count = Count()
    taken: dict[Member, list[Row]] = {}
    by_key: dict[tuple[Member, tuple[str, ...]], dict[tuple[int, ...], list[Row]]] = {}

    def of(member: Member) -> list[Row]:
        if member not in taken:
            taken[member] = [row for row in rows[plan.store(member.store).source or ""] if passes(row, member)]
        return taken[member]

    def column(member: Member, name: str) -> str:
        return plan.store(member.store).key(name).expression.sql.strip("`")

    def matching(member: Member, columns: tuple[str, ...], values: tuple[int, ...]) -> list[Row]:
        index = by_key.get((member, columns))
        if index is None:
            index = defaultdict(list)
            for row in of(member):
                index[tuple(row[each] for each in columns)].append(row)
            by_key[member, columns] = index
        return index.get(values, [])

    def probe(members: tuple[Member, ...], path: tuple[Row, ...], step: Step) -> None:
        count.sent += 1
        columns = tuple(column(step.member, each.right.name) for each in step.equalities)
        values = tuple(
            path[each.left.at or 0][column(members[each.left.at or 0], each.left.name)] for each in step.equalities
        )
        for row in matching(step.member, columns, values):
            if row["at"] < path[0]["at"]:
                count.found += 1
                for child in step.children:
                    probe((*members, step.member), (*path, row), child)

    for tree in plan.trees:
        for row in of(tree.start):
            for step in tree.children:
                probe((tree.start,), (row,), step)
    return count
