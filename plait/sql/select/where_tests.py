"""``[NOT] EXISTS (SELECT ...)`` and ``x [NOT] IN (SELECT ...)`` in WHERE: semi and anti joins in other words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from plait.errors import UnsupportedQueryError
from plait.sql.lexis.cursor import Cursor
from plait.sql.lexis.operations import conjuncts
from plait.sql.lexis.tokens import Token, depths, without_outer_parentheses
from plait.sql.select.syntax import RelationSyntax, SelectSyntax, Tokens, parse_select, refuse_subqueries


@dataclass(frozen=True, slots=True, kw_only=True)
class WhereTest:
    """A test whether a relation has a row for which all of `conditions` hold. `compared`: the two sides of IN;
    `listed`: what EXISTS selects, which must mean something although nobody reads it; `tokens`: all of it.
    """

    relation: RelationSyntax
    tokens: Tokens
    conditions: tuple[Tokens, ...]
    compared: tuple[Tokens, Tokens] | None = None
    listed: tuple[Tokens, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WhereSyntax:
    """WHERE taken apart: conditions on the joined row, and tests, all of which must hold."""

    conditions: tuple[Tokens, ...]
    tests: tuple[WhereTest, ...]


def split_where(cursor: Cursor, syntax: SelectSyntax) -> WhereSyntax:
    """Take WHERE apart. Raises UnsupportedQueryError for subqueries anywhere else."""
    elsewhere = (*syntax.items, *syntax.groups, syntax.having or ())
    for tokens in (*elsewhere, *(relation.on or () for relation in syntax.relations)):
        refuse_subqueries(cursor, tokens)
    conditions: list[Tokens] = []
    tests: list[WhereTest] = []
    for conjunct in conjuncts(syntax.where) if syntax.where else ():
        test = _test(cursor, conjunct)
        if test is None:
            refuse_subqueries(cursor, conjunct)
            conditions.append(conjunct)
            continue
        test = replace(test, tokens=conjunct)
        if test.compared is not None:
            refuse_subqueries(cursor, test.compared[0])
        if test.compared is not None and test.relation.join == "anti":
            _require_no_nulls(cursor, test, list(conjuncts(syntax.where or ())))
        tests.append(test)
    return WhereSyntax(conditions=tuple(conditions), tests=tuple(tests))


def _test(cursor: Cursor, conjunct: Sequence[Token]) -> WhereTest | None:
    tokens = without_outer_parentheses(conjunct)
    is_negated = tokens[0].keyword == "NOT"
    tokens = without_outer_parentheses(tokens[1:]) if is_negated and len(tokens) > 1 else tokens
    opens = _last_group(tokens)
    if opens is None or _is_either(tokens) or opens == 0 or tokens[opens + 1].keyword != "SELECT":
        return None
    inner, before = tokens[opens + 1 : -1], tokens[:opens]
    if before[-1].keyword == "EXISTS" and len(before) == 1:
        return _of(cursor, inner, None, before[0], "anti" if is_negated else "semi")
    if before[-1].keyword != "IN" or len(before) < 2:
        return None
    left, at = before[:-1], before[-1]
    if left[-1].keyword == "NOT" and len(left) > 1:
        left, at, is_negated = left[:-1], left[-1], not is_negated
    if left[0].keyword == "NOT":
        return None
    return _of(cursor, inner, left, at, "anti" if is_negated else "semi")


def _is_either(tokens: Sequence[Token]) -> bool:
    """Tell whether the test would be one side of OR, which binds less than IN: ``a OR b IN (...)``."""
    return any(depth == 0 and token.keyword == "OR" for _, depth, token in depths(tokens))


def _last_group(tokens: Sequence[Token]) -> int | None:
    """Return where the parenthesis opens that the last token closes."""
    if not tokens or not tokens[-1].is_symbol(")"):
        return None
    depth = 0
    for place in range(len(tokens) - 1, -1, -1):
        depth += tokens[place].is_symbol(")") - tokens[place].is_symbol("(")
        if depth == 0:
            return place
    return None


def _of(cursor: Cursor, inner: Tokens, left: Tokens | None, at: Token, kind: Literal["semi", "anti"]) -> WhereTest:
    select = parse_select(Cursor(cursor.source, cursor.masked, inner, inner[-1].end))
    if len(select.relations) > 1:
        message = (
            "Plait does not run a subquery over several relations: join them in a query of their own, or write one "
            "EXISTS for each"
        )
        raise cursor.error(message, select.relations[1].source, UnsupportedQueryError)
    if select.groups and select.at is not None:
        message = "Plait does not run GROUP BY in a subquery: group in a query of its own, and join where that is read"
        raise cursor.error(message, select.at, UnsupportedQueryError)
    conditions = tuple(conjuncts(select.where)) if select.where else ()
    for tokens in (*select.items, *conditions):
        refuse_subqueries(cursor, tokens)
    compared = None
    if left is not None:
        if len(select.items) != 1:
            raise cursor.error("IN compares with one column; select one in the subquery", select.items[0][0])
        compared = left, _without_alias(select.items[0])
    relation = replace(select.relations[0], join=kind, at=at, in_where=True)
    listed = select.items if compared is None else ()
    return WhereTest(relation=relation, tokens=inner, conditions=conditions, compared=compared, listed=listed)


def _without_alias(item: Tokens) -> Tokens:
    names = [place for place, depth, token in depths(item) if depth == 0 and token.keyword == "AS"]
    return item[: names[-1]] if names and names[-1] else item


def _require_no_nulls(cursor: Cursor, test: WhereTest, conditions: Sequence[Tokens]) -> None:
    """Refuse NOT IN where a NULL on either side would make it neither true nor false for rows without a partner."""
    assert test.compared is not None
    for side, among in zip(test.compared, (conditions, test.conditions), strict=True):
        wanted = [*_words(side), "IS", "NOT", "NULL"]
        if not any(_words(without_outer_parentheses(each)) == wanted for each in among):
            written = cursor.source.text[side[0].start : side[-1].end]
            message = (
                f"Plait does not run NOT IN where '{written}' may be NULL: one NULL in the subquery, and it is true of "
                f"no row; add {written} IS NOT NULL {'to WHERE' if side is test.compared[0] else 'to its WHERE'}, or "
                "write NOT EXISTS"
            )
            raise cursor.error(message, test.relation.at, UnsupportedQueryError)


def _words(tokens: Sequence[Token]) -> list[str]:
    return [token.value if token.kind == "string" else token.keyword or token.value.lower() for token in tokens]


__all__ = ["WhereSyntax", "WhereTest", "split_where"]
