"""Joins are found where values are shared, and counted without being made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.workloads.joins import Join, JoinStream
from benchmarks.workloads.tpch_counts import RowCounter, find_joins, open_tpch
from plait.query.model import Column

RANDOM = np.random.default_rng(5)
JOINS = (
    Join(left="a", right="b", columns=(("a_x", "b_x"), ("a_y", "b_y"))),
    Join(left="c", right="b", columns=(("c_x", "b_x"),)),
    Join(left="b", right="d", columns=(("b_y", "d_y"),)),
    Join(left="d", right="e", columns=(("d_x", "e_y"),)),
)


@pytest.fixture
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for name in "abcde":
            table = pa.table({f"{name}_{column}": RANDOM.integers(0, 4, 30) for column in "xy"})
            connection.register("incoming", table)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM incoming")
        yield connection


@pytest.mark.parametrize("start", range(4))
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_counted_rows_are_those_of_the_join(database: duckdb.DuckDBPyConnection, count: int, start: int):
    joins = JOINS[:count]
    relations = sorted({relation for join in joins for relation in join.relations})
    relations = relations[start % len(relations) :] + relations[: start % len(relations)]
    where = " AND ".join(join.sql for join in joins)
    ((rows,),) = database.execute(f"SELECT count(*) FROM {', '.join(relations)} WHERE {where}").fetchall()
    assert RowCounter(database)(relations, joins) == rows > 0


def test_a_relation_alone_counts_its_rows(database: duckdb.DuckDBPyConnection):
    assert RowCounter(database)(("a",), ()) == 30


def test_a_join_without_results_counts_none(database: duckdb.DuckDBPyConnection):
    database.execute("UPDATE a SET a_x = 99")
    assert RowCounter(database)(("a", "b"), JOINS[:1]) == 0


def stream(name: str, **columns: str) -> JoinStream:
    return JoinStream(name=name, time="ts", columns=tuple(Column(name=key, type=kind) for key, kind in columns.items()))


def test_columns_are_joined_if_types_agree_and_values_are_shared(tmp_path: Path):
    nation = pa.table({"n_nationkey": [1, 2], "n_name": ["F", "O"], "n_comment": ["same", "same"], "n_row": [1, 2]})
    orders = pa.table({"o_status": ["P", "O"], "o_custkey": pa.array([2, 9], pa.int32()), "o_comment": ["same", ""]})
    supplier = pa.table({"s_nationkey": [1, 7], "s_name": ["x", "y"]})
    for name, table in (("nation", nation), ("orders", orders), ("supplier", supplier)):
        (tmp_path / name).mkdir()
        pq.write_table(table, tmp_path / name / "part.parquet")
    streams = (
        stream("nation", n_nationkey="bigint", n_name="string", n_comment="string", n_row="bigint"),
        stream("orders", o_status="string", o_custkey="int", o_comment="string"),
        stream("supplier", s_nationkey="bigint", s_name="string"),
    )
    with open_tpch(tmp_path, streams, 1) as database:
        pool = find_joins(database, streams)
    assert [join.sql for join in pool.value_joins] == [
        "nation.n_nationkey = orders.o_custkey",
        "nation.n_name = orders.o_status",
    ]
    assert pool.relations == ("nation", "orders", "supplier")
