"""Feeds of TPC-H's windowed queries, and which of these Plait runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.simulator.feeds import TpchFeeds
from benchmarks.simulator.sending import Feed
from benchmarks.workloads.tpch_counts import open_tpch
from benchmarks.workloads.tpch_data import TpchInput, prepare_tpch, read_streams
from benchmarks.workloads.tpch_windows import SQL, WINDOW_S, chains, refused


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare_tpch(TpchInput(scale=0.001, files=2), tmp_path_factory.mktemp("tpch"))


@pytest.fixture(scope="module")
def feeds(data: Path) -> dict[tuple[str, str], Feed]:
    return {(feed.operator, feed.source): feed for feed in TpchFeeds(data).read(chains(14))}


def test_a_feed_has_a_key_for_every_row_and_takes_what_is_selected(
    data: Path, feeds: dict[tuple[str, str], Feed]
) -> None:
    with open_tpch(data, read_streams(data), 1) as database:
        count, taken = database.execute(
            "SELECT count(*), count(*) FILTER (l_shipdate > DATE '1995-03-15') FROM lineitem"
        ).fetchone() or (0, 0)
    feed = feeds["q3/2", "lineitem"]
    assert (len(feed.key), int(feed.taken.sum())) == (count, taken)
    assert feed.columns == {"l_orderkey", "l_extendedprice", "l_discount", "l_ts"}
    assert len(np.unique(feed.key)) > 1000


def test_what_a_join_makes_is_sent_to_the_next_one_by_its_key(data: Path, feeds: dict[tuple[str, str], Feed]) -> None:
    with open_tpch(data, read_streams(data), 1) as database:
        (count,) = database.execute(
            "SELECT count(*) FROM customer, orders WHERE c_custkey = o_custkey AND c_mktsegment = 'BUILDING' "
            f"AND o_orderdate < DATE '1995-03-15' AND abs(epoch(c_ts) - epoch(o_ts)) <= {WINDOW_S}"
        ).fetchone() or (0,)
    feed = feeds["q3/2", "q3 joined 2"]
    assert (len(feed.key), feed.key_name) == (count, "o_orderkey")
    assert count > 0


def test_operators_of_a_query_are_joins_of_two_inputs_and_aggregates(feeds: dict[tuple[str, str], Feed]) -> None:
    inputs: dict[str, int] = {}
    for operator, _ in feeds:
        inputs[operator] = inputs.get(operator, 0) + 1
    assert {operator for operator, count in inputs.items() if count == 1} == {"q17/agg l_partkey", "q18/agg l_orderkey"}
    assert set(inputs.values()) == {1, 2}


def test_of_the_fourteen_queries_two_are_refused_by_name(data: Path) -> None:
    found = refused(data)
    assert len(SQL) == 14
    assert sorted(found) == ["q17", "q18"]
