"""What is sent, counted: by hand on few rows, and as told for drawn queries."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from benchmarks.simulator.feeds import AjoinFeeds, width
from benchmarks.simulator.sending import GROUPS, Feed, Tables, choose, sent_alone, sent_shared
from benchmarks.simulator.sending_compared import compare, is_missed, table
from benchmarks.workloads.ajoin_queries import AjoinWanted, draw_queries
from benchmarks.workloads.tpch_windows import CHAINS, chains
from plait.kernels.hashing import key_group_of
from plait.optimizer.partitioning import TableOptions

KEYS = np.arange(100)


def feed(operator: str, key: np.ndarray, *columns: str, source: str = "r", stays: bool = False) -> Feed:
    return Feed(
        operator=operator,
        source=source,
        key_name=f"k{key[1]}",
        key=key,
        taken=np.arange(len(key)) % 2 == 0,
        columns=frozenset(columns),
        stays=stays,
    )


def test_each_operator_by_itself_sends_a_copy_with_its_own_columns() -> None:
    feeds = [feed("q1", KEYS, "a"), feed("q2", KEYS[::-1].copy(), "a", "b", stays=True)]
    widths = {"a": 8, "b": 4}
    sent = sent_alone(feeds, widths, 4)
    assert (sent.rows, sent.bytes) == (100, 50 * (8 + 8) + 50 * (8 + 12))
    assert sum(sent.processed) == 100
    in_place = sent_alone(feeds, widths, 4, in_place=True)
    assert (in_place.rows, in_place.bytes) == (50, 50 * 16)


def test_shared_tables_send_a_row_once_to_a_partition_with_all_columns_that_are_needed_there() -> None:
    feeds = [feed("q1", KEYS, "a"), feed("q2", KEYS[::-1].copy(), "b")]
    rng = np.random.default_rng(1)
    partitions = rng.integers(0, 3, (2, GROUPS))
    sent = sent_shared(
        feeds, {"a": 8, "b": 4}, Tables(of={"q1": 0, "q2": 1}, partitions=partitions, count=3, bound_gap=0)
    )
    rows = size = 0
    for row in range(0, 100, 2):
        one, other = (
            partitions[place, key_group_of(each.key[row : row + 1], GROUPS)[0]] for place, each in enumerate(feeds)
        )
        rows += 1 if one == other else 2
        size += 9 + 12 if one == other else 18 + 12
    assert (sent.rows, sent.bytes) == (rows, size)


def test_operators_of_one_key_are_sent_what_one_of_them_would_be() -> None:
    feeds = [feed(f"q{place}", KEYS, "a") for place in range(5)]
    found = compare("drawn", 5, feeds, 4, 2, 0.2)
    assert (found.alone.rows, found.shared.rows) == (250, 50)


def test_one_query_sends_the_same_rows_under_shared_tables() -> None:
    (query,) = islice(draw_queries(AjoinWanted(sizes=(2,)), 7), 1)
    found = compare("ajoin", 1, AjoinFeeds(rows=500).read([query]), 8, 4, 0.2)
    assert found.rows == 1.0
    assert not is_missed(found)


@pytest.mark.parametrize(("queries", "most"), [(20, 0.5), (200, 0.15)])
def test_many_queries_send_a_fraction(queries: int, most: float) -> None:
    drawn = tuple(islice(draw_queries(AjoinWanted(), 7), queries))
    found = compare("ajoin", queries, AjoinFeeds(rows=500).read(drawn), 8, 4, 0.2)
    assert found.rows < most
    assert found.seconds_shared < found.seconds_alone
    assert table([found]).row_count == 1


def test_tables_of_a_join_are_one_for_both_sources() -> None:
    feeds = [feed("q1", KEYS, "a"), feed("q1", KEYS + 1000, "a", source="s"), feed("q2", KEYS[::-1].copy(), "a")]
    tables = choose(feeds, 4, TableOptions(seconds=0.2))
    assert tables.partitions.shape == (2, GROUPS)
    assert tables.of == {"q1": 0, "q2": 1}


def test_the_fourteen_queries_of_the_paper_are_there_and_join_what_was_joined_before() -> None:
    assert [chain.name for chain in chains(14)] == [f"q{n}" for n in (1, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 17, 18, 19)]
    assert [chain.name for chain in chains(4)] == ["q1", "q3", "q4", "q5"]
    for chain in CHAINS:
        known: set[str] = set()
        for arm in chain.joined:
            assert set(arm.on) <= known
            known |= {*arm.key, *arm.columns}
    assert width("c_name") == 18
    assert width("l_orderkey") == 8
