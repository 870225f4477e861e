"""Sets of join queries over streams as plain data, and in SQL that Spark and DuckDB both understand.

A benchmark asks several systems the same questions, so the questions are written down once, here, without the words of
any of them. All members of a result lie within the query's window of each other: since the window is the same for all
members, that is what Plait's windows mean (nobody is older than the newest by more than the window).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from plait.query.model import Column

QUALIFIED = re.compile(r"\b([a-z]\w*)\.([a-z]\w*)\b")
"""A column with its relation, in the conditions of a query."""


def qualified(condition: str) -> tuple[tuple[str, str], ...]:
    """Return the (relation, column) pairs of a condition.

    >>> qualified("a.ts <= b.ts + INTERVAL 1 MINUTE")
    (('a', 'ts'), ('b', 'ts'))
    """
    return tuple((match.group(1), match.group(2)) for match in QUALIFIED.finditer(condition))


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinStream:
    """A stream: `time` names its event-time column, types are Spark DDL in lower case."""

    name: str
    time: str
    columns: tuple[Column, ...]

    @property
    def ddl(self) -> str:
        """The columns as Spark DDL."""
        return ", ".join(f"{column.name} {column.type}" for column in self.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """``left`` and ``right`` agree on every pair of `columns` (left column, right column)."""

    left: str
    right: str
    columns: tuple[tuple[str, str], ...]

    @property
    def relations(self) -> frozenset[str]:
        """Both sides."""
        return frozenset((self.left, self.right))

    @property
    def sql(self) -> str:
        """The join as a condition."""
        return " AND ".join(f"{self.left}.{left} = {self.right}.{right}" for left, right in self.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOf:
    """A column of the result, called ``relation_column``."""

    relation: str
    column: str
    type: str

    @property
    def name(self) -> str:
        """The column's name in the result."""
        return f"{self.relation}_{self.column}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinQuery:
    """A join of streams. `relations` in FROM order, each joined with an earlier one.

    A relation is the stream of that name, unless `aliases` (relation, stream) say which it is. `selections` are
    (relation, condition over its qualified columns); `conditions` compare qualified columns of two relations, in words
    that every system knows. `window_s` None: the full history.
    """

    name: str
    relations: tuple[str, ...]
    joins: tuple[Join, ...]
    outputs: tuple[OutputOf, ...]
    selections: tuple[tuple[str, str], ...] = ()
    conditions: tuple[str, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    window_s: int | None = None

    def stream_of(self, relation: str) -> str:
        """Return the stream a relation reads."""
        return dict(self.aliases).get(relation, relation)

    def source_sql(self, relation: str) -> str:
        """Return a relation as it stands in FROM."""
        stream = self.stream_of(relation)
        return stream if stream == relation else f"{stream} AS {relation}"

    def joins_of(self, relation: str, earlier: Collection[str]) -> tuple[Join, ...]:
        """Return the joins between a relation and those before it."""
        return tuple(
            join for join in self.joins if relation in join.relations and join.relations - {relation} <= {*earlier}
        )

    def select_sql(self) -> str:
        """Return the query as text, windows left out: for Plait they are no part of it."""
        return self._select([*(condition for _, condition in self.selections), *self.conditions])

    def batch_sql(self, times: dict[str, str]) -> str:
        """Return the query over everything at once, for DuckDB; `times` names each stream's event-time column.

        Besides all members together, the window is asked of every two that are joined: they follow from it, but a
        batch engine can drop a pair as soon as it has it.
        """
        conditions = [*(condition for _, condition in self.selections), *self.conditions]
        if self.window_s is not None:
            taus = {relation: f"epoch_us({relation}.{times[self.stream_of(relation)]})" for relation in self.relations}
            window_us = self.window_s * 1_000_000
            pairs = dict.fromkeys((join.left, join.right) for join in self.joins)
            conditions += [f"abs({taus[left]} - {taus[right]}) <= {window_us}" for left, right in pairs]
            every = ", ".join(taus.values())
            conditions.append(f"greatest({every}) - least({every}) <= {window_us}")
        return self._select(conditions)

    def _select(self, conditions: Iterable[str]) -> str:
        columns = ", ".join(f"{output.relation}.{output.column} AS {output.name}" for output in self.outputs)
        sources = self.source_sql(self.relations[0])
        for position, relation in enumerate(self.relations[1:], start=1):
            joins = " AND ".join(join.sql for join in self.joins_of(relation, self.relations[:position]))
            sources += f" JOIN {self.source_sql(relation)} ON {joins}"
        where = " AND ".join(f"({condition})" for condition in conditions)
        return f"SELECT {columns} FROM {sources}" + (f" WHERE {where}" if where else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySet:
    """Queries, and the streams they read."""

    streams: tuple[JoinStream, ...]
    queries: tuple[JoinQuery, ...]

    @classmethod
    def over(cls, streams: Iterable[JoinStream], queries: Iterable[JoinQuery]) -> QuerySet:
        """Return the queries with those of the streams that somebody reads."""
        asked = tuple(queries)
        read = {query.stream_of(relation) for query in asked for relation in query.relations}
        return cls(streams=tuple(stream for stream in streams if stream.name in read), queries=asked)

    def times(self) -> dict[str, str]:
        """Return the event-time column by stream."""
        return {stream.name: stream.time for stream in self.streams}

    @classmethod
    def from_plain(cls, value: dict[str, Any]) -> QuerySet:
        """Return the query set that ``dataclasses.asdict`` made plain, even after JSON made lists of its tuples."""
        return cls(
            streams=tuple(stream_from_plain(stream) for stream in value["streams"]),
            queries=tuple(_query(query) for query in value["queries"]),
        )


def stream_from_plain(value: dict[str, Any]) -> JoinStream:
    """Return the stream that ``dataclasses.asdict`` made plain."""
    columns = tuple(Column(**column) for column in value["columns"])
    return JoinStream(name=value["name"], time=value["time"], columns=columns)


def _query(value: dict[str, Any]) -> JoinQuery:
    return JoinQuery(
        name=value["name"],
        relations=tuple(value["relations"]),
        joins=tuple(
            Join(
                left=join["left"], right=join["right"], columns=tuple((left, right) for left, right in join["columns"])
            )
            for join in value["joins"]
        ),
        outputs=tuple(OutputOf(**output) for output in value["outputs"]),
        selections=tuple((relation, condition) for relation, condition in value["selections"]),
        conditions=tuple(value["conditions"]),
        aliases=tuple((relation, stream) for relation, stream in value["aliases"]),
        window_s=value["window_s"],
    )
