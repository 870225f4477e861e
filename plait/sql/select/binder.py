"""From the text of a SELECT to a `Query`: views are merged, then it is bound to streams and tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from plait.errors import SqlError
from plait.query.model import Query, SinkSpec, Source
from plait.sql.expressions.functions import IsFunction
from plait.sql.lexis.text import SourceText
from plait.sql.select.merge_views import merge_views
from plait.sql.select.statement_binder import StatementBinder
from plait.sql.select.take_apart import Views
from plait.sql.select.view_parts import View
from plait.sql.statements import CreateQuery, WindowOverride


def bind_query(
    *,
    name: str,
    select: str,
    sink: SinkSpec,
    sources: Mapping[str, Source],
    windows: Mapping[str, int | None] | None = None,
    predicates: Collection[str] = (),
    is_function: IsFunction | None = None,
    views: Iterable[View] = (),
    file: str | None = None,
    line: int = 1,
    column: int = 1,
) -> Query:
    """Bind a SELECT to the streams and tables it reads, itself or through `views`.

    `windows` overrides windows by alias, in microseconds, None for unbounded. `predicates`: the names that may be
    called as join predicates although Spark does not know them (`Engine.predicate`). `is_function` is asked about names
    that are no built-in functions of Spark. `line` and `column`: where the
    text starts in `file`. Raises the first mistake: SqlError, or UnsupportedQueryError for what Plait does not run.
    """
    statement = CreateQuery(
        name=name,
        sink=sink,
        windows=tuple(WindowOverride(alias=alias, window_us=length) for alias, length in (windows or {}).items()),
        select=select,
        select_line=line,
        select_column=column,
        line=line,
        column=column,
    )
    query, problems = bind_statement(
        statement, sources, views=views, file=file, predicates=predicates, is_function=is_function
    )
    if problems:
        raise problems[0]
    assert query is not None
    return query


def bind_statement(
    statement: CreateQuery,
    sources: Mapping[str, Source],
    *,
    views: Iterable[View] = (),
    file: str | None = None,
    predicates: Collection[str] = (),
    is_function: IsFunction | None = None,
) -> tuple[Query | None, tuple[SqlError, ...]]:
    """Bind a query and return it, or everything that is wrong with it, in order of appearance."""
    text = SourceText(text=statement.select, file=file, line=statement.select_line, column=statement.select_column)
    known, problems = Views(views, sources, tuple(predicates), is_function), list[SqlError]()
    query = None
    try:
        merged = merge_views(text, statement.windows, known, problems)
        if merged is not None:
            binder = StatementBinder(
                replace(statement, windows=merged[1]), merged[0], tuple(predicates), is_function, problems
            )
            query = binder.bind(sources, known.names)
    except SqlError as problem:
        problems.append(problem)
    told = _in_order(problems)
    return (None, told) if told else (query, ())


def view_problems(
    view: View,
    sources: Mapping[str, Source],
    *,
    views: Iterable[View],
    predicates: Collection[str] = (),
    is_function: IsFunction | None = None,
) -> tuple[SqlError, ...]:
    """Return everything that is wrong with a view by itself, in order of appearance. What can only be told of a query
    that reads it, such as how long its rows wait, is not.
    """
    known, problems = Views(views, sources, tuple(predicates), is_function), list[SqlError]()
    known.taken_apart(view, problems)
    if not problems:
        statement = CreateQuery(
            name=view.name,
            sink=SinkSpec(format="noop"),
            windows=view.windows,
            select=view.text.text,
            select_line=view.text.line,
            select_column=view.text.column,
            line=view.text.line,
            column=view.text.column,
        )
        try:
            merged = merge_views(view.text, view.windows, known, problems)
            if merged is not None:
                inner = replace(statement, windows=merged[1])
                binder = StatementBinder(inner, merged[0], tuple(predicates), is_function, problems, is_view=True)
                binder.bind(sources, known.names)
        except SqlError as problem:
            problems.append(problem)
    return _in_order(problems)


def _in_order(problems: Iterable[SqlError]) -> tuple[SqlError, ...]:
    """Return problems in order of appearance, each once: of a view that is read twice each is found twice."""
    distinct = {str(problem): problem for problem in problems}
    return tuple(sorted(distinct.values(), key=lambda problem: (problem.line or 0, problem.column or 0)))
