"""By which keys stores are reached, and which of these need one table."""

from __future__ import annotations

from plait.optimizer.examples import example_options, example_query, example_statistics
from plait.optimizer.partitioning.first_tables import first_tables
from plait.optimizer.planner import plan
from plait.plan.accesses import accesses_of
from plait.plan.key_groups import Generation

OPTIONS = example_options("greedy")
A, B, C = (f"#k bigint `{name}`" for name in "abc")


def tables(*queries: tuple[str, ...], streams: str = "rstu") -> list[set[tuple[str, str]]]:
    asked = tuple(example_query(f"q{number}", *predicates) for number, predicates in enumerate(queries))
    found = accesses_of(plan(asked, example_statistics(OPTIONS), OPTIONS), tuple(streams))
    return [{(access.store, access.key) for access in of_table} for of_table in found]


def test_both_sides_of_a_join_have_one_table_and_equal_keys_of_several_joins_too() -> None:
    assert tables(("r.a = s.a",), ("s.a = t.a",)) == [{("r", A), ("s", A), ("t", A)}]


def test_a_store_that_is_joined_by_two_keys_is_in_two_tables() -> None:
    assert tables(("r.a = s.a", "s.b = t.b")) == [{("r", A), ("s", A)}, {("s", B), ("t", B)}]


def test_of_a_composite_key_one_part_is_enough_that_others_go_by() -> None:
    assert tables(("r.a = s.a", "r.b = s.b"), ("s.b = t.b",)) == [{("r", B), ("s", B), ("t", B)}]


def test_what_is_no_stream_has_no_table() -> None:
    assert tables(("r.a = s.a",), streams="r") == [{("r", A)}]


def test_rows_of_other_selections_are_looked_for_at_home() -> None:
    asked = (example_query("q", "r.a = s.a"),)
    together = accesses_of(plan(asked, example_statistics(OPTIONS), OPTIONS), ("r", "s"))
    made = Generation(
        first_batch=0,
        tables=first_tables(together, 4),
        accesses=tuple(access for of_table in together for access in of_table),
        partitions=4,
    )
    assert [access.selections for access in made.accesses] == [("true",), ("true",)]
    narrow = Generation(
        first_batch=0,
        tables=made.tables,
        accesses=tuple(type(each)(store=each.store, key=each.key, selections=("x > 1",)) for each in made.accesses),
        partitions=4,
    )
    assert made.access("r", A, ["x > 2"]) is not None
    assert narrow.access("r", A, ["x > 1"]) is not None
    assert narrow.access("r", A, ["x > 2"]) is None
    assert narrow.access("r", C, ["x > 1"]) is None
