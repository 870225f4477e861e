"""Whose results cannot be computed, where an expression fails for some row.

Failures are collected, not raised where they happen, so that one attempt of a batch finds all of them: what fails is
taken for not true, the task goes on, and its report says so. Nothing of such an attempt is ever committed.

An expression that several queries have fails for all of them. Where they share a step that is as wide as the widest of
them, those that take everything the step compares would fail alone as well; those that take less may not, and are
judged by the next attempt, which goes without the others. If there are only such, all are to blame.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from plait.errors import ComputationError, Failure, PredicateError
from plait.operators.reports import ProbeReport
from plait.plan.model import Member, Output, Place, Plan, ProbeTree, Step, ValueColumn
from plait.plan.relations import keys_of, operand_name, requirements_of, source_of, values_read
from plait.plan.traversals import path_members, split_part
from plait.query.model import Operand, Query, Relation
from plait.query.predicates import Residual
from plait.query.remembering import remembered


def failure_of_step(error: PredicateError, plan: Plan, tree: ProbeTree, edge: str) -> Failure:
    """Return what has failed where partial results took an edge of a tree."""
    path, step = next(found for found in tree.walk() if found[1].edge == edge)
    members = path_members(tree.start, path)
    residual = error.predicate
    assert isinstance(residual, Residual), f"{error} is of no predicate"
    return Failure(
        reason=str(error),
        sql=residual.sql,
        operands=tuple(_operand(plan, members, step, place) for place in residual.operands),
        spared=_narrower(step, len(members) + len(step.members)),
    )


def _operand(plan: Plan, members: tuple[Member, ...], step: Step, place: Place[int | None]) -> tuple[str, str]:
    if place.at is not None:
        return source_of(members[place.at].store), place.name
    part, own = split_part(plan.store(step.member.store), place.name)
    return source_of(step.members[part].store), own


def _narrower(step: Step, positions: int) -> frozenset[str]:
    """Return the queries that take less than what a step has compared: less of its first `positions`."""
    outputs = list(_outputs(step))
    narrow = {each.query for each in outputs if any(own.position < positions for own in each.residual_filters)}
    wide = {each.query for each in outputs if not any(own.position < positions for own in each.residual_filters)}
    return frozenset(narrow - wide)


def _outputs(step: Step) -> Iterator[Output]:
    yield from step.outputs
    for child in step.children:
        yield from _outputs(child)


def require_computed(reports: Iterable[ProbeReport]) -> None:
    """Raise ComputationError if something could not be computed in one of these tasks."""
    failures = tuple(dict.fromkeys(failure for report in reports for failure in report.failures))
    if failures:
        raise computation_error(failures)


def computation_error(failures: tuple[Failure, ...]) -> ComputationError:
    """Return the error that tells of failures, of which there is one at least."""
    reasons = list(dict.fromkeys(failure.reason for failure in failures))
    others = f" ({len(reasons) - 1} more fail as well)" if len(reasons) > 1 else ""
    kind = PredicateError if failures[0].sql else ComputationError
    return kind(f"{reasons[0]}{others}", failures=failures)


def blamed(failures: Iterable[Failure], queries: Iterable[Query]) -> dict[str, str]:
    """Return which of these queries cannot be answered, and why."""
    found: dict[str, str] = {}
    asked = tuple(queries)
    for failure in failures:
        named = [query.name for query in asked if _concerns(failure, query)]
        certain = [name for name in named if name not in failure.spared]
        for name in certain or named:
            found.setdefault(name, failure.reason)
    return found


def _concerns(failure: Failure, query: Query) -> bool:
    if failure.query is not None:
        return failure.query == query.name
    if failure.sql:
        return any((failure.sql, failure.operands) == _identity(query, residual) for residual in query.residuals)
    relations = (relation for relation in query.relations if relation.source == failure.source)
    return any(failure.column in computed_of(query, relation) for relation in relations)


def _identity(query: Query, residual: Residual[Operand]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return what a residual predicate is known by in a plan, where there are no aliases."""
    operands = ((query.relation(each.relation).source, operand_name(each)) for each in residual.operands)
    return residual.sql, tuple(operands)


@remembered(1 << 12)
def computed_of(query: Query, relation: Relation) -> frozenset[str]:
    """Return what is computed of the rows of a relation for a query: keys and values by their columns, selections by
    their texts.
    """
    keys = keys_of(query, relation.alias)
    selections = (need.selection for need in requirements_of(query, relation))
    values = (each.name for each in values_read(query, relation.alias) if isinstance(each, ValueColumn))
    return frozenset(
        (
            *(each.sql for selection in selections for each in (selection, *selection.alternatives)),
            *(key.name for key in keys),
            *(key.value_name for key in keys if key.value_name is not None),
            *values,
        )
    )


__all__ = ["blamed", "computation_error", "computed_of", "failure_of_step", "require_computed"]
