"""The FROM clause: relations, aliases, and what each join puts into scope. Joins and commas apply left to right."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from plait.errors import SqlError, UnsupportedQueryError
from plait.query.model import ColumnRef, Source, Stream
from plait.query.partners import TESTS
from plait.sql.expressions.expression_binder import ExpressionBinder
from plait.sql.expressions.scope import BoundRelation, SchemaUnknownError, Scope
from plait.sql.lexis.names import did_you_mean, folded, naming_problem
from plait.sql.lexis.operations import conjuncts
from plait.sql.lexis.tokens import Token
from plait.sql.predicates.sorting import Predicates
from plait.sql.select.syntax import RelationSyntax

MOST_RELATIONS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundJoin:
    """A relation that a join adds, and what its ON amounts to."""

    syntax: RelationSyntax
    alias: str
    predicates: Predicates


@dataclass(frozen=True, slots=True, kw_only=True)
class FromClause:
    """What results can show (`scope`) and all `relations`, also those that a join only looks into, with how they are
    joined, from the second on; `crosses`: aliases a CROSS JOIN puts side by side; `places`: where the relations are
    named.
    """

    scope: Scope
    relations: tuple[BoundRelation, ...]
    joins: tuple[BoundJoin, ...]
    crosses: tuple[tuple[str, str], ...]
    places: Mapping[str, Token]


def bind_from(
    relations: Sequence[RelationSyntax],
    sources: Mapping[str, Source],
    expressions: ExpressionBinder,
    new_predicates: Callable[[], Predicates],
    *,
    is_view: bool = False,
    views: Collection[str] = (),
) -> FromClause | None:
    """Bind the relations and the conditions of their joins; None if a relation itself is wrong.

    Relations that WHERE looks into come last, and have neither ON nor USING. `is_view`: tables alone are enough;
    `views`: what else there is, for advice.
    """
    before = len(expressions.problems)
    bound = _bind_relations(relations, sources, expressions, views, is_view=is_view)
    if len(expressions.problems) > before:
        return None
    scope, crosses, joins = Scope.of(bound[0]), list[tuple[str, str]](), list[BoundJoin]()
    for syntax, relation in zip(relations[1:], bound[1:], strict=True):
        right, predicates = Scope.of(relation), new_predicates()
        joins.append(BoundJoin(syntax=syntax, alias=relation.alias, predicates=predicates))
        if syntax.join == "cross":
            crosses.append((scope.relations[-1].alias, relation.alias))
        joined = scope.joined(right)
        if syntax.on is not None:
            for conjunct in conjuncts(syntax.on):
                condition = expressions.bind_condition(conjunct, joined)
                if condition is not None:
                    predicates.add(condition)
        merged = _merged(scope, right, syntax, expressions, predicates)
        if syntax.join not in TESTS:
            scope = merged or joined
    places = {relation.alias: syntax.source for syntax, relation in zip(relations, bound, strict=True)}
    return FromClause(scope=scope, relations=tuple(bound), joins=tuple(joins), crosses=tuple(crosses), places=places)


def _bind_relations(
    relations: Sequence[RelationSyntax],
    sources: Mapping[str, Source],
    expressions: ExpressionBinder,
    views: Collection[str],
    *,
    is_view: bool,
) -> list[BoundRelation]:
    by_name = {folded(name): source for name, source in sources.items()}
    bound: list[BoundRelation] = []
    for syntax in relations:
        source = by_name.get(folded(syntax.source.value))
        if source is None:
            known = [*sources, *views]
            hint = did_you_mean(syntax.source.value, known) or "; create it with CREATE STREAM or CREATE TABLE"
            expressions.report(f"there is no stream or table '{syntax.source.value}'{hint}", syntax.source)
            continue
        problem = naming_problem("stream or table", source.name)
        if problem:
            expressions.report(problem, syntax.source)
        at = syntax.alias or syntax.source
        alias = syntax.alias.value if syntax.alias else source.name
        if any(folded(known.alias) == folded(alias) for known in bound):
            message = f"two relations are called '{alias}'; give one another alias: {source.name} AS {alias}2"
            expressions.report(message, at)
        if "." in alias:
            expressions.report(f"the alias '{alias}' has a dot in it; choose one without", at)
        bound.append(BoundRelation(alias=alias, source=source))
    _check_kinds(relations, bound, expressions, is_view=is_view)
    return bound


def _check_kinds(
    relations: Sequence[RelationSyntax],
    bound: Sequence[BoundRelation],
    expressions: ExpressionBinder,
    *,
    is_view: bool,
) -> None:
    if len(relations) > MOST_RELATIONS:
        message = (
            f"Plait does not run joins of more than {MOST_RELATIONS} relations, this one has {len(relations)}; "
            "join some of them first, in a query of their own"
        )
        expressions.report(message, relations[MOST_RELATIONS].source, UnsupportedQueryError)
    has_stream = is_view or any(isinstance(relation.source, Stream) for relation in bound)
    if len(bound) == len(relations) and not has_stream:
        message = (
            "Plait does not run queries over tables alone: nothing would ever arrive; join a stream, or use spark.sql"
        )
        expressions.report(message, relations[0].source, UnsupportedQueryError)


def _merged(
    left: Scope, right: Scope, syntax: RelationSyntax, expressions: ExpressionBinder, predicates: Predicates
) -> Scope | None:
    """Return the scope after USING or NATURAL; None for other joins, and where something is wrong with it."""
    try:
        names = _common_names(left, right, syntax, expressions)
        pairs = [(_side(left, at, name, expressions), _side(right, at, name, expressions), at) for at, name in names]
    except SqlError as problem:
        expressions.problems.append(problem)
        return None
    for one, other, at in pairs:
        predicates.add_merge(one, _type_of(left, one), other, _type_of(right, other), at)
    shown = [(one, other) for one, other, _ in pairs]
    kind = syntax.join
    return left.merged(right, shown, shows_right=kind == "right", coalesces=kind == "full") if pairs else None


def _common_names(
    left: Scope, right: Scope, syntax: RelationSyntax, expressions: ExpressionBinder
) -> list[tuple[Token, str]]:
    if not syntax.natural:
        return [(column, column.value) for column in syntax.using or ()]
    for relation in left.unknown + right.unknown:
        message = (
            f"NATURAL JOIN needs the columns of '{relation.alias}', which are not known yet; declare them, or use USING"
        )
        raise expressions.text.error(message, syntax.source.start, SchemaUnknownError)
    names = [column.column for column in left.visible if right.named(column.column)]
    if not names:
        message = f"NATURAL JOIN finds no column of '{right.relations[0].alias}' on its left; write JOIN ... ON"
        raise expressions.text.error(message, syntax.source.start)
    return [(syntax.source, name) for name in names]


def _side(scope: Scope, at: Token, name: str, expressions: ExpressionBinder) -> ColumnRef:
    def complain(message: str) -> SqlError:
        return expressions.text.error(message, at.start)

    column = scope.unqualified(name, complain)
    if column is None:
        relations = ", ".join(f"'{relation.alias}'" for relation in scope.relations)
        hint = did_you_mean(name, (visible.column for visible in scope.visible))
        raise complain(f"column '{name}' of USING is missing in {relations}{hint}")
    other = scope.otherwise(column)
    if other is not None:
        message = (
            f"Plait does not run USING of '{name}', which an earlier FULL JOIN has merged of {column.name} and "
            f"{other.name}; write JOIN ... ON with one of them"
        )
        raise expressions.text.error(message, at.start, UnsupportedQueryError)
    return column


def _type_of(scope: Scope, column: ColumnRef) -> str | None:
    relation = scope.relation(column.relation)
    declared = relation.column(column.column) if relation else None
    return declared.type or None if declared else None
