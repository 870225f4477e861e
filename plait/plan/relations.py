"""What a relation of a query becomes inside a plan, where there are no aliases."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from typing_extensions import assert_never

from plait.plan.model import KeyColumn, Member, Plan, Requirement, Selection, ValueColumn
from plait.query.model import Column, Operand, Query, Relation, SourceExpression, Waiting, relations_of
from plait.query.predicates import Band, Equality, Order, Residual
from plait.query.remembering import remembered
from plait.query.types import is_calendar
from plait.spelling import backquoted

_PLAIN_STORE = re.compile(r"[\w/.-]+|.+⋈.+~[0-9a-f]{8}\+?")
_OWN_STORE = re.compile(r"(?:[^/]|//)*/((?:[^/]|//)+)")

_REMEMBERED = 1 << 13
"""Of so many relations of queries: each request of a user asks about those of all queries there are."""

UNKNOWN_TYPE = "?"
"""Stands for the type of an operand until Spark has been asked (`Operand.type` is None)."""


@remembered(1 << 12)  # planning asks about the same few relations at every step
def selection_of(relation: Relation) -> Selection:
    """Return the relation's conjuncts, each once, ordered by text: what makes two selections the same."""
    conjunctions: dict[str, Selection] = {}
    for conjuncts in relation.alternatives or (relation.selections,):
        selection = _conjunction(conjuncts)
        conjunctions[selection.sql] = selection
    if relation.alternatives:
        return Selection(any_of=tuple(conjunctions[sql] for sql in sorted(conjunctions)))
    return selection


def waiting_selections(waiting: Waiting) -> tuple[Selection, ...]:
    """Return what is kept of a relation until its rows are certain, then the same with each condition that is told."""
    kept = tuple(waiting.selections)
    return tuple(_conjunction(each) for each in (kept, *((*kept, condition) for condition in waiting.conditions)))


def _conjunction(conjuncts: Iterable[SourceExpression]) -> Selection:
    distinct = {conjunct.sql: conjunct for conjunct in conjuncts}
    return Selection(conjuncts=tuple(distinct[sql] for sql in sorted(distinct)))


def window_of(relation: Relation) -> int | None:
    """Return the relation's window; a table has none."""
    return None if relation.is_table else relation.window_us


def key_of(operand: Operand, order: Order | None = None) -> KeyColumn:
    """Return the key column behind one side of an equality, or of a band with this order."""
    key = KeyColumn(expression=operand.expression, type=operand.type or UNKNOWN_TYPE)
    return key if order is None or key.encoding == order else replace(key, by_size=True)


@remembered(_REMEMBERED)
def keys_of(query: Query, alias: str) -> tuple[KeyColumn, ...]:
    """Return the keys of a relation, each once, ordered by name."""
    keys: dict[str, KeyColumn] = {}
    for predicate in query.predicates:
        match predicate:
            case Equality() | Band():
                order = predicate.order if isinstance(predicate, Band) else None
                sides = (side for side in (predicate.left, predicate.right) if side.relation == alias)
                keys.update((key.name, key) for key in (key_of(side, order) for side in sides))
            case Residual():
                pass
            case _:
                assert_never(predicate)
    return tuple(keys[name] for name in sorted(keys))


def operand_name(operand: Operand) -> str:
    """Return the column in which an operand of a residual predicate is kept: the user's own if it is one."""
    column = _operand(operand)
    return column if isinstance(column, str) else column.name


def _operand(operand: Operand) -> str | ValueColumn:
    expression = operand.expression
    bare = expression.columns[:1]
    if bare and expression.sql == backquoted(bare[0]) and not is_calendar(operand.type or UNKNOWN_TYPE):
        return bare[0]
    return ValueColumn(expression=expression, type=operand.type or UNKNOWN_TYPE)


def bare_value(column: Column) -> ValueColumn:
    """Return a column of the user, of a type that no task can hold, as the value that Spark makes of it."""
    expression = SourceExpression(sql=backquoted(column.name), columns=(column.name,))
    return ValueColumn(expression=expression, type=column.type)


def values_read(query: Query, alias: str, others: Collection[str] | None = None) -> tuple[str | ValueColumn, ...]:
    """Return what the residual predicates of a query read of a relation: columns of the user, and values that Spark
    computes.

    `others`: only predicates that also concern one of these.
    """
    return tuple(
        _operand(operand)
        for residual in query.residuals
        if others is None or set(relations_of(residual)) & set(others)
        for operand in residual.operands
        if operand.relation == alias
    )


@remembered(_REMEMBERED)
def requirement_of(query: Query, relation: Relation) -> Requirement:
    """Return why a store keeps tuples for this relation."""
    return Requirement(selection=selection_of(relation), keys=tuple(key.name for key in keys_of(query, relation.alias)))


@remembered(_REMEMBERED)
def requirements_of(query: Query, relation: Relation) -> tuple[Requirement, ...]:
    """Return all reasons why a store keeps tuples for this relation: that it joins, and that it may have no partner."""
    waiting = () if relation.waiting is None else waiting_selections(relation.waiting)
    return (requirement_of(query, relation), *(Requirement(selection=each, keys=()) for each in waiting))


def kept_us_of(relation: Relation) -> int | None:
    """Return how long a store keeps tuples for this relation, in microseconds; None: for ever."""
    if relation.waiting is None:
        return window_of(relation)
    return widest_window((window_of(relation), relation.waiting.kept_us))


@remembered(_REMEMBERED)
def projected_columns(query: Query, alias: str) -> tuple[str, ...]:
    """Return the columns of a relation that the projection reads after the join, ordered by name."""
    read = {column for output in query.output for column in output.expression.columns}
    return tuple(sorted(column.column for column in read if column.relation == alias))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreNeed:
    """What a relation of a query needs of the store of its source: `requirements` say which tuples; `columns` of the
    user, `keys` and `values` what of them; `kept_us` how long, in microseconds, None: for ever. `waits`: it may have
    rows without a partner, or with the first one only.
    """

    alias: str
    source: str
    requirements: tuple[Requirement, ...]
    projected: frozenset[str]
    columns: frozenset[str]
    keys: tuple[KeyColumn, ...]
    values: tuple[ValueColumn, ...]
    kept_us: int | None
    waits: bool


@remembered(_REMEMBERED)  # of hundreds of queries each time that one of them comes or goes
def needs_of(query: Query) -> tuple[StoreNeed, ...]:
    """Return what each relation of a query needs of a store, in the order of FROM."""
    return tuple(_need_of(query, relation) for relation in query.relations)


def _need_of(query: Query, relation: Relation) -> StoreNeed:
    read, projected = values_read(query, relation.alias), projected_columns(query, relation.alias)
    return StoreNeed(
        alias=relation.alias,
        source=relation.source,
        requirements=requirements_of(query, relation),
        projected=frozenset(projected),
        columns=frozenset((*projected, *(each for each in read if isinstance(each, str)))),
        keys=keys_of(query, relation.alias),
        values=tuple(each for each in read if not isinstance(each, str)),
        kept_us=kept_us_of(relation),
        waits=relation.waiting is not None,
    )


def member_name(member: Member) -> str:
    """Return the store and, beyond the first occurrence in a query, the ordinal: ``orders#1``."""
    return f"{store_name(member.store)}#{member.ordinal}" if member.ordinal else store_name(member.store)


def own_store(query: str, source: str) -> str:
    """Return the id of a store that keeps a source's tuples for one query alone, "" for none at all."""
    return f"{query.replace('/', '//')}/{source.replace('/', '//')}"


def store_for(plan: Plan, query: str, source: str) -> str:
    """Return the id of the store that keeps a source's tuples for a query: its own where it has one."""
    own = own_store(query, source)
    return own if any(store.id == own for store in plan.stores) else source


StoreName: TypeAlias = Callable[[str, str], str]
"""(query, source) → id of the store that keeps the source's tuples for the query."""


def one_per_source(query: str, source: str) -> str:
    """Let all queries share the store of a source."""
    return source


def one_per_query(query: str, source: str) -> str:
    """Give every query its own store."""
    return own_store(query, source)


def source_of(store_id: str) -> str:
    """Return whose tuples a store of this id keeps, if it is that of a source: its own one, or a query's."""
    own = _OWN_STORE.fullmatch(store_id)
    return store_id if own is None else own[1].replace("//", "/")


def store_name(store_id: str) -> str:
    """Return the id of a store, in backquotes if it could be taken for something else, an edge for instance."""
    return store_id if _PLAIN_STORE.fullmatch(store_id) else backquoted(store_id)


def widest_window(windows: Iterable[int | None]) -> int | None:
    """Return the largest window, None if one is unbounded."""
    listed = list(windows)
    bounded = [window for window in listed if window is not None]
    return max(bounded) if len(bounded) == len(listed) else None
