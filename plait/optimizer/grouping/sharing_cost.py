"""What it costs to join for several queries at once (paper 004, equations 1 and 2).

    COST(S1 ⋈ S2) = Crd(S1) + Crd(S2) + min(distinct keys) + Crd(S1 ⋈ S2)

Crd of a relation of several queries counts the rows that any of them takes: what equation 1 sums up by inclusion and
exclusion, and a sample of query sets shows at once. Two departures: every row that is found counts, not only those at a
sink, since a step of a probe order hands on rows and not lists of them; and all is counted per second of event time, as
queries that share a join may have different windows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from plait.optimizer.assemble.covering import widest_selection
from plait.optimizer.estimate.cardinality import Cardinality, Extent
from plait.optimizer.grouping.join_classes import JoinClass, Use
from plait.plan.conditions import key_pairs
from plait.plan.model import Member
from plait.plan.relations import widest_window


def widest(members: Iterable[Member]) -> Member:
    """Return a member that takes whatever one of these takes, all of one relation."""
    listed = list(members)
    return replace(
        listed[0],
        selection=widest_selection(
            part for member in listed for part in (member.selection.any_of or (member.selection,))
        ),
        window_us=widest_window(member.window_us for member in listed),
    )


class SharingCost:
    """The costs of joins for several queries at once, tables being those `tables`."""

    def __init__(self, cardinality: Cardinality, tables: frozenset[str]) -> None:
        self._cardinality, self._tables = cardinality, tables
        self._rows: dict[Member, float] = {}

    def extent(self, member: Member) -> Extent:
        """Return how far back a member reaches."""
        return Extent(source=member.store, is_table=member.store in self._tables, window_us=member.window_us)

    def rows(self, member: Member) -> float:
        """Return Crd of a relation: the rows that its selection lets through in its window."""
        known = self._rows.get(member)
        if known is None:
            known = self._cardinality.selected_rows(self.extent(member), member.selection)
            self._rows[member] = known
        return known

    def pace(self, member: Member) -> float:
        """Return how many windows of a relation pass per second; none of a table."""
        return 0.0 if member.store in self._tables else self._cardinality.pace(self.extent(member))

    def found(self, joined: JoinClass, left: Member, right: Member) -> float:
        """Return Crd of a join."""
        share = self._cardinality.between(self.extent(left), self.extent(right), joined.on)
        return self.rows(left) * self.rows(right) * share

    def shared(self, joined: JoinClass, uses: Sequence[Use]) -> float:
        """Return the cost of one join for all of these uses."""
        left, right = (widest(use.members[side] for use in uses) for side in (0, 1))
        paces = [pace for pace in (self.pace(left), self.pace(right)) if pace]
        pace = sum(paces) / max(len(paces), 1)
        arriving = self.rows(left) * self.pace(left) + self.rows(right) * self.pace(right)
        return arriving + pace * (self._keys(joined, left, right) + self.found(joined, left, right))

    def separate(self, joined: JoinClass, uses: Sequence[Use]) -> float:
        """Return the cost of a join for each of these uses; equal ones are one."""
        distinct = {use.members: use for use in uses}
        return sum(self.shared(joined, (use,)) for use in distinct.values())

    def _keys(self, joined: JoinClass, left: Member, right: Member) -> float:
        """Return the smaller number of distinct keys, which is how many are looked up where indexes are intersected."""
        keys = key_pairs(joined.on)
        if not keys:
            return 0.0
        counts = (
            self._cardinality.distinct(self.extent(member), pair[side])
            for side, member in enumerate((left, right))
            for pair in keys[:1]
        )
        return min(*counts, self.rows(left), self.rows(right))


__all__ = ["SharingCost", "widest"]
