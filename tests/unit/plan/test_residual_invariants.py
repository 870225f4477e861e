"""A plan that forgets or changes a theta predicate is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from plait.errors import InvalidPlanError
from plait.optimizer import plan
from plait.optimizer.options import PlanOptions
from plait.plan.codec import decode, encode
from plait.plan.model import Plan, Probed, Step
from plait.plan.validate import validate
from plait.query.predicates import Band, Residual
from plait.stats.model import Statistics
from tests.unit.plan.test_explain_residuals import SOURCES, query

QUERY = query("a.x BETWEEN b.x - 5 AND b.x + 5 AND b.name <> c.name AND b.k = c.k", "a, b, c")


def planned(strategy: str) -> Plan:
    options = PlanOptions(strategy=strategy, parallelism=2, sources=tuple(SOURCES.values()))
    return plan((QUERY,), Statistics(), options)


def changed(made: Plan, change: Callable[[Step], Step]) -> Plan:
    """Return the plan with the first step that `change` alters altered."""

    def visit(steps: tuple[Step, ...], done: bool) -> tuple[tuple[Step, ...], bool]:
        found = []
        for step in steps:
            other = step if done else change(step)
            done = done or other != step
            children, done = visit(other.children, done)
            found.append(replace(other, children=children))
        return tuple(found), done

    trees, done = [], False
    for tree in made.trees:
        children, done = visit(tree.children, done)
        trees.append(replace(tree, children=children))
    assert done
    return replace(made, trees=tuple(trees))


@pytest.mark.parametrize("strategy", ["greedy", "left-deep", "ilp"])
def test_sound_plans_pass_and_survive_being_stored(strategy: str) -> None:
    made = planned(strategy)
    validate(made, (QUERY,))
    assert decode(encode(made)) == made


def wider(step: Step) -> Step:
    return with_bands(step, lambda band: replace(band, high=None if band.high is None else band.high + 1))


def with_bands(step: Step, change: Callable[[Band[Probed]], Band[Probed]]) -> Step:
    found = tuple(change(each) if isinstance(each, Band) else each for each in step.predicates)
    return replace(step, predicates=found)


def without(step: Step, kind: type[Band[Any] | Residual[Any]]) -> Step:
    return replace(step, predicates=tuple(each for each in step.predicates if not isinstance(each, kind)))


@pytest.mark.parametrize(
    ("change", "invariant"),
    [
        (lambda step: without(step, Residual), 14),
        (wider, 14),
        (lambda step: without(step, Band), 7),
        (lambda step: with_bands(step, lambda band: replace(band, order="double")), 6),
    ],
)
def test_a_forgotten_or_changed_predicate_is_named(change: Callable[[Step], Step], invariant: int) -> None:
    with pytest.raises(InvalidPlanError) as raised:
        validate(changed(planned("greedy"), change), (QUERY,))
    assert raised.value.invariant == invariant


def test_an_intermediate_store_must_be_filled_by_its_own_predicates() -> None:
    with pytest.raises(InvalidPlanError) as raised:
        validate(changed(planned("left-deep"), lambda step: without(step, Residual) if step.fills else step), (QUERY,))
    assert raised.value.invariant in (14, 19)


def test_a_predicate_over_a_column_that_is_not_kept_is_named() -> None:
    made = planned("greedy")
    stores = tuple(
        replace(store, columns=tuple(column for column in store.columns if column != "name")) for store in made.stores
    )
    with pytest.raises(InvalidPlanError, match="reads column 'name'"):
        validate(replace(made, stores=stores))
