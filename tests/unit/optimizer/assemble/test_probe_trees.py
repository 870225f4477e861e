from __future__ import annotations

from plait.plan.model import Member, Output, Selection
from tests.unit.optimizer.queries import (
    SECOND_US,
    edges,
    equal_keys,
    equality,
    expression,
    planned,
    query,
    stream,
    table,
)

A, B = "#k bigint `a`", "#k bigint `b`"


def test_equal_steps_of_two_queries_are_one_step_whatever_the_aliases() -> None:
    p = query("p", {"x": "r", "y": "s"}, ["x.a = y.a"])
    q = query("q", {"b": "s", "a": "r"}, ["a.a = b.a"])
    made = planned((p, q))
    assert edges(made) == ["r→s", "s→r"]
    assert made.trees[0].children[0].outputs == (
        Output(query="p", positions=(("x", 0), ("y", 1))),
        Output(query="q", positions=(("a", 0), ("b", 1))),
    )


def test_a_prefix_is_shared_and_the_rest_branches_off() -> None:
    # Paper 000, fig. 4: three probe orders of one starting relation, one tree.
    queries = (
        query("q1", {"r": "r", "s": "s", "t": "t"}, ["r.d = s.d", "s.b = t.b"]),
        query("q2", {"r": "r", "s": "s", "w": "w"}, ["r.d = s.d", "s.e = w.e"]),
        query("q3", {"r": "r", "u": "u"}, ["r.a = u.a"]),
    )
    tree = planned(queries, "fixed").trees[0]
    assert [(step.edge, len(step.children)) for step in tree.children] == [("r→s", 2), ("r→u", 0)]
    assert [child.edge for child in tree.children[0].children] == ["r→s→t", "r→s→w"]


def test_a_step_matches_every_equality_with_what_was_joined() -> None:
    triangle = query("q", {"r": "r", "s": "s", "t": "t"}, ["r.a = s.a", "t.b = s.b", "r.b = t.a", "s.a = r.a"])
    made = planned((triangle,), "fixed")
    first = made.trees[0].children[0]
    assert first.predicates == (equal_keys(0, A, A),), "a repeated equality counts once"
    assert first.children[0].predicates == (equal_keys(0, B, A), equal_keys(1, B, B))


def test_selections_and_windows_make_different_steps() -> None:
    plain = query("a", {"r": "r", "s": "s"}, ["r.a = s.a"])
    selective = query("b", {"r": "r", "s": "s"}, ["r.a = s.a"], where={"s": ["`v` > 5", "`v` < 9", "`v` > 5"]})
    longer = query("c", {"r": "r", "s": "s"}, ["r.a = s.a"], windows={"s": 60})
    made = planned((plain, selective, longer))
    found = {step.outputs[0].query: step for step in made.trees[0].children}
    assert len(found) == 3
    assert found["b"].member.selection == Selection(conjuncts=(expression("`v` < 9"), expression("`v` > 5")))
    assert found["c"].member.window_us == 60 * SECOND_US
    assert all(step.edge.startswith("r→s~") for step in found.values())


def test_conjuncts_written_in_another_order_are_the_same_selection() -> None:
    one = query("a", {"r": "r"}, where={"r": ["`v` > 5", "`v` < 9"]})
    two = query("b", {"r": "r"}, where={"r": ["`v` < 9", "`v` > 5"]})
    assert len(planned((one, two)).trees) == 1


def test_the_name_of_an_edge_depends_on_its_content_alone() -> None:
    plain = query("a", {"r": "r", "s": "s"}, ["r.a = s.a"])
    selective = query("b", {"r": "r", "s": "s"}, ["r.a = s.a"], where={"s": ["`v` > 5"]})
    both = edges(planned((plain, selective)))
    renamed = edges(planned((query("z", {"k": "r", "m": "s"}, ["k.a = m.a"]), selective)))
    assert both == renamed
    assert edges(planned((plain,))) == ["r→s", "s→r"]


def test_the_names_of_a_self_join_carry_the_ordinal() -> None:
    made = planned((query("q", {"x": "r", "y": "r"}, ["x.a = y.b"]),))
    assert edges(made) == ["r→r#1", "r#1→r"]
    assert [tree.start.ordinal for tree in made.trees] == [0, 1]
    assert [store.id for store in made.stores] == ["r"]
    assert made.trees[0].children[0].predicates == (equal_keys(0, A, B),)
    assert made.trees[1].children[0].predicates == (equal_keys(0, B, A),)


def test_names_that_would_read_like_paths_are_quoted() -> None:
    made = planned((query("q", {"a": "r→s", "b": "t"}, ["a.a = b.a"]), query("p", {"a": "r", "b": "s"}, ["a.a = b.a"])))
    assert sorted(edges(made)) == ["`r→s`→t", "r→s", "s→r", "t→`r→s`"]


def test_a_query_over_one_stream_ends_where_it_starts() -> None:
    made = planned((query("q", {"r": "r"}, where={"r": ["`v` > 5"]}, select=["r.v"]),))
    (tree,) = made.trees
    assert (tree.children, tree.outputs) == ((), (Output(query="q", positions=(("r", 0),)),))
    assert made.stores[0].indexes == ()
    assert made.stores[0].partition_by == ()


def test_tables_are_probed_but_never_start() -> None:
    made = planned((query("q", {"r": "r", "n": "n"}, ["r.a = n.a"], tables={"n"}),))
    assert [tree.start.store for tree in made.trees] == ["r"]
    assert made.trees[0].children[0].member == Member(store="n", ordinal=0, selection=Selection(), window_us=None)
    assert made.ranks == ("r",)


def test_ranks_follow_the_catalog_and_leave_tables_out() -> None:
    asked = query("q", {"r": "r", "s": "s", "n": "n"}, ["r.a = n.a", "s.a = n.a"], tables={"n"})
    made = planned((asked,), sources=(stream("s"), table("n"), stream("unused"), stream("r")))
    assert made.ranks == ("s", "unused", "r")


def test_an_equality_without_a_type_has_keys_of_unknown_type() -> None:
    made = planned((query("q", {"r": "r", "s": "s"}, [equality("r.a = s.lower(`a`)", None)]),))
    assert [key.name for store in made.stores for key in store.keys] == ["#k ? `a`", "#k ? lower(`a`)"]
