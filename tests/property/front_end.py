"""From a case to the sources and queries that are planned: through SQL text, or past it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from plait.query.model import Operand, Query, Source, SourceExpression
from plait.query.types import resolve_types
from plait.query.windows import with_narrow_windows
from plait.spelling import backquoted
from plait.sql.lexis.text import SourceText
from plait.sql.predicates.evaluation import resolve_residuals
from plait.sql.script.reading import parse_script
from plait.sql.select.binder import bind_statement
from plait.sql.select.view_parts import View
from plait.sql.statements import CreateQuery, CreateStream, CreateTable, CreateView
from tests.oracle.duckdb_oracle import load
from tests.oracle.translate import connection, to_duckdb
from tests.property.case import Case, script
from tests.property.registered import PREDICATES
from tests.property.structured import structured_query, structured_source

_SPARK_TYPES = {
    "TINYINT": "tinyint",
    "SMALLINT": "smallint",
    "INTEGER": "int",
    "BIGINT": "bigint",
    "DOUBLE": "double",
    "FLOAT": "float",
    "VARCHAR": "string",
    "BLOB": "binary",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "BOOLEAN": "boolean",
}


def from_text(given: Case) -> tuple[tuple[Source, ...], tuple[Query, ...]]:
    """Return what the front end makes of the case's script."""
    sources: dict[str, Source] = {}
    queries, views = [], list[View]()
    for statement in parse_script(script(given), file="case.sql", base="/data"):
        match statement:
            case CreateStream():
                sources[statement.stream.name] = statement.stream
            case CreateTable():
                sources[statement.table.name] = statement.table
            case CreateView():
                views.append(_view(statement))
            case CreateQuery():
                query, problems = bind_statement(
                    statement, sources, views=views, file="case.sql", predicates=PREDICATES
                )
                if query is None:
                    raise problems[0]
                queries.append(query)
            case _:
                raise TypeError(f"a case has no {statement}")
    return tuple(sources.values()), with_types(given, tuple(queries))


def _view(statement: CreateView) -> View:
    text = SourceText(text=statement.select, line=statement.select_line, column=statement.select_column)
    return View(name=statement.name, text=text, windows=statement.windows)


def from_structure(case: Case) -> tuple[tuple[Source, ...], tuple[Query, ...]]:
    """Return sources and queries built past the front end."""
    sources = tuple(structured_source(source) for source in case.sources)
    queries = tuple(structured_query(case, query) for query in case.queries)
    return sources, with_types(case, queries)


def with_types(case: Case, queries: tuple[Query, ...]) -> tuple[Query, ...]:
    """Give every equality its common type where it has none, as Spark is asked for it in the product."""
    load(connection(), {source.name: source.rows.slice(0, 0) for source in case.sources})
    return tuple(_with_types(case, query) for query in queries)


def _with_types(case: Case, query: Query) -> Query:
    def type_of(operand: Operand) -> str:
        return operand_type(case, query, operand)

    resolved = resolve_residuals(resolve_types(query, type_of), type_of)
    times = {source.name: source.time and backquoted(source.time) for source in case.sources}
    return with_narrow_windows(resolved, lambda source: times[source])


def operand_type(case: Case, query: Query, operand: Operand) -> str:
    """Return the Spark type of an operand of a join predicate, as DuckDB infers it (wider in places: no harm)."""
    source = query.relation(operand.relation).source
    types = {column.name: column.kind.spark for column in case.source(source).columns}
    return expression_type(operand.expression, source, types)


def expression_type(expression: SourceExpression, source: str, types: Mapping[str, str]) -> str:
    """Return the Spark type of an expression over the table `source`, whose columns have these Spark types."""
    relation = connection().sql(f'SELECT {to_duckdb(expression.sql)} AS v FROM "{source}"')
    found = str(relation.types[0])
    intervals = [types[name].lower() for name in expression.columns if types[name].startswith("INTERVAL")]
    if intervals and found in ("BIGINT", "INTEGER"):
        return intervals[0]
    if found == "TIMESTAMP":
        return _time_type(expression, types)
    decimal = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", found)
    return f"decimal({decimal.group(1)},{decimal.group(2)})" if decimal else _SPARK_TYPES[found]


def _time_type(expression: SourceExpression, types: Mapping[str, str]) -> str:
    """Tell instants from wall-clock times, which DuckDB has one type for: a cast decides, else what the columns are.

    What is not cast may be truncated, which gives an instant, and added to.
    """
    casts = re.findall(r"CAST\(.* AS (TIMESTAMP\w*)\)", expression.sql)
    if casts or "date_trunc" in expression.sql:
        return "timestamp_ntz" if casts[-1:] == ["TIMESTAMP_NTZ"] else "timestamp"
    return "timestamp_ntz" if "TIMESTAMP_NTZ" in {types[name] for name in expression.columns} else "timestamp"
