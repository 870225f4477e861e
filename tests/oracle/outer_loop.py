"""What a query with outer, semi and anti joins must output, and in which batch, by loops from the definition.

A row of the joins so far is certain in some batch: a row of a relation in the one it arrives in, a pair once both
parts are, a row without a partner in the first batch after which the watermark has passed the last moment a partner
could have come at. The result of a query is all rows that are certain by its last batch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.oracle.duckdb_oracle import joinable_rows, late_masks
from tests.oracle.nested_loop import TooManyCombinationsError
from tests.property.arrivals import Arrivals, watermarks
from tests.property.case import Case
from tests.property.expressions import Expression
from tests.property.outer_cases import DrawnJoin, OuterQuery

MOST_PAIRS = 300_000
NEVER = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A row of a relation. `tau` None: of a table. `batch`: when it arrived, −1 for a table's."""

    row: dict[str, Any]
    tau: int | None
    window_us: int | None
    batch: int

    @property
    def closes(self) -> float:
        """The τ after which nothing can join it."""
        return NEVER if self.tau is None or self.window_us is None else self.tau + self.window_us

    @property
    def newest(self) -> float:
        """Its τ."""
        return -NEVER if self.tau is None else self.tau


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """A row of the joins so far, a member or None for each relation, and the batch in which it is certain."""

    members: dict[str, Member | None]
    batch: float

    @property
    def closes(self) -> float:
        """The τ after which nothing can join it."""
        return min((each.closes for each in self.members.values() if each is not None), default=NEVER)

    @property
    def newest(self) -> float:
        """The largest τ in it."""
        return max((each.newest for each in self.members.values() if each is not None), default=-NEVER)


class OuterLoop:
    """The loops for one query of a case. `closes`: after the last batch nothing more comes. `kinds`: of joins, by what
    they add, those that are other than written, because a later one takes rows without partners away again: nobody
    waits for these. Which rows there are does not depend on it.
    """

    def __init__(
        self, case: Case, query: OuterQuery, *, closes: bool = False, kinds: Mapping[str, str] | None = None
    ) -> None:
        self._kinds = {join.alias: join.kind for join in query.joins} | dict(kinds or {})
        self._case, self._query, self._closes = case, query, closes
        self._marks = _marks(case)
        self._nothing = {
            alias: {each.name: None for each in case.source(source).columns} for alias, source in query.relations
        }
        self._pairs = 0

    def rows(self) -> list[tuple[int, tuple[Any, ...]]]:
        """Return (batch, row) for each result; with `closes`, what is decided at the end is in a batch of its own."""
        alias, source = self._query.relations[0]
        found = [Joined(members={alias: each}, batch=each.batch) for each in self._members(alias, source)]
        lag: float = 0
        for join in self._query.joins:
            found, lag = self._joined(found, lag, join)
        found = [each for each in found if all(self._true(item, each.members) for item in self._query.where)]
        last = self._case.batches if self._closes else self._case.batches - 1
        return [
            (max(int(each.batch), 0), tuple(item.value(self._row(each.members)) for item in self._query.projection))
            for each in found
            if each.batch <= last
        ]

    def _joined(self, left: list[Joined], lag: float, join: DrawnJoin) -> tuple[list[Joined], float]:
        right = self._members(join.alias, join.source)
        is_table = self._case.source(join.source).is_table
        has_stream = any(
            not self._case.source(dict(self._query.relations)[alias]).is_table for alias in self._left(join)
        )
        matched: list[Joined] = []
        partners: dict[int, list[Member]] = {}
        taken: set[int] = set()
        spans = [(other.newest, other.closes) for other in right]
        for number, one in enumerate(left):
            row, newest, closes = self._row(one.members), one.newest, one.closes
            self._pairs += len(right)
            if self._pairs > MOST_PAIRS:
                raise TooManyCombinationsError(self._query.name)
            for place, (other, (tau, until)) in enumerate(zip(right, spans, strict=True)):
                if max(newest, tau) > min(closes, until):
                    continue
                row[join.alias] = other.row
                if all(item.value(row) is True for item in join.on):
                    partners.setdefault(number, []).append(other)
                    taken.add(place)
                    matched.append(
                        Joined(members={**one.members, join.alias: other}, batch=max(one.batch, other.batch))
                    )
        alone = [
            Joined(members=each.members, batch=max(each.batch, -1 if is_table else self._passed(each.closes)))
            for number, each in enumerate(left)
            if number not in partners
        ]
        if join.kind == "anti":
            return alone, lag if is_table else max(lag, self._left_lag(join))
        if join.kind == "semi":
            first = {number: min(each.batch for each in found) for number, found in partners.items()}
            return [
                Joined(members=each.members, batch=max(each.batch, first[number]))
                for number, each in enumerate(left)
                if number in first
            ], lag if is_table else max(lag, self._left_lag(join))
        found, after = matched, lag
        if join.kind in ("left", "full"):
            found = found + [Joined(members={**each.members, join.alias: None}, batch=each.batch) for each in alone]
        if self._kinds[join.alias] in ("left", "full"):
            after = after if is_table else max(after, self._left_lag(join))
        if join.kind in ("right", "full"):
            nothing: dict[str, Member | None] = dict.fromkeys(self._left(join))
            for place, other in enumerate(right):
                if place not in taken:
                    ends = (other.tau or 0) + (other.window_us or 0) + lag
                    decided = self._passed(ends) if has_stream else -1
                    found = [
                        *found,
                        Joined(members={**nothing, join.alias: other}, batch=max(other.batch, decided)),
                    ]
        if self._kinds[join.alias] in ("right", "full"):
            after = max(after, (self._window(join.alias) or 0) + lag) if has_stream else after
        return found, after

    def _left(self, join: DrawnJoin) -> list[str]:
        """Return the relations with columns before a join."""
        names = [self._query.relations[0][0]]
        for each in self._query.joins:
            if each is join:
                break
            names += [] if each.kind in ("semi", "anti") else [each.alias]
        return names

    def _left_lag(self, join: DrawnJoin) -> float:
        """Return how long after the τ of any member a row of the left part may close: of those that always are there
        the shortest window, else the longest of all.
        """
        lacking: set[str] = set()
        before: list[str] = [self._query.relations[0][0]]
        for each in self._query.joins:
            if each is join:
                break
            if each.kind in ("semi", "anti"):
                continue
            kind = self._kinds[each.alias]
            lacking |= {each.alias} if kind in ("left", "full") else set()
            lacking |= set(before) if kind in ("right", "full") else set()
            before.append(each.alias)
        windows = {alias: self._window(alias) for alias in before}
        sure = [window for alias, window in windows.items() if alias not in lacking and window is not None]
        return min(sure) if sure else max((window for window in windows.values() if window is not None), default=0)

    def _window(self, alias: str) -> int | None:
        source = self._case.source(dict(self._query.relations)[alias])
        return None if source.is_table else self._case.window_us(self._query, alias)

    def _passed(self, end: float) -> float:
        """Return the first batch after which the watermark has passed this."""
        for batch, mark in enumerate(self._marks):
            if mark is not None and mark > end:
                return batch
        return self._case.batches if self._closes and end < NEVER else NEVER

    def _true(self, item: Expression, members: dict[str, Member | None]) -> bool:
        return item.value(self._row(members)) is True

    def _row(self, members: dict[str, Member | None]) -> dict[str, dict[str, Any]]:
        return {alias: self._nothing[alias] if member is None else member.row for alias, member in members.items()}

    def _members(self, alias: str, source: str) -> list[Member]:
        given = self._case.source(source)
        rows = joinable_rows(self._case)[source].to_pylist()
        if given.is_table:
            return [Member(row=row, tau=None, window_us=None, batch=-1) for row in rows]
        late, taus = late_masks(self._case)[source], given.taus()
        kept = [
            (tau, batch)
            for tau, batch, is_late in zip(taus, given.batch_of, late, strict=True)
            if tau is not None and not is_late
        ]
        window_us = self._case.window_us(self._query, alias)
        return [
            Member(row=row, tau=tau, window_us=window_us, batch=batch)
            for row, (tau, batch) in zip(rows, kept, strict=True)
        ]


def _marks(case: Case) -> list[int | None]:
    """Return after each batch the highest watermark so far."""
    streams = [source for source in case.sources if not source.is_table]
    arrivals = [
        Arrivals(delay_us=source.delay_us, taus=source.taus(), batch_of=list(source.batch_of)) for source in streams
    ]
    marks: list[int | None] = []
    for mark in watermarks(arrivals, case.batches + 1)[1:]:
        before = marks[-1] if marks else None
        marks.append(before if mark is None else mark if before is None else max(before, mark))
    return marks


__all__ = ["OuterLoop"]
