"""A query as chained joins of Pathway's. On the way columns are called ``relation_column``.

With a window the members of a result have to lie within it of each other. So each join but the first is one of the
newest member so far with the next relation, and the oldest one is compared in a filter. The newest member is what
came last, so a row on the way is never late for Pathway, whose operators forget by the times of their own input.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.systems.pathway_conditions import Condition, Value
from benchmarks.systems.pathway_rows import Read, compared
from benchmarks.systems.pathway_types import typed
from benchmarks.systems.task import UnableError
from benchmarks.workloads.joins import JoinQuery, qualified

_NEWEST, _OLDEST = "newest", "oldest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The streams by name, as tables of Pathway's with columns called ``stream_column``. `late_us`: by how much a row
    may be older than batches before it. `forgets`: joins drop rows that are too old for any window.
    """

    reads: Mapping[str, Read]
    tables: Mapping[str, Any]
    forgets: bool
    late_us: int

    @property
    def times(self) -> dict[str, str]:
        """The event-time column by stream."""
        return {name: read.stream.time for name, read in self.reads.items()}


def join_streams(inputs: Inputs, query: JoinQuery) -> Any:
    """Return the results of a query as a table. Raises UnableError."""
    chain = _Chain(inputs=inputs, query=query)
    joined = chain.relation(query.relations[0])
    for position in range(1, len(query.relations)):
        joined = chain.join(joined, position)
    return joined.select(**{output.name: joined[output.name] for output in query.outputs})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chain:
    inputs: Inputs
    query: JoinQuery

    def relation(self, relation: str) -> Any:
        """Return a relation's rows that can be part of a result."""
        read, stream = self._read(relation), self.query.stream_of(relation)
        table = self.inputs.tables[stream]
        kept = table.select(
            **{f"{relation}_{column.name}": table[f"{stream}_{column.name}"] for column in read.columns}
        )
        needed = {column for owner, column in compared(self.query, self.inputs.times) if owner == relation}
        for column in sorted(needed & read.nullable):
            kept = kept.filter(kept[f"{relation}_{column}"].is_not_none())
        for owner, condition in self.query.selections:
            if owner == relation:
                kept = kept.filter(self._condition(condition, kept))
        return kept

    def join(self, left: Any, position: int) -> Any:
        """Return the rows so far with those of the relation at `position` that match. Conditions are asked, and columns
        left out, as soon as that can be.
        """
        relation, earlier = self.query.relations[position], self.query.relations[:position]
        right = self.relation(relation)
        matching = [left[mine] == right[other] for mine, other in self._equalities(relation, earlier)]
        columns = {name: left[name] for name in left.column_names() if name not in (_NEWEST, _OLDEST)}
        columns |= {name: right[name] for name in right.column_names()}
        if self.query.window_s is None:
            joined = left.join(right, *matching).select(**columns)
        else:
            joined = self._join_near(left, right, position, matching, columns)
        for condition in self._conditions(relation, earlier):
            joined = joined.filter(self._condition(condition, joined))
        needed = self._needed_after(position)
        return joined[[name for name in joined.column_names() if name in needed]]

    def _join_near(self, left: Any, right: Any, position: int, matching: list[Any], columns: dict[str, Any]) -> Any:
        """Return the join of rows that lie within the window of each other."""
        import pathway as pw

        window_us = (self.query.window_s or 0) * 1_000_000
        first = self._time(self.query.relations[0])
        newest, oldest = (left[first], left[first]) if position == 1 else (left[_NEWEST], left[_OLDEST])
        added = right[self._time(self.query.relations[position])]
        interval = pw.temporal.interval(-window_us, window_us)
        cutoff = pw.temporal.common_behavior(cutoff=window_us + self.inputs.late_us)
        behavior = {"behavior": cutoff} if self.inputs.forgets else {}
        joined = left.interval_join(right, newest, added, interval, *matching, **behavior)
        if len(self.query.relations) == 2:
            return joined.select(**columns)
        ends = {
            _NEWEST: pw.if_else(newest > added, newest, added),
            _OLDEST: pw.if_else(oldest < added, oldest, added),
        }
        found = joined.select(**columns, **ends)
        return found if position == 1 else found.filter(found[_NEWEST] - found[_OLDEST] <= window_us)

    def _read(self, relation: str) -> Read:
        return self.inputs.reads[self.query.stream_of(relation)]

    def _time(self, relation: str) -> str:
        return f"{relation}_{self._read(relation).stream.time}"

    def _equalities(self, relation: str, earlier: Collection[str]) -> list[tuple[str, str]]:
        """Return pairs of a column so far and one of the relation's that agree. Raises UnableError."""
        found = []
        for join in self.query.joins_of(relation, earlier):
            for left, right in join.columns:
                sides = ((join.left, left), (join.right, right))
                (theirs, mine) = sides if join.right == relation else (sides[1], sides[0])
                kinds = [typed(self._type(*side)) for side in (theirs, mine)]
                if kinds[0] != kinds[1]:
                    raise UnableError(
                        f"Pathway joins on columns of the same type, found {self._type(*theirs)} and "
                        f"{self._type(*mine)} in '{join.sql}' of query '{self.query.name}'"
                    )
                found.append((f"{theirs[0]}_{theirs[1]}", f"{mine[0]}_{mine[1]}"))
        return found

    def _type(self, relation: str, column: str) -> str:
        return next(found.type for found in self._read(relation).columns if found.name == column)

    def _conditions(self, relation: str, earlier: Collection[str]) -> list[str]:
        """Return the conditions that can be asked once the relation has joined those before it."""
        found = []
        for condition in self.query.conditions:
            owners = {owner for owner, _ in qualified(condition)}
            if relation in owners and owners <= {relation, *earlier}:
                found.append(condition)
        return found

    def _condition(self, text: str, table: Any) -> Any:
        """Return a condition over the columns of a table."""
        import pathway as pw

        asked = set(qualified(text))
        columns = {
            f"{relation}.{column}": Value(
                expression=table[f"{relation}_{column}"], typed=typed(self._type(relation, column))
            )
            for relation, column in asked
        }
        condition = Condition(text=text, columns=columns, choose=pw.if_else)
        found = condition.read()
        if not condition.rejects_null and any(column in self._read(relation).nullable for relation, column in asked):
            raise UnableError(f"the condition '{text}' is about columns with NULL; Pathway knows no third truth value")
        return found

    def _needed_after(self, position: int) -> set[str]:
        """Return the columns that are needed once the relation at `position` has joined."""
        known, later = self.query.relations[: position + 1], self.query.relations[position + 1 :]
        found = {output.name for output in self.query.outputs if output.relation in known}
        for relation in later:
            before = self.query.relations[: self.query.relations.index(relation)]
            found |= {mine for mine, _ in self._equalities(relation, before)}
            for condition in self._conditions(relation, before):
                found |= {f"{owner}_{name}" for owner, name in qualified(condition)}
        return found | ({_NEWEST, _OLDEST} if later else set())
