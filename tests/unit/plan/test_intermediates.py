"""Plans with intermediate stores: what they look like, in which order they run, and what makes them unsound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from plait.errors import InvalidPlanError
from plait.optimizer.assemble.build import build
from plait.optimizer.examples import example_options, example_query, example_statistics
from plait.optimizer.probe_orders import ProbeOrder
from plait.plan import intermediates
from plait.plan.changelog import StoreAdded, TreeSet, changelog, needs_filling
from plait.plan.codec import decode, encode
from plait.plan.explain import explain
from plait.plan.model import Intermediate, Member, Plan, Selection, Step, Store
from plait.plan.pruning import last_filling
from plait.plan.traversals import phases
from plait.plan.validate import validate
from plait.query.model import Query

OPTIONS = example_options("random", ("r", 1000.0), ("s", 100.0), ("t", 100.0), ("u", 100.0))
Q = example_query("q", "r.a = s.a", "s.b = t.b")
P = example_query("p", "r.a = s.a", "s.b = t.b", "t.c = u.c")


def order(query: str, *units: str, fills: bool = False) -> ProbeOrder:
    return ProbeOrder(query=query, units=tuple(tuple(unit) for unit in units), fills=fills)


FLAT = (order("q", "r", "s", "t"), order("q", "s", "t", "r"), order("q", "t", "s", "r"))
BY_WAY_OF_ST = (
    order("q", "r", "st"),
    *FLAT[1:],
    order("q", "s", "t", fills=True),
    order("q", "t", "s", fills=True),
)


def plan(*orders: ProbeOrder, queries: tuple[Query, ...] = (Q,)) -> Plan:
    made = build(queries, orders, example_statistics(OPTIONS), OPTIONS)
    validate(made, queries)
    return made


SOUND = plan(*BY_WAY_OF_ST)
ST = next(store for store in SOUND.stores if store.intermediate is not None)


def test_arrivals_of_the_parts_fill_the_store_on_the_way_to_the_result() -> None:
    edges = {step.edge: [fill.store for fill in step.fills] for tree in SOUND.trees for _, step in tree.walk()}
    assert edges == {f"r→{ST.id}": [], "s→t": [ST.id], "s→t→r": [], "t→s": [ST.id], "t→s→r": []}


def test_the_store_keeps_what_the_query_needs_of_both_parts() -> None:
    assert ST.columns == ("0:v", "1:v")
    assert [key.name for key in ST.keys] == ["0:#k bigint `a`"]
    assert ST.indexes == (("0:#k bigint `a`",),)
    assert ST.window_us == 1_000_000


def test_a_store_that_is_probed_by_no_later_relation_needs_no_phase_of_its_own() -> None:
    # r ranks below s and t: its tuples of a batch must not see what s and t of that batch have joined.
    assert phases(SOUND) == ((0, 1, 2),)


def test_a_tree_waits_for_trees_of_lower_rank_that_fill_what_it_probes() -> None:
    made = plan(
        order("q", "t", "rs"), order("q", "r", "s", "t"), order("q", "s", "r", "t"),
        order("q", "r", "s", fills=True), order("q", "s", "r", fills=True),
    )  # fmt: skip
    starts = [tree.start.store for tree in made.trees]
    assert [[starts[number] for number in phase] for phase in phases(made)] == [["r", "s"], ["t"]]


def test_an_intermediate_store_can_be_filled_from_another() -> None:
    made = plan(
        order("p", "r", "stu"), order("p", "s", "tu", "r"), order("p", "t", "s", "r", "u"),
        order("p", "u", "t", "s", "r"), order("p", "s", "tu", fills=True), order("p", "t", "u", "s", fills=True),
        order("p", "u", "st", fills=True), order("p", "t", "u", fills=True), order("p", "u", "t", fills=True),
        order("p", "s", "t", fills=True), order("p", "t", "s", fills=True),
        queries=(P,),
    )  # fmt: skip
    stu = next(store for store in made.stores if store.id.startswith("s⋈t⋈u"))
    tu = next(store for store in made.stores if store.id.startswith("t⋈u"))
    assert stu.columns == ("0:v", "1:v", "2:v")
    assert set(tu.columns) == {"0:v", "1:v"}


def test_two_queries_with_the_same_join_share_the_store_and_what_fills_it() -> None:
    other = example_query("o", "s.b = t.b", "s.c = u.c")
    both = plan(
        *BY_WAY_OF_ST,
        order("o", "u", "st"), order("o", "s", "t", "u"), order("o", "t", "s", "u"),
        queries=(Q, other),
    )  # fmt: skip
    shared = [store for store in both.stores if store.intermediate is not None]
    assert [store.id for store in shared] == [ST.id]
    assert {key.name for key in shared[0].keys} == {"0:#k bigint `a`", "0:#k bigint `c`"}
    assert sum(len(step.fills) for tree in both.trees for _, step in tree.walk()) == 2


def test_other_windows_or_selections_make_another_store() -> None:
    wider = replace(Q, relations=tuple(replace(each, window_us=2_000_000) for each in Q.relations))
    assert next(s.id for s in plan(*BY_WAY_OF_ST, queries=(wider,)).stores if s.intermediate) != ST.id


def test_a_plan_with_intermediate_stores_survives_the_checkpoint() -> None:
    assert decode(encode(SOUND)) == SOUND


def test_an_intermediate_store_that_comes_is_filled_and_changes_nothing_in_what_is_read() -> None:
    flat = plan(*FLAT)
    changes = changelog(flat, replace(SOUND, stores=(*flat.stores, ST)))
    assert [change for change in changes if not isinstance(change, TreeSet)] == [StoreAdded(store=ST)]
    assert needs_filling(changes)


def test_a_store_is_filled_with_the_past_from_its_part_of_the_highest_rank() -> None:
    past = last_filling(SOUND, ST.id)
    assert [tree.start.store for tree in past.trees] == ["t"]
    assert [(step.edge, step.children) for tree in past.trees for _, step in tree.walk()] == [("t→s", ())]


def test_explain_says_what_the_store_holds_and_who_fills_it() -> None:
    text = explain(SOUND)
    assert f"{ST.id}: intermediate result, window 1 s, 1 partition by s.a\n" in text
    assert "keeps   s ⋈ t on s.b = t.b" in text
    assert f"⇒ kept in {ST.id}" in text


Break = Callable[[Plan], Plan]


def intermediate(change: Callable[[Store], Store]) -> Break:
    return lambda made: replace(
        made, stores=tuple(change(store) if store.intermediate else store for store in made.stores)
    )


def steps(change: Callable[[Step], Step]) -> Break:
    def visit(children: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(change(replace(step, children=visit(step.children))) for step in children)

    return lambda made: replace(made, trees=tuple(replace(tree, children=visit(tree.children)) for tree in made.trees))


def content(store: Store) -> Intermediate:
    assert store.intermediate is not None
    return store.intermediate


def selected(member: Member) -> Member:
    return replace(member, selection=Selection(conjuncts=(Q.equalities[0].left.expression,)))


BROKEN: list[tuple[int, Break]] = [
    (17, intermediate(lambda store: replace(store, source="s"))),
    (18, steps(lambda step: replace(step, fills=()) if step.edge == "s→t" else step)),
    (18, steps(lambda step: replace(step, fills=step.fills * 2))),
    (19, steps(lambda step: replace(step, fills=tuple(replace(f, positions=f.positions[::-1]) for f in step.fills)))),
    (19, intermediate(lambda store: replace(store, intermediate=replace(content(store), predicates=())))),
    (19, intermediate(lambda store: replace(store, columns=("0:v", "1:v", "1:w")))),
    (20, steps(lambda step: replace(step, parts=step.parts[::-1]))),
    (20, steps(lambda step: replace(step, parts=(step.member,)) if step.edge == "s→t→r" else step)),
    (22, lambda made: replace(made, coming=(ST.id,))),
]


@pytest.mark.parametrize(("number", "break_it"), BROKEN, ids=[f"{n}-{i}" for i, (n, _) in enumerate(BROKEN)])
def test_a_broken_plan_is_refused_by_the_invariant_it_breaks(number: int, break_it: Break) -> None:
    with pytest.raises(InvalidPlanError, match=rf"breaks invariant {number} \("):
        validate(break_it(SOUND))


def test_every_invariant_is_broken_above() -> None:
    assert {number for number, _ in BROKEN} == set(intermediates.INVARIANTS)
