"""Whose results cannot be computed, where an expression fails for some row."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from plait.errors import ComputationError, Failure, PredicateError
from plait.operators.failing import blamed, computation_error, failure_of_step, require_computed
from plait.operators.reports import ProbeReport
from plait.plan.model import (
    KeyColumn,
    Member,
    Output,
    Place,
    Plan,
    ProbeTree,
    ResidualFilter,
    Selection,
    Step,
    Store,
)
from plait.query.model import Operand, Query
from plait.query.predicates import Residual
from tests.unit.optimizer.queries import equality, expression, query

SQL = '"0" / "1" > 2'


def residual(left: str = "x", right: str = "y") -> Residual[Operand]:
    operands = (("r", left), ("s", right))
    read = (Operand(relation=at, expression=expression(f"`{name}`"), type="bigint") for at, name in operands)
    return Residual(operands=tuple(read), sql=SQL, text="")


def dividing(name: str, left: str = "x", right: str = "y", source: str = "s") -> Query:
    return replace(query(name, {"r": "r", "s": source}), predicates=(residual(left, right),))


def store(name: str) -> Store:
    return Store(
        id=name,
        source=name,
        is_table=False,
        columns=("x", "y"),
        keys=(),
        requirements=(),
        indexes=(),
        partition_by=(),
        parallelism=1,
        window_us=None,
    )


def failed_in(*outputs: Output) -> Failure:
    """Return what fails where r probes s, for queries that end there."""
    members = {name: Member(store=name, ordinal=0, selection=Selection(), window_us=None) for name in "rs"}
    predicate = Residual(operands=(Place(0, "x"), Place(None, "y")), sql=SQL, text="")
    step = Step(edge="r→s", member=members["s"], predicates=(predicate,), outputs=outputs)
    tree = ProbeTree(start=members["r"], children=(step,))
    plan = Plan(strategy="fixed", queries=(), ranks=("r", "s"), stores=(store("r"), store("s")), trees=(tree,))
    return failure_of_step(PredicateError("no", predicate=predicate), plan, tree, "r→s")


def output(name: str, *filters: int) -> Output:
    own = tuple(ResidualFilter(position=position, window_us=1) for position in filters)
    return Output(query=name, positions=(("r", 0), ("s", 1)), residual_filters=own)


def test_all_queries_that_compute_the_same_of_the_same_columns_are_to_blame() -> None:
    others = (dividing("turned", "y", "x"), dividing("elsewhere", source="t"), query("equal", {"r": "r", "s": "s"}))
    failure = failed_in(output("one"), output("two"))
    assert failure.operands == (("r", "x"), ("s", "y"))
    assert blamed([failure], (dividing("one"), dividing("two"), *others)) == {"one": "no", "two": "no"}


def test_a_query_that_takes_less_of_a_step_than_others_is_not_judged_by_what_they_take() -> None:
    queries = (dividing("wide"), dividing("narrow"))
    assert blamed([failed_in(output("wide"), output("narrow", 1))], queries) == {"wide": "no"}


def test_where_all_take_less_than_a_step_compares_all_are_to_blame() -> None:
    queries = (dividing("one"), dividing("two"))
    assert sorted(blamed([failed_in(output("one", 0), output("two", 1))], queries)) == ["one", "two"]


def test_what_a_query_takes_less_of_further_on_does_not_spare_it() -> None:
    assert failed_in(output("one", 2), output("two")).spared == frozenset()


def test_queries_that_have_a_column_computed_of_a_source_are_to_blame_for_it() -> None:
    key = "r.lower(`x`) = s.y"
    keyed = query("keyed", {"r": "r", "s": "s"}, [equality(key, "string")])
    turned = query("turned", {"r": "s", "s": "r"}, [equality(key, "string")])
    name = KeyColumn(expression=expression("lower(`x`)"), type="string")
    for column in (name.name, name.value_name or ""):
        assert blamed([Failure(reason="no", source="r", column=column)], (keyed, turned)) == {"keyed": "no"}


def test_queries_with_a_selection_are_to_blame_for_it() -> None:
    queries = [query(name, {"r": "r"}, where={"r": (sql,)}) for name, sql in (("one", "`x` > 1"), ("two", "`x` > 2"))]
    assert blamed([Failure(reason="no", source="r", column="(`x` > 2)")], queries) == {"two": "no"}


def test_what_is_known_to_be_of_one_query_is_of_that_alone() -> None:
    assert blamed([Failure(reason="no", query="one")], (dividing("one"), dividing("two"))) == {"one": "no"}


def test_all_that_fails_is_told_at_once() -> None:
    first, second = Failure(reason="no", sql=SQL), Failure(reason="nor this", query="one")
    with pytest.raises(PredicateError, match=r"no \(1 more fail as well\)") as caught:
        require_computed([ProbeReport(failures=(first,)), ProbeReport(), ProbeReport(failures=(second, first))])
    assert caught.value.failures == (first, second)
    assert type(computation_error((second,))) is ComputationError


def test_an_error_keeps_what_failed_on_its_way_between_processes() -> None:
    error = pickle.loads(pickle.dumps(computation_error((Failure(reason="no", query="one"),))))
    assert error.failures == (Failure(reason="no", query="one"),)
