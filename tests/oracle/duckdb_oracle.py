"""What every query of a case must output, computed by DuckDB over the whole input at once."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp

from tests.oracle.intervals import without_durations
from tests.oracle.translate import connection, rendered
from tests.property.arrivals import Arrivals, late_rows
from tests.property.case import Case, CaseQuery

MOST_ROWS = 20_000
MOST_UNWINDOWED_ROWS = 100_000


class UnsuitableCaseError(Exception):
    """The case has too many rows to be worth running, or is beyond DuckDB."""


@functools.lru_cache(maxsize=4)
def late_masks(case: Case) -> dict[str, list[bool]]:
    """Tell for each row of each stream whether it is late."""
    streams = [source for source in case.sources if not source.is_table]
    arrivals = [
        Arrivals(delay_us=source.delay_us, taus=source.taus(), batch_of=list(source.batch_of)) for source in streams
    ]
    masks = late_rows(arrivals, case.batches)
    return {source.name: mask for source, mask in zip(streams, masks, strict=True)}


@functools.lru_cache(maxsize=4)
def joinable_rows(case: Case) -> dict[str, pa.Table]:
    """Return each source's rows without late ones and without those that have no τ."""
    rows = {}
    late = late_masks(case)
    for source in case.sources:
        kept = source.rows
        if not source.is_table:
            punctual = pa.array([not found for found in late[source.name]], pa.bool_())
            kept = kept.filter(pc.and_(punctual, pc.is_valid(kept.column(source.time)).combine_chunks()))
        rows[source.name] = kept
    return rows


def expected(case: Case) -> dict[str, pa.Table]:
    """Return the output of each query. Raises UnsuitableCaseError rather than compute a huge one.

    DuckDB takes over conditions from one side of an equality to the other, and then overflows on an extreme integer
    that the condition was never meant for (``abs(a.k) = 2 AND a.k = b.y``); such cases are unsuitable too.
    """
    database = connection()
    load(database, joinable_rows(case))
    try:
        return {query.name: _run(database, case, query) for query in case.queries}
    except duckdb.OutOfRangeException as error:
        raise UnsuitableCaseError(str(error)) from error


def load(database: duckdb.DuckDBPyConnection, tables: Mapping[str, pa.Table]) -> None:
    """Create the tables, replacing those there are."""
    for name, rows in tables.items():
        database.register("#incoming", without_durations(rows))
        database.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM "#incoming"')
        database.unregister("#incoming")


def oracle_sql(case: Case, query: CaseQuery) -> str:
    """Return the query with its window condition as DuckDB SQL."""
    select = _parsed(query)
    streams = [(alias, case.source(name)) for alias, name in query.relations if not case.source(name).is_table]
    taus = {alias: f"epoch_us({alias}.{_name(source.time or '')})" for alias, source in streams}
    newest = next(iter(taus.values())) if len(taus) == 1 else f"greatest({', '.join(taus.values())})"
    for alias, tau in taus.items():
        window_us = case.window_us(query, alias)
        if window_us is not None and len(taus) > 1:
            select = select.where(f"{newest} - {tau} <= {window_us}", dialect="duckdb", copy=False)
    return rendered(select)


@functools.lru_cache(maxsize=64)
def _parse(sql: str) -> exp.Expression:
    return sqlglot.parse_one(sql, dialect="spark")


def _parsed(query: CaseQuery) -> exp.Select:
    select = _parse(query.sql).copy()
    if not isinstance(select, exp.Select):
        raise TypeError(f"not a SELECT: {query.sql}")
    if query.star:
        columns = [exp.column(exp.to_identifier(name, quoted=True), table=alias) for alias, name in query.star]
        select = select.select(*columns, append=False, copy=False)
    return select


def _run(database: duckdb.DuckDBPyConnection, case: Case, query: CaseQuery) -> pa.Table:
    if len(query.relations) > 1:
        bare = _parsed(query).select(exp.Literal.number(1), append=False, copy=False)
        count = f"SELECT count(*) FROM ({rendered(bare)} LIMIT {MOST_UNWINDOWED_ROWS + 1})"
        ((rows,),) = database.execute(count).fetchall()
        if rows > MOST_UNWINDOWED_ROWS:
            raise UnsuitableCaseError(f"{query.name}: more than {MOST_UNWINDOWED_ROWS} rows without windows")
    result = database.sql(f"{oracle_sql(case, query)} LIMIT {MOST_ROWS + 1}").to_arrow_table()
    if result.num_rows > MOST_ROWS:
        raise UnsuitableCaseError(f"{query.name}: more than {MOST_ROWS} rows")
    return result


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
