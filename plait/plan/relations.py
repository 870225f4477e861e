"""What a relation of a query becomes inside a plan, where there are no aliases."""

from __future__ import annotations

import re
from collections.abc import Collection

from plait.plan.model import KeyColumn, Member, Requirement, Selection, ValueColumn
from plait.query.model import Equality, Operand, OrderedType, Query, Relation, SourceExpression, Span, Theta

_PLAIN_STORE = re.compile(r"[\w/.-]+|.+⋈.+~[0-9a-f]{8}")

UNKNOWN_TYPE = "?"
"""Stands for the common type of an equality until Spark has been asked (`Equality.type` is None)."""


def ordinal_of(query: Query, alias: str) -> int:
    """Count the earlier occurrences of the relation's source in FROM order."""
    same = [relation.alias for relation in query.relations if relation.source == query.relation(alias).source]
    return same.index(alias)


def selection_of(relation: Relation) -> Selection:
    """Return the relation's conjuncts, each once, ordered by text: what makes two selections the same."""
    if relation.alternatives:
        found = {each.sql: each for each in map(_conjunction, relation.alternatives)}
        return Selection(any_of=tuple(found[sql] for sql in sorted(found)))
    return _conjunction(relation.selections)


def _conjunction(conjuncts: tuple[SourceExpression, ...]) -> Selection:
    distinct = {conjunct.sql: conjunct for conjunct in conjuncts}
    return Selection(conjuncts=tuple(distinct[sql] for sql in sorted(distinct)))


def window_of(relation: Relation) -> int | None:
    """Return the relation's window; a table has none."""
    return None if relation.is_table else relation.window_us


def key_of(operand: Operand, equality: Equality) -> KeyColumn:
    """Return the key column behind one side of an equality."""
    return KeyColumn(expression=operand.expression, type=equality.type or UNKNOWN_TYPE)


def span_keys(span: Span) -> tuple[KeyColumn, KeyColumn]:
    """Return the keys whose difference a theta predicate bounds, left and right."""
    return ordered_key(span.left, span.type), ordered_key(span.right, span.type)


def ordered_key(operand: Operand, type_: OrderedType) -> KeyColumn:
    """Return the key column whose int64 has the order of an operand's values."""
    by_size = KeyColumn(expression=operand.expression, type=type_).encoding == "hash"
    return KeyColumn(expression=operand.expression, type=type_, by_size=by_size)


def keys_of(query: Query, alias: str) -> tuple[KeyColumn, ...]:
    """Return the keys of a relation, each once, ordered by name."""
    found = [
        key_of(operand, equality)
        for equality in query.equalities
        for operand in (equality.left, equality.right)
        if operand.relation == alias
    ]
    for theta in query.thetas:
        if theta.span is not None:
            sides = zip((theta.span.left, theta.span.right), span_keys(theta.span), strict=True)
            found += [key for operand, key in sides if operand.relation == alias]
    keys = {key.name: key for key in found}
    return tuple(keys[name] for name in sorted(keys))


def operand_name(theta: Theta, number: int) -> str:
    """Return the column in which an operand of a theta predicate is kept: the user's own if it is one."""
    operand = _operand(theta, number)
    return operand if isinstance(operand, str) else operand.name


def _operand(theta: Theta, number: int) -> str | ValueColumn:
    expression = theta.operands[number].expression
    bare = expression.columns[:1]
    if bare and expression.sql == "`" + bare[0].replace("`", "``") + "`":
        return bare[0]
    return ValueColumn(expression=expression, type=UNKNOWN_TYPE if theta.types is None else theta.types[number])


def operands_of(query: Query, alias: str, others: Collection[str] | None = None) -> tuple[str | ValueColumn, ...]:
    """Return what the formulas of a query read of a relation: columns of the user, and values that Spark computes.

    `others`: only formulas that also concern one of these.
    """
    return tuple(
        _operand(theta, number)
        for theta in query.thetas
        if not theta.is_span and (others is None or set(theta.relations) & set(others))
        for number, operand in enumerate(theta.operands)
        if operand.relation == alias
    )


def requirement_of(query: Query, relation: Relation) -> Requirement:
    """Return why a store keeps tuples for this relation."""
    return Requirement(selection=selection_of(relation), keys=tuple(key.name for key in keys_of(query, relation.alias)))


def columns_of(query: Query, alias: str) -> tuple[str, ...]:
    """Return the columns of a relation that the projection reads after the join, ordered by name."""
    read = {column for output in query.output for column in output.expression.columns}
    return tuple(sorted(column.column for column in read if column.relation == alias))


def member_name(member: Member) -> str:
    """Return the store and, beyond the first occurrence in a query, the ordinal: ``orders#1``."""
    return f"{store_name(member.store)}#{member.ordinal}" if member.ordinal else store_name(member.store)


def store_name(store_id: str) -> str:
    """Return the id of a store, in backquotes if it could be taken for something else, an edge for instance."""
    return store_id if _PLAIN_STORE.fullmatch(store_id) else "`" + store_id.replace("`", "``") + "`"
