"""Queries over views: views merged, they say what the views say, and find what DuckDB finds with views of its own.

A run checks 1,000 cases; ``PLAIT_CASES=40000`` checks 50,000, ``PLAIT_SEED`` says where they start.
"""

from __future__ import annotations

import os

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from plait.errors import UnsupportedQueryError
from plait.query.model import Query
from plait.query.partners import window_us_of
from tests.oracle.compare import difference, table_rows
from tests.oracle.duckdb_oracle import UnsuitableCaseError, joinable_rows, load
from tests.oracle.translate import connection, rendered
from tests.property.case import Case, describe
from tests.property.front_end import from_text
from tests.property.running import fault, run_case
from tests.property.view_cases import ViewCase, view_case

CASES = int(os.environ.get("PLAIT_CASES", "800")) * 5 // 4
FIRST_SEED = int(os.environ.get("PLAIT_SEED", "0"))
CHUNK = 50
MOST_ROWS = 30_000
MOST_RELATIONS = 4
"""Of a query that is run: as many as random cases have elsewhere."""


def rows_of(sql: str) -> list[tuple[object, ...]]:
    table = connection().sql(f"SELECT * FROM ({sql}) LIMIT {MOST_ROWS + 1}").to_arrow_table()
    if table.num_rows > MOST_ROWS:
        raise UnsuitableCaseError("many rows")
    return table_rows(table)


def merged_sql(case: Case, query: Query) -> str:
    """Return what a query says over streams and tables, for DuckDB, the window condition written into every ON."""
    tree = sqlglot.parse_one(query.text, dialect="spark")
    members = list[tuple[str, int | None]]()
    first = tree.args.get("from_") or tree.args["from"]
    members += _member(case, query, first.this.alias)
    for join in tree.args.get("joins") or ():
        added = _member(case, query, join.this.alias)
        conditions = [each for each in (join.args.get("on"),) if each is not None]
        conditions += [sqlglot.parse_one(each, dialect="duckdb") for each in _within([*members, *added])]
        join.set("on", exp.and_(*conditions) if conditions else exp.true())
        if join.kind in ("SEMI", "ANTI"):
            join.set("side", None)
        else:
            members += added
    return rendered(tree)


def _member(case: Case, query: Query, alias: str) -> list[tuple[str, int | None]]:
    relation = query.relation(alias)
    if relation.is_table:
        return []
    return [(f'epoch_us("{alias}"."{case.source(relation.source).time}")', window_us_of(relation))]


def _within(members: list[tuple[str, int | None]]) -> list[str]:
    newest = f"greatest({', '.join(tau for tau, _ in members)})"
    return [
        f"coalesce({newest} - {tau} <= {window}, TRUE)"
        for tau, window in members
        if window is not None and len(members) > 1
    ]


def difference_of(drawn: ViewCase) -> str | None:
    """Return in what a case's query, with views merged, differs from what it says with views; None if in nothing."""
    _, (query,) = from_text(drawn.case)
    if not query.places:
        raise UnsuitableCaseError("it reads no view")
    load(connection(), joinable_rows(drawn.case))
    try:
        wanted = rows_of(drawn.oracle_sql())
        found = rows_of(merged_sql(drawn.case, query))
    except duckdb.OutOfRangeException as error:
        raise UnsuitableCaseError(str(error)) from error
    except duckdb.InternalException as error:  # a defect of DuckDB's, after which its connection is of no use
        connection.cache_clear()
        raise UnsuitableCaseError(str(error)) from error
    problem = difference(found, wanted)
    return None if problem is None else f"{problem}\n{query.text}\n{drawn.oracle_sql()}"


@pytest.mark.parametrize("first", range(FIRST_SEED, FIRST_SEED + CASES, CHUNK))
def test_a_query_says_the_same_with_its_views_merged(first: int) -> None:
    checked = 0
    for seed in range(first, first + CHUNK):
        drawn = view_case(seed)
        try:
            problem = difference_of(drawn)
        except (UnsupportedQueryError, UnsuitableCaseError):
            continue
        if problem is not None:
            pytest.fail(f"seed {seed}: {problem}\n{describe(drawn.case)}", pytrace=False)
        checked += 1
    assert checked > CHUNK * 0.4


@pytest.mark.parametrize("first", range(FIRST_SEED + 5_000_000, FIRST_SEED + 5_000_000 + CASES // 5, CHUNK))
def test_queries_over_views_find_what_duckdb_finds_with_views(first: int) -> None:
    checked = 0
    for seed in range(first, first + CHUNK):
        drawn = view_case(seed, inner=True)
        try:
            _, (query,) = from_text(drawn.case)
            load(connection(), joinable_rows(drawn.case))
            wanted = connection().sql(f"{drawn.oracle_sql()} LIMIT {MOST_ROWS}").to_arrow_table()
            if len(query.relations) > MOST_RELATIONS or wanted.num_rows >= MOST_ROWS // 10:
                continue
            problem = fault(drawn.case, run_case(drawn.case), {"q0": wanted})
        except (UnsupportedQueryError, UnsuitableCaseError, duckdb.OutOfRangeException):
            continue
        if problem is not None:
            pytest.fail(f"seed {seed}: {problem}\n{describe(drawn.case)}", pytrace=False)
        checked += 1
    assert checked > CHUNK * 0.5
