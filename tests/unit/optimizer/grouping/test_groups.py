"""Figures of paper 004 as far as they concern planning, and what grouping must never do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import product

import pytest

from plait.optimizer import plan
from plait.optimizer.estimate.cardinality import Cardinality
from plait.optimizer.grouping.choose import choose_groups
from plait.optimizer.grouping.groups import query_groups
from plait.optimizer.grouping.iteration import Tree, iterate
from plait.optimizer.grouping.join_classes import join_classes
from plait.optimizer.grouping.sharing_cost import SharingCost, widest
from plait.optimizer.incremental.former import Former
from plait.plan.model import Plan
from plait.plan.traversals import endings
from plait.query.model import Query
from plait.stats.declared import declared_statistics
from plait.stats.model import QuerySets, SourceStatistics, Statistics
from tests.unit.optimizer.counted import passes
from tests.unit.optimizer.queries import options, query, stream

SOURCES = tuple(stream(name, window=None) for name in "vwcr")
VW, WC, CR = "v.vid = w.vid", "w.usr = c.usr", "c.usr = r.usr"


def asked(name: str, relations: str, *conditions: str) -> Query:
    """Return a query that takes of each relation what is its own: what the bits of a query set tell."""
    number = name[1:]
    return query(
        name,
        {each: each for each in relations},
        conditions,
        where={each: [f"`q` = {number}"] for each in relations},
        windows=dict.fromkeys(relations),
    )


QUERIES = (
    asked("q1", "vw", VW),
    asked("q2", "vwc", VW, WC),
    asked("q3", "wcr", WC, CR),
    asked("q4", "vw", VW),
    asked("q5", "vw", VW),
    asked("q6", "vwc", VW, WC),
)
SETS: Mapping[str, Mapping[frozenset[int], int]] = {
    "v": {frozenset({1, 2}): 40, frozenset({4, 6}): 30, frozenset({5}): 20},
    "w": {frozenset({1, 2, 3}): 40, frozenset({4, 6}): 30, frozenset({5}): 20},
    "c": {frozenset({2, 3}): 60, frozenset({6}): 30},
    "r": {frozenset({3}): 30},
}


def selection(number: int) -> str:
    return f"(`q` = {number})"


def statistics(sets: Mapping[str, Mapping[frozenset[int], int]] = SETS) -> Statistics:
    """Return what is known of rows with these query sets."""
    numbers = range(1, 7)
    samples, sources = [], []
    for source, found in sorted(sets.items()):
        total = sum(found.values())
        samples.append(
            QuerySets(
                source=source,
                selections=tuple(map(selection, numbers)),
                sets=tuple((sum(1 << number - 1 for number in passed), rows) for passed, rows in found.items()),
            )
        )
        shares = {n: sum(rows for passed, rows in found.items() if n in passed) / total for n in numbers}
        sources.append(
            SourceStatistics(
                source=source,
                rows=float(total),
                rate_rows_per_s=float(total),  # one window a second
                distinct=(("usr", 20.0), ("vid", 20.0)),
                selectivity=tuple((selection(number), share) for number, share in shares.items()),
            )
        )
    return Statistics(sources=tuple(sources), query_sets=tuple(samples))


def test_crd_counts_the_rows_that_any_of_some_queries_takes() -> None:
    # Section 4: t1 to t4 have the query sets 100100, 101100, 100100 and 100000.
    sets = ((0b001001, 2), (0b001101, 1), (0b000001, 1))
    sample = QuerySets(source="s", selections=tuple("123456"), sets=sets)
    assert [sample.rows(each) for each in ("1", "4", "3", "14", "34", "134", "256")] == [4, 3, 1, 4, 3, 4, 0]
    # Equation 1: |1| + |3| + |4| - |1∩3| - |3∩4| - |1∩4| + |1∩3∩4|
    assert sample.rows("134") == 4 + 1 + 3 - 1 - 1 - 3 + 1


def test_the_cost_of_a_join_is_that_of_equation_2_with_the_rows_it_finds() -> None:
    (joined, uses), *_ = join_classes(QUERIES).items()
    cost = SharingCost(Cardinality(statistics=statistics()), frozenset())
    first = uses[:1]
    assert cost.shared(joined, first) == pytest.approx(40 + 40 + 20 + 40 * 40 / 20)
    assert cost.shared(joined, uses[:2]) == pytest.approx(cost.shared(joined, first))
    wide = widest(use.members[0] for use in uses)
    assert cost.rows(wide) == pytest.approx(90)


def test_the_groups_are_those_of_figure_7a() -> None:
    cost = SharingCost(Cardinality(statistics=statistics()), frozenset())
    found = {
        f"{joined.left[0]}{joined.right[0]}": [
            sorted(use.query for use in group) for group in query_groups(joined, uses, cost)
        ]
        for joined, uses in join_classes(QUERIES).items()
    }
    assert found == {
        "vw": [["q1", "q2"], ["q4", "q6"], ["q5"]],
        "cw": [["q2", "q3"], ["q6"]],
        "cr": [["q3"]],
    }


def text(tree: Tree) -> str:
    if tree.parts is None:
        (alias,) = tree.relations
        return alias
    return f"({text(tree.parts[0])}{text(tree.parts[1])})"


def test_subqueries_are_chosen_as_in_figure_7b() -> None:
    queries = QUERIES
    chosen = choose_groups(queries, Cardinality(statistics=statistics()), options("adhoc", SOURCES))
    trees = iterate(
        chosen.joined,
        {each.name: each for each in chosen.joined},
        Cardinality(statistics=statistics()),
        options("adhoc", SOURCES),
    ).trees
    shapes = {name: frozenset(frozenset(part) for part in _parts(tree)) for name, tree in trees.items()}
    # Q2 takes the V⋈W that it shares with Q1, so Q3 has W⋈C, or C⋈R, for itself.
    assert frozenset("vw") in shapes["q2"]
    assert frozenset("wc") not in shapes["q2"]
    assert frozenset("vw") in shapes["q6"]
    made = plan(queries, statistics(), options("adhoc", SOURCES))
    assert shared_first_steps(made)["v→w"] == [["q1", "q2"], ["q4", "q6"], ["q5"]]


def _parts(tree: Tree) -> list[frozenset[str]]:
    return [] if tree.parts is None else [tree.relations, *(part for each in tree.parts for part in _parts(each))]


def shared_first_steps(made: Plan) -> dict[str, list[list[str]]]:
    """Return by its stores who takes each first step together."""
    users: dict[str, set[str]] = {}
    for _, steps, output in endings(made):
        if steps:
            users.setdefault(steps[0].edge, set()).add(output.query)
    found: dict[str, list[list[str]]] = {}
    for edge, queries in users.items():
        found.setdefault(edge.split("~")[0], []).append(sorted(queries))
    return {edge: sorted(groups) for edge, groups in found.items()}


def test_queries_that_share_too_few_rows_are_joined_apart_as_in_figure_6() -> None:
    q4, q5 = QUERIES[3:5]
    made = plan((q4, q5), statistics(), options("adhoc", SOURCES))
    assert shared_first_steps(made) == {"v→w": [["q4"], ["q5"]], "w→v": [["q4"], ["q5"]]}


def test_windows_are_shared_as_in_figure_8() -> None:
    # Q1 and Q2 join on the same; Q2 looks further back, so what only it takes is filtered out for Q1.
    short = query("q1", {"r": "r", "s": "s"}, ["r.a = s.a"], windows={"r": 1, "s": 1})
    long = query("q2", {"r": "r", "s": "s"}, ["r.a = s.a"], windows={"r": 2, "s": 2})
    sources = tuple(stream(name, rate=100, distinct={"a": 500.0}) for name in "rs")
    made = plan((short, long), declared_statistics(sources), options("adhoc", sources))
    assert shared_first_steps(made) == {"r→s": [["q1", "q2"]], "s→r": [["q1", "q2"]]}
    filters = {(output.query, each.window_us) for _, _, output in endings(made) for each in output.residual_filters}
    assert filters == {("q1", 1_000_000)}


def test_a_plan_of_groups_finds_the_results_of_figure_4() -> None:
    w = [(1, 1), (1, 8), (3, 8), (5, 8), (5, 4), (8, 4)]
    rows = {
        "v": [{"vid": vid} for vid in (4, 4, 7, 8, 8)],
        "w": [{"usr": usr, "vid": vid} for usr, vid in w],
        "c": [{"usr": usr} for usr in (1, 1, 5, 5, 8, 8, 8)],
        "r": [{"usr": usr} for usr in (1, 1, 5, 5, 5)],
    }
    q1 = query("q1", {"v": "v", "w": "w"}, [VW])
    q2 = query("q2", {"v": "v", "w": "w", "c": "c"}, [VW, WC])
    q3 = query("q3", {"w": "w", "c": "c", "r": "r"}, [WC, CR])
    at = 0
    for listed in rows.values():
        for row in listed:
            row["at"] = at = at + 1
    made = plan((q1, q2, q3), Statistics(), options("adhoc", SOURCES))
    assert found(made, rows) == {"q1": 10, "q2": 18, "q3": 20}


def found(made: Plan, rows: Mapping[str, list[dict[str, int]]]) -> dict[str, int]:
    """Return how many results each query gets, by trying all combinations along each path."""
    counts = Counter[str]()
    for start, steps, output in endings(made):
        members = (start, *(step.member for step in steps))
        for path in product(*([row for row in rows[each.store] if passes(row, each)] for each in members)):
            if any(row["at"] >= path[0]["at"] for row in path[1:]):
                continue
            if all(
                path[each.left.at or 0][_column(each.left.name)] == path[number][_column(each.right.name)]
                for number, step in enumerate(steps, start=1)
                for each in step.equalities
            ):
                counts[output.query] += 1
    return dict(counts)


def _column(key: str) -> str:
    return key.split("`")[1]


def test_what_nothing_is_compared_with_is_joined_once_all_else_is() -> None:
    rates = {"v": 1000.0, "w": 1000.0, "c": 0.01}  # so that v and c have the fewest rows between them
    sources = tuple(stream(name, rate=rate, distinct={"vid": 2.0}) for name, rate in rates.items())
    told, statistics = options("adhoc", sources), declared_statistics(sources)
    asked_for = query("q", {name: name for name in rates}, [VW], windows=dict.fromkeys(rates, 10))
    tree = iterate((asked_for,), {"q": asked_for}, Cardinality(statistics=statistics), told).trees["q"]
    assert tree.parts is not None
    assert {part.relations for part in tree.parts} == {frozenset("vw"), frozenset("c")}
    plan((asked_for,), statistics, told)  # valid: no cross product that can be avoided


def test_a_query_that_comes_and_one_that_goes_leave_the_groups_of_figure_7_that_they_do_not_touch() -> None:
    # Section 4: Q4 is deleted and Q7 created; of the others only Q6, which was in a group with Q4, may be concerned.
    q7 = asked("q7", "wc", WC)
    told, now = options("adhoc", SOURCES), (*(each for each in QUERIES if each.name != "q4"), q7)
    first = plan(QUERIES, statistics(), told)
    made = plan(now, statistics(), told, Former(plan=first, queries=QUERIES))

    def ways(of: Plan) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for _, steps, output in endings(of):
            found.setdefault(output.query, set()).add(" ".join(step.edge for step in steps))
        return found

    before, after = ways(first), ways(made)
    assert after.keys() == {"q1", "q2", "q3", "q5", "q6", "q7"}
    assert {name: after[name] for name in ("q1", "q2", "q3", "q5")} == {
        name: before[name] for name in ("q1", "q2", "q3", "q5")
    }
    assert shared_first_steps(made)["v→w"] == [["q1", "q2"], ["q5"], ["q6"]]
