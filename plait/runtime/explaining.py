"""Explain a plan of a run: with the statistics there are by now, beside the baselines and what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from plait.adapt.forecast import forecast
from plait.adapt.planning import PlanRequest
from plait.optimizer.advise.comparing import compare
from plait.optimizer.assemble.estimates import reestimated
from plait.optimizer.estimate.cardinality import Cardinality
from plait.plan.coverage import computes
from plait.plan.explain import EVERYTHING, ExplainFormat, Measured, Shown, checked_format, explain, wording
from plait.plan.explain.certain_wording import joins_notes
from plait.plan.model import Plan
from plait.query.model import Aggregation, ColumnRef, Operand, Query, with_predicates
from plait.query.predicates import Equality, Predicate
from plait.query.types import common_type, typed
from plait.sinks.delivery import Fold
from plait.spelling import backquoted
from plait.sql.select.folding import folding_of
from plait.sql.select.why_pairs import why_pairs
from plait.state.model import Manifest


def explained_plan(
    request: PlanRequest,
    plan: Plan,
    manifest: Manifest | None,
    measured: Measured | None,
    format: ExplainFormat,
    more: tuple[str, ...] = (),
    shown: Shown = EVERYTHING,
) -> str:
    """Return the explanation. Plan and baselines are estimated from the same statistics, those of `manifest`.
    `more`: what else the reader should know; `shown`: which part of the plan.

    Raises OptionError for an unknown format, and for a query or stream that is not there.
    """
    checked_format(format)
    statistics = forecast(request.options.sources, manifest)
    fits = computes(plan, request.queries)
    return explain(
        reestimated(plan, Cardinality(statistics=statistics)),
        format,
        comparison=compare(plan, request.queries, statistics, request.options) if fits else None,
        measured=measured,
        notes=(
            *_notes(plan, request.queries, fits, measured),
            *_of_joins(request.queries, shown),
            *_groupings(request, shown),
            *more,
        ),
        shown=shown,
    )


def _notes(plan: Plan, queries: tuple[Query, ...], fits: bool, measured: Measured | None) -> list[str]:
    if not fits:
        return [_difference(plan, queries)]
    if measured is None:
        return ["Estimates rest on what the sources declare; nothing has been measured yet"]
    notes = ["Estimates rest on what the sources declare and on what was measured where they are silent"]
    windows = [store.window_us for store in plan.stores if store.window_us is not None]
    if measured.span_us and windows and measured.span_us > min(windows) * measured.batches:
        length = wording.span(measured.span_us // measured.batches)
        notes.append(
            f"A batch brings {length} of event time, more than some windows ({wording.duration(min(windows))}): tuples "
            "that arrive together find each other from one side only, so edges differ more than their sum"
        )
    return notes


def _groupings(request: PlanRequest, shown: Shown) -> Iterator[str]:
    """Yield what becomes of the results of queries that group."""
    types = {
        (source.name, column.name): column.type for source in request.options.sources for column in source.schema or ()
    }
    for query in request.queries:
        aggregation = query.aggregation
        if aggregation is None or (shown.queries and query.name not in shown.queries):
            continue
        window = aggregation.window
        every = "" if window.slide_us == window.size_us else f" every {wording.duration(window.slide_us)}"
        far = "to" if not window.lag_us else f"{wording.duration(window.lag_us)} beyond"
        functions = f", with {', '.join(aggregation.functions)}" if aggregation.functions else ""
        yield (
            f"{query.name} groups what it joins by windows of {wording.duration(window.size_us)}{every} of "
            f"{window.relation}.{window.column}{functions}. {_kept(query, aggregation, types)} until its windows are "
            f"over: once the watermark has come {far} their end"
        )


def _kept(query: Query, aggregation: Aggregation, types: Mapping[tuple[str, str], str]) -> str:
    """Say what is kept of joined rows until they are grouped, as far as declared types tell."""
    read = [ref for column in query.output for ref in column.expression.columns]
    known = {ref: types.get((query.relation(ref.relation).source, ref.column)) for ref in read}
    found = {ref: type_ for ref, type_ in known.items() if type_ is not None}
    if len(found) < len(known):
        return "Partial aggregates are kept, or else the joined rows,"
    folding = folding_of(aggregation, found)
    if folding is None:
        return "Not all of that can be put together from parts, so the joined rows are kept"
    kept = f"Partial aggregates are kept for every {wording.duration(folding.fold.pane_us)} of event time"
    if len(query.relations) == 1:
        return kept
    return f"{_counted(_with_declared(query, types), folding.fold, found)}. {kept}"


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
        return "Matches of the relation that is joined last are counted, no pairs are made"
    if not counted:
        return f"Pairs are made of all matches, whichever is joined last: {', '.join(paired)}"
    return f"Where {' or '.join(counted)} is joined last matches are counted; pairs are made of {', '.join(paired)}"


def _of_joins(queries: tuple[Query, ...], shown: Shown) -> tuple[str, ...]:
    named = (query for query in queries if not shown.queries or query.name in shown.queries)
    return tuple(note for query in named for note in joins_notes(query))


def _difference(plan: Plan, queries: tuple[Query, ...]) -> str:
    asked = {query.name for query in queries}
    added, dropped = sorted(asked - set(plan.queries)), sorted(set(plan.queries) - asked)
    parts = [f"without {', '.join(added)}" if added else "", f"with {', '.join(dropped)}" if dropped else ""]
    how = " and ".join(part for part in parts if part) or "with other definitions"
    return f"This plan is for other queries than there are now ({how}), so it is not compared; the next run changes it"
