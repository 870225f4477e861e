"""What a plan is asked for beside one that is in force: the difference, and whether it is small enough."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from plait.plan.model import Plan
from plait.query.model import Query

MOST_CHANGED: Final = 0.5
"""Once more than this share of the queries has changed, all are planned anew (paper 004, section 4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryChange:
    """Queries that come, by name, and the names of those that go; one that is replaced is in both."""

    added: tuple[Query, ...]
    dropped: frozenset[str]

    @property
    def count(self) -> int:
        """How many queries are concerned."""
        return len(self.dropped | {query.name for query in self.added})


@dataclass(frozen=True, slots=True, kw_only=True)
class Former:
    """A plan and the queries it answers. `changed`: how many have come or gone since all were last planned at once."""

    plan: Plan
    queries: tuple[Query, ...]
    changed: int = 0

    def change_to(self, queries: Iterable[Query]) -> QueryChange:
        """Return what makes other queries of those of this plan."""
        known = {query.name: query for query in self.queries}
        added = []
        for query in queries:
            same = known.get(query.name)
            if same is query or same == query:
                del known[query.name]
            else:
                added.append(query)
        return QueryChange(
            added=tuple(sorted(added, key=lambda query: query.name)),
            dropped=frozenset(known),
        )

    def is_outdated_by(self, change: QueryChange, queries: int) -> bool:
        """Tell whether so much has changed that all are to be planned anew; `queries`: how many there are then."""
        return self.changed + change.count > MOST_CHANGED * max(queries, len(self.queries))

    def after(self, plan: Plan, queries: tuple[Query, ...]) -> Former:
        """Return what is in force once another plan is, that was made for these queries beside this one."""
        change = self.change_to(queries)
        outdated = self.is_outdated_by(change, len(queries))
        return Former(plan=plan, queries=queries, changed=0 if outdated else self.changed + change.count)


__all__ = ["MOST_CHANGED", "Former", "QueryChange"]
