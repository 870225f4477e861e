"""The feeds of TPC-H's windowed queries, read from their data by DuckDB, and of `ajoin` queries, drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.simulator.sending import Feed
from benchmarks.workloads.ajoin_queries import ATTRIBUTES, LARGEST_VALUE, STREAMS
from benchmarks.workloads.joins import JoinQuery
from benchmarks.workloads.tpch_counts import open_tpch
from benchmarks.workloads.tpch_schema import time_column
from benchmarks.workloads.tpch_windows import WINDOW_S, Arm, ChainQuery
from plait.kernels.hashing import combine
from plait.optimizer.linear.linear_program import Bools, Ints

WIDTHS = {
    "c_name": 18,
    "o_orderpriority": 10,
    "l_shipmode": 6,
    "p_type": 20,
    "p_brand": 8,
    "p_container": 8,
    "o_orderdate": 4,
    "l_shipdate": 4,
    "o_shippriority": 4,
    "p_size": 4,
}
"""Bytes of the columns that are not 8 wide: texts as long as they are on average."""


def width(column: str) -> int:
    """Return the bytes of a column."""
    return WIDTHS.get(column, 8)


class TpchFeeds:
    """Reads keys and selections of TPC-H's streams, each once."""

    def __init__(self, directory: Path, cores: int = 1) -> None:
        self._directory, self._cores = directory, cores

    def read(self, queries: Sequence[ChainQuery]) -> tuple[Feed, ...]:
        """Return the feeds of the queries, those of what their joins make included."""
        with open_tpch(self._directory, (), self._cores) as self._database:
            for relation in ("nation", "region", *{arm.relation for query in queries for arm in query.arms}):
                files = str(self._directory / relation / "*.parquet").replace("'", "''")
                self._database.execute(
                    f"CREATE TABLE {relation} AS SELECT * FROM read_parquet('{files}') ORDER BY {time_column(relation)}"
                )
            return tuple(feed for query in queries for feed in (*self._sources(query), *self._joined(query)))

    def _sources(self, query: ChainQuery) -> Iterator[Feed]:
        for place, arm in enumerate(query.arms):
            operator = f"{query.name}/agg {arm.key[0]}" if arm.is_aggregate else f"{query.name}/{max(place, 1)}"
            key, taken = self._read(arm.relation, arm.key, arm.where)
            columns = frozenset((*arm.columns, *arm.key, time_column(arm.relation)))
            yield Feed(
                operator=operator,
                source=arm.relation,
                key_name=" ".join(arm.key),
                key=key,
                taken=taken,
                columns=columns,
            )

    def _read(self, relation: str, key: Sequence[str], where: str) -> tuple[Ints, Bools]:
        wanted = ", ".join(f"CAST({column} AS BIGINT) AS k{place}" for place, column in enumerate(key))
        order = time_column(relation)
        found = self._database.execute(
            f"SELECT {wanted}, coalesce({where}, false) AS taken FROM {relation} ORDER BY {order}"
        ).fetchnumpy()
        keys = [np.asarray(found[f"k{place}"], dtype=np.int64) for place in range(len(key))]
        return combine(keys), np.asarray(found["taken"], dtype=np.bool_)

    def _joined(self, query: ChainQuery) -> Iterator[Feed]:
        """Yield a feed for the result of every join but the last, by the key of the next."""
        arms = query.joined
        for place in range(2, len(arms)):
            before, following = arms[:place], arms[place]
            wanted = ", ".join(f"CAST({column} AS BIGINT) AS k{at}" for at, column in enumerate(following.on))
            found = self._database.execute(f"SELECT {wanted} FROM {_from(before)}").fetchnumpy()
            keys = [np.asarray(found[f"k{at}"], dtype=np.int64) for at in range(len(following.on))]
            carried = {column for arm in before for column in (*arm.columns, time_column(arm.relation))}
            yield Feed(
                operator=f"{query.name}/{place}",
                source=f"{query.name} joined {place}",
                key_name=" ".join(following.on),
                key=combine(keys),
                taken=np.ones(len(keys[0]), dtype=np.bool_),
                columns=frozenset((*carried, *following.on)),
                stays=set(following.on) <= {*before[-1].key, *before[-1].on},
            )


def _from(arms: Sequence[Arm]) -> str:
    """Return FROM and WHERE of the join of some arms, all within the window of each other."""
    conditions = [f"({condition})" for arm in arms for condition in (arm.where, arm.having)]
    for arm in arms[1:]:
        conditions += [f"{left} = {right}" for left, right in zip(arm.key, arm.on, strict=True)]
    times = ", ".join(time_column(arm.relation) for arm in arms)
    conditions.append(f"greatest({times}) - least({times}) <= INTERVAL {WINDOW_S} SECONDS")
    return f"{', '.join(arm.relation for arm in arms)} WHERE {' AND '.join(conditions)}"


class AjoinFeeds:
    """Feeds of drawn queries over streams of uniform attributes: what each stream is asked for, not what joins make.

    How often queries join the same thing is a matter of sharing joins, which these counts are not about.
    """

    def __init__(self, rows: int = 4000, seed: int = 7) -> None:
        random = np.random.default_rng(seed)
        self._values = {
            stream.name: random.integers(0, LARGEST_VALUE + 1, (ATTRIBUTES, rows), dtype=np.int64) for stream in STREAMS
        }
        self._keys = {
            (stream, attribute): frozen_rows(values[attribute])
            for stream, values in self._values.items()
            for attribute in range(ATTRIBUTES)
        }

    def read(self, queries: Sequence[JoinQuery]) -> tuple[Feed, ...]:
        """Return the feeds of the queries."""
        return tuple(feed for query in queries for feed in self._feeds(query))

    def _feeds(self, query: JoinQuery) -> Iterator[Feed]:
        selections = dict(query.selections)
        for place, stream in enumerate(query.relations):
            join = query.joins[max(place - 1, 0)]
            ((left, right),) = join.columns
            name = left if join.left == stream else right
            columns = {output.column for output in query.outputs if output.relation == stream}
            yield Feed(
                operator=f"{query.name}/{max(place, 1)}",
                source=stream,
                key_name=name,
                key=self._keys[stream, int(name[1:])],
                taken=self._taken(stream, selections.get(stream)),
                columns=frozenset((*columns, name)),
            )

    def _taken(self, stream: str, selection: str | None) -> Bools:
        values = self._values[stream]
        if selection is None:
            return np.ones(values.shape[1], dtype=np.bool_)
        column, operator, text = selection.split()
        own, bound = values[int(column.rpartition(".a")[2])], int(text)
        compared = {"=": own == bound, ">": own > bound, "<": own < bound, ">=": own >= bound, "<=": own <= bound}
        return np.asarray(compared[operator], dtype=np.bool_)


def frozen_rows(values: Ints) -> Ints:
    """Return values that are not to be written to, since feeds share them."""
    values = np.ascontiguousarray(values)
    values.flags.writeable = False
    return values
