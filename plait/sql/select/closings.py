"""What of queries comes by the watermark, as far as declared types tell what is kept until then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from plait.plan.explain.closings import Closing, Grouped, closing_of
from plait.query.model import ColumnRef, Operand, Query, Source, Stream, with_predicates
from plait.query.origin import UNTOLD
from plait.query.predicates import Equality, Predicate
from plait.query.types import common_type, typed
from plait.sinks.delivery import Fold
from plait.spelling import backquoted
from plait.sql.select.folding import folding_of
from plait.sql.select.why_pairs import why_pairs


def closings_of(queries: Iterable[Query], sources: Iterable[Source]) -> tuple[Closing, ...]:
    """Return it of each query of which something does, in their order."""
    read = list(sources)
    types = {(source.name, column.name): column.type for source in read for column in source.schema or ()}
    types = {column: type_ for column, type_ in types.items() if type_ != UNTOLD}
    derived = {source.name for source in read if isinstance(source, Stream) and source.derived is not None}
    found = (closing_of(query, _grouped(query, types), derived) for query in queries)
    return tuple(closing for closing in found if closing is not None)


def _grouped(query: Query, types: Mapping[tuple[str, str], str]) -> Grouped | None:
    aggregation = query.aggregation
    if aggregation is None:
        return None
    read = [ref for column in query.output for ref in column.expression.columns]
    known = {ref: types.get((query.relation(ref.relation).source, ref.column)) for ref in read}
    found = {ref: type_ for ref, type_ in known.items() if type_ is not None}
    if len(found) < len(known):
        return Grouped(window=aggregation.window, functions=aggregation.functions, keeps=None)
    folding = folding_of(aggregation, found)
    if folding is None:
        return Grouped(window=aggregation.window, functions=aggregation.functions, keeps="joined rows")
    by_name: Mapping[str, ColumnRef] = {ref.name: ref for ref in found}
    is_joined = len(query.relations) > 1
    return Grouped(
        window=aggregation.window,
        functions=aggregation.functions,
        keeps="partial aggregates",
        pane_us=folding.fold.pane_us if folding.fold.gap_us is None else None,
        keys=tuple(by_name[name] for name in folding.fold.keys),
        matches=_counted(_with_declared(query, types), folding.fold, found) if is_joined else None,
    )


def _with_declared(query: Query, types: Mapping[tuple[str, str], str]) -> Query:
    """Return the query with the types of equalities of columns that are declared, where Spark has not told them."""

    def known(operand: Operand) -> str:
        (column,) = operand.expression.columns if len(operand.expression.columns) == 1 else ("",)
        is_bare = operand.expression.sql == backquoted(column)
        return types.get((query.relation(operand.relation).source, column), "") if is_bare else ""

    def told(each: Predicate[Operand]) -> Predicate[Operand]:
        if not isinstance(each, Equality) or each.left.type is not None:
            return each
        return typed(each, common_type(known(each.left), known(each.right)))

    return with_predicates(query, lambda predicates: tuple(map(told, predicates)))


def _counted(query: Query, fold: Fold, types: Mapping[ColumnRef, str]) -> str:
    """Say of which relations matches are counted, and why pairs are made of others."""
    why = {relation.alias: why_pairs(query, fold, types, relation.alias) for relation in query.relations}
    counted = [alias for alias, reason in why.items() if reason is None]
    paired = [f"{alias} ({reason})" for alias, reason in why.items() if reason is not None]
    if not paired:
        return "matches of the relation that is joined last are counted, no pairs are made"
    if not counted:
        return f"pairs are made of all matches, whichever is joined last: {', '.join(paired)}"
    return f"where {' or '.join(counted)} is joined last matches are counted; pairs are made of {', '.join(paired)}"


__all__ = ["closings_of"]
