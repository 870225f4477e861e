"""Shorthands for tests of the front end."""

from plait.query.model import Column, Query, SinkSpec, Source, Stream, Table
from plait.sql import bind_query
from plait.sql.lexis.cursor import Cursor
from plait.sql.lexis.ddl import parse_columns
from plait.sql.lexis.text import SourceText, scan
from plait.sql.lexis.tokens import tokenize


def cursor_over(text: str) -> Cursor:
    """Return a cursor at the start of a text."""
    source, masked = SourceText(text=text), scan(text).masked
    return Cursor(source, masked, tokenize(source, masked, 0, len(text)), len(text))


def columns(ddl: str) -> tuple[Column, ...]:
    """Return the columns of ``a INT, b STRING``."""
    return parse_columns(cursor_over(f"({ddl})"))


def stream(name: str, ddl: str | None, window_us: int | None = 30_000_000) -> Stream:
    """Return a stream; ddl None: its columns are not known yet."""
    return Stream(name=name, time="ts", schema=columns(ddl) if ddl else None, window_us=window_us)


SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        stream(
            "orders",
            "id BIGINT, cust INT, city STRING, addr STRUCT<City: STRING, zip: INT>, flag BOOLEAN, ts TIMESTAMP",
        ),
        stream("items", "oid INT, sku STRING, qty INT, tags ARRAY<STRING>, ts TIMESTAMP", window_us=None),
        stream("odd", "`we.ird` INT, `tick``et` STRING, `größe` DOUBLE, `order` INT, user STRING, ts TIMESTAMP"),
        stream("unseen", None),
        Table(name="nation", schema=columns("cust STRING, city STRING, code INT")),
    )
}


def bound(select: str, *, sink: str = "memory", windows: dict[str, int | None] | None = None) -> Query:
    """Bind a SELECT over `SOURCES`."""
    return bind_query(name="q", select=select, sink=SinkSpec(format=sink), sources=SOURCES, windows=windows)


def equalities(query: Query) -> list[str]:
    """Show the equalities: ``orders.`id` = items.`oid```."""
    return [
        f"{found.left.relation}.{found.left.expression.sql} = {found.right.relation}.{found.right.expression.sql}"
        for found in query.equalities
    ]


def selections(query: Query) -> dict[str, list[str]]:
    """Return the selections of every relation that has some."""
    return {
        relation.alias: [selection.sql for selection in relation.selections]
        for relation in query.relations
        if relation.selections
    }


def output(query: Query) -> list[tuple[str | None, str]]:
    """Return (name, expression) of every output column."""
    return [(column.name, column.expression.sql) for column in query.output]
