"""Random workloads keep to the rules."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from benchmarks.workloads.joins import Join, JoinQuery, JoinStream
from benchmarks.workloads.tpch_drawing import JoinPool, Wanted, draw_workload, with_window
from benchmarks.workloads.tpch_schema import KEY_JOINS, PREFIXES, time_column
from plait.errors import OptionError
from plait.query.model import Column

STREAMS = tuple(
    JoinStream(
        name=relation,
        time=time_column(relation),
        columns=(Column(name=time_column(relation), type="timestamp"), Column(name=f"{prefix}_v", type="bigint")),
    )
    for relation, prefix in PREFIXES.items()
)
VALUE_JOINS = tuple(
    Join(left=left, right=right, columns=((f"{PREFIXES[left]}_v", f"{PREFIXES[right]}_v"),))
    for left in PREFIXES
    for right in PREFIXES
    if left < right
)
POOL = JoinPool(relations=tuple(PREFIXES), key_joins=KEY_JOINS, value_joins=VALUE_JOINS)
WANTED = Wanted(queries=10, smallest=2, largest=5, most_rows=100)


def one_row(relations: Iterable[str], joins: Iterable[Join]) -> float:
    return 1.0


def drawn(
    wanted: Wanted = WANTED, count_rows: object = one_row, seed: int = 0, pool: JoinPool = POOL
) -> list[JoinQuery]:
    return list(draw_workload(wanted, pool, STREAMS, count_rows, seed))


def test_a_seed_gives_one_workload():
    assert drawn() == drawn()
    assert drawn() != drawn(seed=1)


@pytest.mark.parametrize("seed", range(5))
def test_queries_are_trees_of_joins_over_different_relations_of_the_sizes_wanted(seed: int):
    queries = drawn(seed=seed)
    assert [query.name for query in queries] == [f"q{number}" for number in range(1, 11)]
    for query in queries:
        assert 2 <= len(query.relations) <= 5
        assert len(set(query.relations)) == len(query.relations) == len(query.joins) + 1
        for position, relation in enumerate(query.relations[1:], start=1):
            assert len(query.joins_of(relation, query.relations[:position])) == 1
    assert {len(query.relations) for query in queries} > {2}


def test_no_two_queries_are_equal():
    assert len({frozenset(query.joins) for query in drawn()}) == 10


def test_both_kinds_of_joins_are_drawn_about_equally_often():
    joins = [join for seed in range(20) for query in drawn(seed=seed) for join in query.joins]
    assert 0.35 < sum(join in KEY_JOINS for join in joins) / len(joins) < 0.65


def test_half_of_the_queries_have_a_join_in_common_with_another():
    many = JoinPool(relations=POOL.relations, key_joins=(), value_joins=VALUE_JOINS)
    for seed in range(5):
        queries = drawn(Wanted(queries=4, smallest=2, largest=3, most_rows=100), seed=seed, pool=many)
        common = [
            query
            for query in queries
            if any({*query.joins} & {*other.joins} for other in queries if other is not query)
        ]
        assert len(common) >= 2


def test_inputs_overlap_as_much_as_wanted():
    rows = {relation: 10.0**number for number, relation in enumerate(PREFIXES)}

    def sizes(relations: Iterable[str], joins: Iterable[Join]) -> float:
        return rows[next(iter(relations))] if not {*joins} else 1.0

    found = []
    for overlap in (1.0, 6.0):
        wanted = Wanted(queries=10, smallest=2, largest=5, most_rows=100, overlap=overlap)
        read = [relation for query in drawn(wanted, sizes) for relation in query.relations]
        found.append(sum(rows[relation] for relation in read) / sum(rows[relation] for relation in {*read}))
        assert found[-1] >= overlap
    assert found[0] < 6


def test_no_part_of_a_query_is_larger_than_allowed():
    def large_on_the_way(relations: Iterable[str], joins: Iterable[Join]) -> float:
        return 101.0 if {*relations} == {"lineitem", "orders"} else 1.0

    for query in drawn(count_rows=large_on_the_way):
        assert not any(join.relations == {"lineitem", "orders"} for join in query.joins)


def test_queries_without_results_are_not_asked():
    def empty_with_orders(relations: Iterable[str], joins: Iterable[Join]) -> float:
        return 0.0 if "orders" in {*relations} else 1.0

    assert all("orders" not in query.relations for query in drawn(count_rows=empty_with_orders))


def test_relations_are_written_in_the_order_with_the_smallest_joins_on_the_way():
    sizes = {frozenset(("region", "nation")): 1.0, frozenset(("nation", "customer")): 90.0}
    path = JoinPool(relations=("customer", "nation", "region"), key_joins=KEY_JOINS[:3:2], value_joins=())

    def count_rows(relations: Iterable[str], joins: Iterable[Join]) -> float:
        return sizes.get(frozenset(relations), 50.0)

    wanted = Wanted(queries=1, smallest=3, largest=3, most_rows=100)
    (query,) = drawn_alone(wanted, path, count_rows)
    assert query.relations == ("nation", "region", "customer")
    assert [output.name for output in query.outputs][:2] == ["nation_n_ts", "nation_n_v"]


def drawn_alone(wanted: Wanted, pool: JoinPool, count_rows: object) -> list[JoinQuery]:
    """Draw a workload of two and keep the first, for alone it has nothing in common with another."""
    with pytest.raises(OptionError, match="joins in common"):
        drawn(wanted, count_rows, pool=pool)
    wider = JoinPool(relations=pool.relations, key_joins=pool.key_joins, value_joins=VALUE_JOINS)
    two = Wanted(queries=2, smallest=3, largest=3, most_rows=100)
    for seed in range(50):
        for query in drawn(two, count_rows, seed, wider):
            if {*query.joins} == {*pool.key_joins}:
                return [query]
    raise AssertionError("the query was never drawn")


def test_rules_that_leave_nothing_are_reported():
    def huge(relations: Iterable[str], joins: Iterable[Join]) -> float:
        return 1e9

    with pytest.raises(OptionError, match=r"10,000 random queries did not give 10 of at most 100 rows"):
        drawn(count_rows=huge)


@pytest.mark.parametrize("sizes", [(1, 3), (4, 3)])
def test_impossible_sizes_are_refused(sizes: tuple[int, int]):
    with pytest.raises(OptionError, match="two or more relations"):
        Wanted(queries=1, smallest=sizes[0], largest=sizes[1], most_rows=1)


def test_a_window_changes_nothing_else():
    queries = drawn()
    assert [query.window_s for query in with_window(queries, 30)] == [30] * 10
    assert list(with_window(with_window(queries, 30), None)) == queries
