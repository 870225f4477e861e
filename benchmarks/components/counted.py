"""Join trees over data at rest, whose joins are counted instead of estimated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.workloads.joins import JoinQuery, JoinStream
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.estimate.join_sizes import JoinSizes
from plait.optimizer.options import PlanOptions
from plait.query.model import Operand, Query, SinkSpec, Stream
from plait.query.types import resolve_types
from plait.sql.select.binder import bind_query
from plait.stats.model import SourceStatistics, Statistics

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duckdb import DuckDBPyConnection


class CountedSizes(JoinSizes):
    """|⋈ X| of a query over the full history, as DuckDB counts it."""

    def __init__(self, question: JoinQuery, streams: Iterable[JoinStream], database: DuckDBPyConnection) -> None:
        self._question, self._database = question, database
        self._counted: dict[frozenset[str], float] = {}
        sources = {stream.name: Stream(name=stream.name, time=stream.time, schema=stream.columns) for stream in streams}
        rows = {name: self._count(frozenset((name,))) for name in question.relations}
        self.options = PlanOptions(strategy="flat", parallelism=1, sources=tuple(sources.values()))
        self.statistics = Statistics(
            sources=tuple(
                SourceStatistics(source=name, rows=rows[name], rate_rows_per_s=rows[name]) for name in sorted(rows)
            )
        )
        super().__init__(_bound(question, sources), Cardinality(statistics=self.statistics), self.options)

    def size(self, aliases: frozenset[str]) -> float:
        """Return |⋈ X|."""
        return self._count(aliases)

    def _count(self, aliases: frozenset[str]) -> float:
        if aliases not in self._counted:
            names = [name for name in self._question.relations if name in aliases]
            conditions = [join.sql for join in self._question.joins if join.relations <= aliases]
            where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
            found = self._database.execute(f"SELECT count(*) FROM {', '.join(names)}{where}").fetchall()
            self._counted[aliases] = float(found[0][0])
        return self._counted[aliases]


def _bound(question: JoinQuery, sources: dict[str, Stream]) -> Query:
    types = {column.name: column.type for source in sources.values() for column in source.schema or ()}

    def type_of(operand: Operand) -> str:
        return types[operand.expression.columns[0]]

    query = bind_query(name=question.name, select=question.select_sql(), sink=SinkSpec(format="noop"), sources=sources)
    return resolve_types(query, type_of)
