"""Join predicates once the types of their operands are known: what an index can look up, and what DuckDB evaluates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

from plait.errors import UnsupportedQueryError
from plait.query.model import Operand, Query, Source, SourceExpression, Theta
from plait.sql.coercions import Untranslatable
from plait.sql.names import backquoted
from plait.sql.operations import taken_apart
from plait.sql.spans import signed_literal, span_of
from plait.sql.spark_settings import UTC
from plait.sql.text import SourceText, scan
from plait.sql.tokens import rendered, tokenize
from plait.sql.translation import translated


def resolve_thetas(query: Query, type_of: Callable[[Operand], str], *, time_zone: str = "UTC") -> Query:
    """Return the query with `types`, `span`, `is_span` and `evaluated` of its theta predicates filled in.

    `type_of` is asked for operands, and for parts of them: ``b.ts`` of ``b.ts + INTERVAL 5 MINUTES``. `time_zone`:
    ``spark.sql.session.timeZone``. Raises UnsupportedQueryError for a predicate that DuckDB may evaluate differently
    from Spark.
    """
    asked = cache(type_of)
    return replace(query, thetas=tuple(_resolved(query, theta, asked, time_zone) for theta in query.thetas))


def resolve_known_thetas(query: Query, sources: Mapping[str, Source]) -> Query:
    """Return the query with those theta predicates resolved whose operands are columns of declared types.

    The types of other operands are Spark's to tell. Raises UnsupportedQueryError as `resolve_thetas` does.
    """

    def type_of(operand: Operand) -> str:
        source = sources.get(query.relation(operand.relation).source)
        for column in (source.schema if source else None) or ():
            if operand.expression == SourceExpression(sql=backquoted(column.name), columns=(column.name,)):
                return column.type
        raise _UnknownType

    found = []
    for theta in query.thetas:
        try:
            found.append(_resolved(query, theta, type_of, "UTC"))
        except _UnknownType:
            found.append(theta)
    return replace(query, thetas=tuple(found))


class _UnknownType(Exception):
    """The type of an operand is not declared."""


def _resolved(query: Query, theta: Theta, type_of: Callable[[Operand], str], time_zone: str) -> Theta:
    types = tuple(type_of(operand) for operand in theta.operands)
    if theta.function is not None:
        return replace(theta, types=types)
    is_utc = time_zone.lower() in UTC
    order = [relation.alias for relation in query.relations]
    span, is_span = span_of(theta, type_of, order, is_utc=is_utc) or (None, False)
    if is_span:
        return replace(theta, types=types, span=span, is_span=True)
    try:
        never_zero = {position for position, operand in enumerate(theta.operands) if _is_never_zero(operand)}
        evaluated = translated(theta.sql, types, never_zero=never_zero, time_zone=None if is_utc else time_zone)
    except Untranslatable as problem:
        raise UnsupportedQueryError(
            f"query '{query.name}': Plait cannot check {shown(theta)} as Spark would: {problem.reason}; "
            f"{problem.advice}, or register a predicate in Python with engine.predicate(name, function)"
        ) from problem
    return replace(theta, types=types, span=span, evaluated=evaluated)


def _is_never_zero(operand: Operand) -> bool:
    """Tell whether an operand is ``nullif(x, 0)``."""
    text = operand.expression.sql
    operation = taken_apart(text, tokenize(SourceText(text=text), scan(text).masked, 0, len(text)))
    if operation is None or operation.name != "nullif" or len(operation.parts) != 2:
        return False
    found = signed_literal(text, operation.parts[1])
    return found is not None and not isinstance(found.value, str | bool | None) and found.value == 0


def shown(theta: Theta) -> str:
    """Return a predicate for people: ``(a.`x` < b.`y`)``."""
    tokens = tokenize(SourceText(text=theta.sql), scan(theta.sql).masked, 0, len(theta.sql))
    names = {
        token.start: (token.end, _named(theta.operands[int(token.value)])) for token in tokens if token.kind == "quoted"
    }
    return rendered(theta.sql, tokens, names)


def _named(operand: Operand) -> str:
    text = operand.expression.sql
    tokens = tokenize(SourceText(text=text), scan(text).masked, 0, len(text))
    columns = {
        token.start: (token.end, f"{operand.relation}.{text[token.start : token.end]}")
        for index, token in enumerate(tokens)
        if token.kind == "quoted" and not (index and tokens[index - 1].is_symbol("."))
    }
    written = rendered(text, tokens, columns)
    return f"({written})" if taken_apart(text, tokens) is not None else written
