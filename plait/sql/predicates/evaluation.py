"""Join predicates once the types of their operands are known: what an index can look up, and what DuckDB evaluates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, reduce
from typing import Final

from plait.errors import UnsupportedQueryError
from plait.query.model import Operand, Query, Source, with_predicates
from plait.query.predicates import Conjunction, Predicate, Residual, by_kind, operands_of
from plait.sql.expressions.inference import type_over
from plait.sql.lexis.operations import taken_apart
from plait.sql.lexis.tokens import rendered, tokens_of
from plait.sql.predicates.bands import band_of, signed_literal
from plait.sql.predicates.coercions import Untranslatable, Value
from plait.sql.predicates.translation import condition_of

UTC: Final = frozenset({"utc", "etc/utc", "z", "gmt", "etc/gmt", "+00:00", "universal", "zulu"})
"""Names of the one time zone results are right in, in lower case."""


def resolve_residuals(query: Query, type_of: Callable[[Operand], str], *, time_zone: str = "UTC") -> Query:
    """Return the query with the types of what no equality says, the bands that it implies, and what DuckDB evaluates.

    `type_of` is asked for operands, and for parts of them: ``b.ts`` of ``b.ts + INTERVAL 5 MINUTES``. `time_zone`:
    ``spark.sql.session.timeZone``. Raises UnsupportedQueryError for a predicate that DuckDB may evaluate differently
    from Spark.
    """
    asked = cache(type_of)

    def resolved(predicates: Conjunction[Operand]) -> Conjunction[Operand]:
        found = [predicate for each in predicates for predicate in _resolved(query, each, asked, time_zone)]
        return _with_guards(found, time_zone)

    return with_predicates(query, resolved)


def resolve_known_residuals(query: Query, sources: Mapping[str, Source]) -> Query:
    """Return the query with those residual predicates resolved whose operands are columns of declared types.

    The types of other operands are Spark's to tell. Raises UnsupportedQueryError as `resolve_residuals` does.
    """

    def type_of(operand: Operand) -> str:
        source = sources.get(query.relation(operand.relation).source)
        type_ = None if source is None else type_over(source, operand.expression)
        if type_ is not None:
            return type_
        raise _UnknownType

    def resolved(predicates: Conjunction[Operand]) -> Conjunction[Operand]:
        found: list[Predicate[Operand]] = []
        for predicate in predicates:
            try:
                found += _resolved(query, predicate, type_of, "UTC")
            except _UnknownType:
                found.append(predicate)
        return _with_guards(found, "UTC")

    return with_predicates(query, resolved)


class _UnknownType(Exception):
    """The type of an operand is not declared."""


def _resolved(
    query: Query, predicate: Predicate[Operand], type_of: Callable[[Operand], str], time_zone: str
) -> Conjunction[Operand]:
    if not isinstance(predicate, Residual):
        return (predicate,)
    residual = predicate.moved(lambda operand: replace(operand, type=type_of(operand)))
    if residual.is_function:
        return (residual,)
    is_utc = time_zone.lower() in UTC
    order = [relation.alias for relation in query.relations]
    band, is_all = band_of(predicate, type_of, order, is_utc=is_utc) or (None, False)
    implied = () if band is None else (band,)
    if is_all:
        return implied
    try:
        evaluated = _evaluated(residual, time_zone).sql
    except Untranslatable as problem:
        place = predicate.place or query.place
        raise UnsupportedQueryError(
            f"query '{query.name}': Plait cannot check {residual_text(residual)} as Spark would: {problem.reason}; "
            f"{problem.advice}, or register a predicate in Python with engine.predicate(name, function)",
            line=place.line,
            column=place.column,
            file=place.file,
        ) from problem
    return (*implied, replace(residual, sql=evaluated))


def _evaluated(residual: Residual[Operand], time_zone: str) -> Value:
    types = [operand.type or "" for operand in residual.operands]
    never_zero = {position for position, operand in enumerate(residual.operands) if _is_never_zero(operand)}
    zone = None if time_zone.lower() in UTC else time_zone
    return condition_of(residual.text, types, never_zero=never_zero, time_zone=zone)


def _with_guards(predicates: Sequence[Predicate[Operand]], time_zone: str) -> Conjunction[Operand]:
    """Return the predicates, each once, those that can fail as one with what is written before them of the same two
    relations: Spark evaluates these first, and a plan keeps no order among predicates.
    """
    kept: list[Predicate[Operand]] = []
    for predicate in dict.fromkeys(predicates):
        if _can_fail(predicate, time_zone):
            guards = [each for each in kept if _is_typed(each) and _relations(each) == _relations(predicate)]
            if guards:
                kept = [each for each in kept if each not in guards]
                predicate = _all_of([*guards, predicate], time_zone)
        kept.append(predicate)
    return tuple(kept)


def _can_fail(predicate: Predicate[Operand], time_zone: str) -> bool:
    return isinstance(predicate, Residual) and _is_typed(predicate) and _evaluated(predicate, time_zone).can_fail


def _is_typed(predicate: Predicate[Operand]) -> bool:
    """Tell whether DuckDB evaluates it, and the types of its operands are known."""
    return (
        isinstance(predicate, Residual)
        and not predicate.is_function
        and all(operand.type is not None for operand in predicate.operands)
    )


def _relations(predicate: Predicate[Operand]) -> frozenset[str]:
    return frozenset(operand.relation for operand in operands_of(predicate))


def _all_of(predicates: Sequence[Predicate[Operand]], time_zone: str) -> Residual[Operand]:
    """Return residual predicates as one, in their order."""
    residuals = by_kind(predicates).residuals
    numbers = {operand: n for n, operand in enumerate(dict.fromkeys(o for each in residuals for o in each.operands))}
    texts = [_renumbered(each, numbers) for each in residuals]
    text = reduce(lambda left, right: f"({left} AND {right})", texts)
    whole = Residual(operands=tuple(numbers), sql=text, text=text, place=residuals[-1].place)
    return replace(whole, sql=_evaluated(whole, time_zone).sql)


def _renumbered(residual: Residual[Operand], numbers: Mapping[Operand, int]) -> str:
    tokens = tokens_of(residual.text)
    places = {
        token.start: (token.end, f"`{numbers[residual.operands[int(token.value)]]}`")
        for token in tokens
        if token.kind == "quoted"
    }
    return rendered(residual.text, tokens, places)


def _is_never_zero(operand: Operand) -> bool:
    """Tell whether an operand is ``nullif(x, 0)``."""
    text = operand.expression.sql
    operation = taken_apart(text, tokens_of(text))
    if operation is None or operation.name != "nullif" or len(operation.parts) != 2:
        return False
    constant = signed_literal(text, operation.parts[1])
    return constant is not None and not isinstance(constant.value, str | bool | None) and constant.value == 0


def residual_text(residual: Residual[Operand]) -> str:
    """Return a predicate for people: ``(a.`x` < b.`y`)``."""
    tokens = tokens_of(residual.text)
    names = {
        token.start: (token.end, operand_text(residual.operands[int(token.value)]))
        for token in tokens
        if token.kind == "quoted"
    }
    return rendered(residual.text, tokens, names)


def operand_text(operand: Operand) -> str:
    """Return an operand for people: ``a.`x```."""
    text = operand.expression.sql
    tokens = tokens_of(text)
    columns = {
        token.start: (token.end, f"{operand.relation}.{text[token.start : token.end]}")
        for index, token in enumerate(tokens)
        if token.kind == "quoted" and not (index and tokens[index - 1].is_symbol("."))
    }
    written = rendered(text, tokens, columns)
    return f"({written})" if taken_apart(text, tokens) is not None else written
