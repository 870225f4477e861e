"""Queries that differ only in selections or windows share their steps and split off at the end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plait.errors import InvalidPlanError
from plait.optimizer.assemble.build import build
from plait.optimizer.assemble.covering import cover
from plait.optimizer.probe_orders import ProbeOrder
from plait.plan.codec import decode, encode
from plait.plan.explain import explain
from plait.plan.model import Plan, ResidualFilter, Selection
from plait.plan.validate import validate
from plait.query.model import Query
from plait.stats.model import Statistics
from tests.unit.optimizer.queries import SECOND_US, expression, options, query, sources_of

BIG = query("big", {"r": "r", "s": "s"}, ["r.a = s.a"], where={"r": ["`v` > 5"]}, select=["r.v"])
ODD = query("odd", {"r": "r", "s": "s"}, ["r.a = s.a"], where={"r": ["`v` < 1", "`w` = 2"]}, select=["r.v"])
ALL = query("all", {"r": "r", "s": "s"}, ["r.a = s.a"], select=["s.w"])


def plan(*queries: Query) -> Plan:
    wide = cover(queries, lambda query, relation: relation.source)
    orders = [
        ProbeOrder(query=each.name, units=units) for each in queries for units in ((("r",), ("s",)), (("s",), ("r",)))
    ]
    made = build(queries, orders, Statistics(), options("wide", sources_of(queries)), covering=wide)
    validate(made, queries)
    return made


def where(*conjuncts: str) -> Selection:
    return Selection(conjuncts=tuple(expression(each) for each in conjuncts))


def test_one_step_serves_both_and_each_takes_its_own() -> None:
    made = plan(BIG, ODD)
    assert [tree.start.selection.any_of for tree in made.trees if tree.start.store == "r"] == [
        (where("`v` < 1", "`w` = 2"), where("`v` > 5"))
    ]
    step = next(step for tree in made.trees for _, step in tree.walk() if step.edge == "r→s")
    assert [(output.query, output.residual_filters) for output in step.outputs] == [
        ("big", (ResidualFilter(position=0, selection=where("`v` > 5")),)),
        ("odd", (ResidualFilter(position=0, selection=where("`v` < 1", "`w` = 2")),)),
    ]


def test_the_store_keeps_no_tuple_that_none_of_them_asks_for() -> None:
    made = plan(BIG, ODD)
    assert {need.selection for need in made.store("r").requirements} == {where("`v` > 5"), where("`v` < 1", "`w` = 2")}


def test_a_query_without_a_selection_widens_the_others_to_everything() -> None:
    made = plan(BIG, ALL)
    assert [tree.start.selection for tree in made.trees] == [Selection(), Selection()]
    outputs = {output.query: output for tree in made.trees for _, step in tree.walk() for output in step.outputs}
    assert outputs["all"].residual_filters == ()
    assert len(outputs["big"].residual_filters) == 1


def test_the_larger_window_is_probed_and_the_smaller_one_checked_at_the_end() -> None:
    short = replace(
        ALL,
        name="short",
        relations=tuple(replace(each, window_us=SECOND_US) for each in ALL.relations),
    )
    long = replace(short, name="long", relations=tuple(replace(each, window_us=None) for each in ALL.relations))
    made = plan(short, long)
    assert {tree.start.window_us for tree in made.trees} == {None}
    outputs = {output.query: output for tree in made.trees for _, step in tree.walk() for output in step.outputs}
    assert outputs["short"].residual_filters == (
        ResidualFilter(position=0, window_us=SECOND_US),
        ResidualFilter(position=1, window_us=SECOND_US),
    )
    assert "short (only " in explain(made)
    assert decode(encode(made)) == made


def test_a_query_that_is_not_filtered_to_its_own_is_refused() -> None:
    made = plan(BIG, ODD)

    def blind(children):  # type: ignore[no-untyped-def]
        return tuple(
            replace(step, outputs=tuple(replace(each, residual_filters=()) for each in step.outputs))
            for step in children
        )

    broken = replace(made, trees=tuple(replace(tree, children=blind(tree.children)) for tree in made.trees))
    with pytest.raises(InvalidPlanError, match="invariant 13"):
        validate(broken, (BIG, ODD))
