"""Write queries in the plainest way: all relations in FROM, all conditions in WHERE. And make them simpler."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tests.property.case import Case, CaseQuery, Windows, quoted
from tests.property.expressions import Expression, column


def plain_query(
    name: str,
    relations: Sequence[tuple[str, str]],
    conditions: Sequence[Expression],
    projection: Sequence[Expression],
    windows: Windows = (),
) -> CaseQuery:
    """Return the query with its text; arguments as in CaseQuery. What no condition joins is CROSS JOINed."""
    sources = [source if alias == source else f"{source} {alias}" for alias, source in relations]
    is_joined = _components(relations, conditions) == 1
    items = ", ".join(f"{item.sql(_reference)} AS c{number}" for number, item in enumerate(projection))
    text = f"SELECT {items} FROM {(', ' if is_joined else ' CROSS JOIN ').join(sources)}"
    if conditions:
        text += " WHERE " + " AND ".join(_bracketed(condition.sql(_reference)) for condition in conditions)
    return CaseQuery(
        name=name,
        sql=text,
        relations=tuple(relations),
        windows=windows,
        conditions=tuple(conditions),
        projection=tuple(projection),
    )


def simpler_queries(case: Case, query: CaseQuery) -> Iterator[CaseQuery]:
    """Yield the query plainly written with less of it, the boldest first: relations, conditions, output.

    What was joined stays joined. One that has only its text stays as it is.
    """
    if not query.projection:
        return
    for alias, _ in query.relations:
        yield from _without_relation(case, query, alias)
    parts = _components(query.relations, query.conditions)
    for dropped in query.conditions:
        kept = [condition for condition in query.conditions if condition is not dropped]
        if _components(query.relations, kept) == parts:
            yield plain_query(query.name, query.relations, kept, query.projection, query.windows)
    if len(query.projection) > 1:
        for item in query.projection:
            yield plain_query(query.name, query.relations, query.conditions, [item], query.windows)


def _without_relation(case: Case, query: CaseQuery, alias: str) -> Iterator[CaseQuery]:
    relations = [relation for relation in query.relations if relation[0] != alias]
    conditions = [each for each in query.conditions if not _reads(each, alias)]
    if all(case.source(name).is_table for _, name in relations):
        return
    if _components(relations, conditions) > _components(query.relations, query.conditions):
        return
    first = case.source(relations[0][1]).columns[0]
    whatever = column(relations[0][0], first.name, first.kind.name, first.kind.small)
    projection = [item for item in query.projection if not _reads(item, alias)] or [whatever]
    windows = tuple(window for window in query.windows if window[0] != alias)
    yield plain_query(query.name, relations, conditions, projection, windows)


def _reads(expression: Expression, alias: str) -> bool:
    return any(found == alias for found, _ in expression.columns)


def _components(relations: Iterable[tuple[str, str]], conditions: Iterable[Expression]) -> int:
    """Return into how many unjoined parts the relations fall."""
    parts = [{alias} for alias, _ in relations]
    for condition in conditions:
        read = {alias for alias, _ in condition.columns}
        touched = [part for part in parts if part & read]
        parts = [part for part in parts if not part & read] + ([set().union(*touched)] if touched else [])
    return len(parts)


def _reference(alias: str, name: str) -> str:
    return f"{alias}.{quoted(name)}"


def _bracketed(text: str) -> str:
    return f"({text})" if " OR " in text else text
