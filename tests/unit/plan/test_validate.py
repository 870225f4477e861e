"""Every invariant is broken once, in a plan that is otherwise sound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from plait.errors import InvalidPlanError
from plait.optimizer.assemble.build import build
from plait.optimizer.probe_orders import ProbeOrder
from plait.plan import coverage, intermediates, validate
from plait.plan.model import Output, Plan, ProbeTree, Requirement, ResidualFilter, Selection, Step
from plait.plan.traversals import endings
from plait.stats.model import Statistics
from tests.unit.optimizer.queries import equal_keys, expression, options, planned, query, sources_of

QUERIES = (
    query("p", {"r": "r", "s": "s", "n": "n"}, ["r.a = s.a", "s.b = n.b"], tables={"n"}, select=["r.v", "n.w"]),
    query("q", {"x": "r", "y": "s"}, ["x.a = y.a"]),
    query("t", {"r": "r", "s": "s"}, ["r.a = s.a", "r.b = s.b"], where={"r": ["`v` > 1"]}),
    query("z", {"c": "c", "d": "d", "e": "e"}, ["c.a = d.a"], tables={"e"}),
)
SOUND = planned(QUERIES, "fixed")
A = "#k bigint `a`"
B = "#k bigint `b`"
IDLE = Requirement(selection=Selection(conjuncts=(expression("`gone` = 1"),)), keys=(B,))
Break = Callable[[Plan], Plan]


def store(plan: Plan, store_id: str, **changes: object) -> Plan:
    """Change one store."""
    stores = tuple(
        replace(each, **changes) if each.id == store_id else each  # type: ignore[arg-type]
        for each in plan.stores
    )
    return replace(plan, stores=stores)


def steps(plan: Plan, change: Callable[[Step], Step | None]) -> Plan:
    """Change all steps, children first; None cuts a step off."""

    def visit(children: tuple[Step, ...]) -> tuple[Step, ...]:
        changed = [change(replace(step, children=visit(step.children))) for step in children]
        return tuple(step for step in changed if step is not None)

    return replace(plan, trees=tuple(replace(tree, children=visit(tree.children)) for tree in plan.trees))


def first_tree(plan: Plan, change: Callable[[ProbeTree], ProbeTree]) -> Plan:
    return replace(plan, trees=(change(plan.trees[0]), *plan.trees[1:]))


def at(edge: str, change: Callable[[Step], Step | None]) -> Break:
    return lambda plan: steps(plan, lambda step: change(step) if step.edge == edge else step)


def reordered(plan: Plan, *orders: tuple[str, str]) -> Plan:
    """Build the plan for all queries but with the given (query, aliases) as the only orders of their queries."""
    given = [ProbeOrder(query=name, units=tuple((alias,) for alias in aliases)) for name, aliases in orders]
    kept = [
        ProbeOrder(query=output.query, units=tuple((alias,) for alias, _ in sorted(output.positions, key=_position)))
        for _, _, output in endings(plan)
        if output.query not in dict(orders)
    ]
    sources = sources_of(QUERIES)
    return build(QUERIES, (*given, *kept), Statistics(), options("fixed", sources))


def _position(place: tuple[str, int]) -> int:
    return place[1]


def _renamed(step: Step) -> Step:
    return replace(step, edge=step.edge + "'", children=tuple(_renamed(child) for child in step.children))


def _renamed_tree(tree: ProbeTree) -> ProbeTree:
    return replace(tree, children=tuple(_renamed(child) for child in tree.children))


def _doubled(tree: ProbeTree) -> ProbeTree:
    return replace(tree, children=tree.children + _renamed_tree(tree).children)


def _empty_tree(tree: ProbeTree) -> ProbeTree:
    return replace(tree, start=replace(tree.start, window_us=1), children=())


def _swapped(output: Output) -> Output:
    return replace(output, positions=tuple((alias, 1 - position) for alias, position in output.positions))


def _swap_of_q(output: Output) -> Output:
    return _swapped(output) if output.query == "q" else output


def _one_alias(output: Output) -> Output:
    """Rename all but the starting relation."""
    return replace(output, positions=tuple(sorted((f"zz{at}" if at else alias, at) for alias, at in output.positions)))


def _counted(step: Step) -> Step:
    return replace(step, outputs=tuple(replace(output, counts=True) for output in step.outputs))


def _part_counted(output: Output) -> Output:
    return replace(output, counts=True, residual_filters=(ResidualFilter(position=0, window_us=1),))


STARTS = {steps[0].edge[0]: steps[0].edge for _, steps, output in endings(SOUND) if output.query == "q"}
SHARED, BACK = STARTS["r"], STARTS["s"]
LEAF = "r→s→n"

BROKEN: list[tuple[int, Break]] = [
    (1, lambda plan: replace(plan, stores=plan.stores[::-1])),
    (1, lambda plan: store(plan, "r", columns=("v", "v"))),
    (1, lambda plan: store(plan, "r", keys=plan.store("r").keys[::-1])),
    (1, lambda plan: store(plan, "r", requirements=plan.store("r").requirements[::-1])),
    (1, lambda plan: store(plan, "r", parallelism=0)),
    (1, lambda plan: store(plan, "n", window_us=5)),
    (2, lambda plan: steps(plan, lambda step: replace(step, edge="same"))),
    (3, lambda plan: replace(plan, stores=plan.stores[:-1])),
    (3, lambda plan: store(plan, "s", window_us=9_999_999)),
    (4, lambda plan: store(plan, "r", requirements=plan.store("r").requirements[:1])),
    (5, lambda plan: store(plan, "r", keys=plan.store("r").keys[:1])),
    (5, lambda plan: store(plan, "r", partition_by=("#k bigint `zz`",))),
    (5, lambda plan: store(plan, "r", indexes=(*plan.store("r").indexes, ()))),
    (5, lambda plan: store(plan, "r", indexes=(*plan.store("r").indexes, (B, A)))),
    (6, at(SHARED, lambda step: replace(step, predicates=(equal_keys(1, A, A),)))),
    (6, at(SHARED, lambda step: replace(step, predicates=(equal_keys(0, "#k x", A),)))),
    (6, at(SHARED, lambda step: replace(step, predicates=(equal_keys(0, A, "#k x"),)))),
    (6, at(SHARED, lambda step: replace(step, predicates=step.predicates * 2))),
    (7, lambda plan: store(plan, "s", indexes=plan.store("s").indexes[:1])),
    (7, lambda plan: store(plan, "r", indexes=(*plan.store("r").indexes, (B,)))),
    (7, lambda plan: store(plan, "n", partition_by=(A,), keys=plan.store("r").keys)),
    (8, lambda plan: replace(plan, trees=(*plan.trees, _renamed_tree(plan.trees[0])))),
    (8, lambda plan: replace(plan, ranks=("r",))),
    (8, lambda plan: store(plan, "r", is_table=True, window_us=None)),
    (9, lambda plan: first_tree(plan, _doubled)),
    (10, at(LEAF, lambda step: replace(step, outputs=()))),
    (10, lambda plan: replace(plan, trees=(*plan.trees, _empty_tree(plan.trees[0])))),
    (11, at(LEAF, lambda step: replace(step, outputs=(replace(step.outputs[0], positions=(("n", 2),)),)))),
    (11, lambda plan: replace(plan, queries=("p", "q", "t"))),
    (11, lambda plan: replace(plan, queries=("q", "p", "t", "z"))),
    (23, lambda plan: steps(plan, lambda step: replace(step, outputs=tuple(map(_part_counted, step.outputs))))),
    (23, lambda plan: steps(plan, lambda step: step if step.predicates else _counted(step))),
    (12, lambda plan: replace(plan, queries=("p", "q", "t", "z", "zz"))),
    (12, lambda plan: reordered(plan, ("q", "xy"))),
    (12, at(SHARED, lambda step: replace(step, outputs=step.outputs * 2))),
    (13, at(BACK, lambda step: replace(step, outputs=tuple(map(_one_alias, step.outputs))))),
    (13, lambda plan: steps(plan, lambda step: replace(step, outputs=tuple(map(_swap_of_q, step.outputs))))),
    (14, at(LEAF, lambda step: replace(step, predicates=()))),
    (15, lambda plan: reordered(plan, ("z", "ced"), ("z", "dce"))),
    (16, lambda plan: store(plan, "n", columns=())),
    (16, lambda plan: store(plan, "s", requirements=(Requirement(selection=Selection(), keys=()),))),
    (21, lambda plan: store(plan, "n", requirements=(IDLE, *plan.store("n").requirements))),
]  # fmt: skip


def test_a_plan_of_the_optimizer_is_sound() -> None:
    validate.validate(SOUND, QUERIES)


@pytest.mark.parametrize(("number", "break_it"), BROKEN, ids=[f"{n}-{i}" for i, (n, _) in enumerate(BROKEN)])
def test_a_broken_plan_is_refused_by_the_invariant_it_breaks(number: int, break_it: Break) -> None:
    with pytest.raises(InvalidPlanError, match=rf"breaks invariant {number} \(") as caught:
        validate.validate(break_it(SOUND), QUERIES)
    assert caught.value.invariant == number
    assert isinstance(caught.value.plan, Plan)


def test_every_invariant_is_broken_above() -> None:
    alone = set(validate.INVARIANTS) - set(intermediates.INVARIANTS)
    assert {number for number, _ in BROKEN} == alone | set(coverage.INVARIANTS)
    assert not set(validate.INVARIANTS) & set(coverage.INVARIANTS)


def test_a_plan_can_be_checked_without_its_queries() -> None:
    validate.validate(SOUND)
    with pytest.raises(InvalidPlanError, match="invariant 2"):
        validate.validate(steps(SOUND, lambda step: replace(step, edge="same")))


def test_a_selection_nobody_stores_is_found() -> None:
    foreign = Selection(conjuncts=(expression("`zz`"),))
    broken = first_tree(SOUND, lambda tree: replace(tree, start=replace(tree.start, selection=foreign)))
    with pytest.raises(InvalidPlanError, match="invariant 4"):
        validate.validate(broken)
