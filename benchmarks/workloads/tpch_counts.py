"""Ask DuckDB which columns of TPC-H have values in common, and how many rows a join has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.workloads.joins import Join, JoinStream
from benchmarks.workloads.tpch_drawing import JoinPool
from benchmarks.workloads.tpch_schema import KEY_JOINS, may_be_joined
from plait.errors import OptionError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def open_tpch(directory: Path, streams: Iterable[JoinStream], cores: int) -> DuckDBPyConnection:
    """Return a database in which every stream is a table with its whole history."""
    try:
        import duckdb
    except ImportError as error:
        raise OptionError(
            "the benchmark's queries are drawn and checked with DuckDB, which is not installed: "
            "pip install 'plait[bench]'"
        ) from error
    database = duckdb.connect(config={"threads": cores})
    for stream in streams:
        files = str(directory / stream.name / "*.parquet").replace("'", "''")
        database.execute(f"CREATE TABLE {stream.name} AS SELECT * FROM read_parquet('{files}')")
    return database


def find_joins(database: DuckDBPyConnection, streams: Iterable[JoinStream]) -> JoinPool:
    """Return the key joins, and joins of all other pairs of columns of compatible type that share a value."""
    all_streams = tuple(streams)
    by_key = {frozenset(((join.left, left), (join.right, right))) for join in KEY_JOINS for left, right in join.columns}
    found = [
        join
        for one, other in combinations(all_streams, 2)
        for join in _comparable(one, other)
        if frozenset(((join.left, join.columns[0][0]), (join.right, join.columns[0][1]))) not in by_key
        and _shares_values(database, join)
    ]
    return JoinPool(
        relations=tuple(stream.name for stream in all_streams), key_joins=KEY_JOINS, value_joins=tuple(found)
    )


def _comparable(one: JoinStream, other: JoinStream) -> Iterator[Join]:
    for left in one.columns:
        for right in other.columns:
            joinable = may_be_joined(left.name) and may_be_joined(right.name)
            if joinable and _family(left.type) == _family(right.type):
                yield Join(left=one.name, right=other.name, columns=((left.name, right.name),))


def _family(kind: str) -> str:
    """Return what a type is compatible with: whole numbers with each other, everything else with its own kind."""
    return "integer" if kind in {"int", "bigint"} else kind.partition("(")[0]


def _shares_values(database: DuckDBPyConnection, join: Join) -> bool:
    ((left, right),) = join.columns
    query = f"SELECT 1 FROM {join.left} WHERE {left} IN (SELECT {right} FROM {join.right}) LIMIT 1"
    return database.execute(query).fetchone() is not None


class RowCounter:
    """Counts the rows of joins over the full history, exactly and without making them."""

    def __init__(self, database: DuckDBPyConnection) -> None:
        self._database = database

    def __call__(self, relations: Iterable[str], joins: Iterable[Join]) -> float:
        """Return the rows of a join without cycles."""
        root = next(iter(relations))
        found = self._database.execute(f"SELECT sum(w) FROM ({weighted(root, tuple(joins), ())})").fetchone()
        return float(found[0] or 0) if found is not None else 0.0


def weighted(relation: str, joins: tuple[Join, ...], keys: tuple[str, ...]) -> str:
    """Return SQL for ``(k0, ..., w)``: how many rows the subtree below `relation` has for each value of its `keys`.

    A tree of joins is counted from its leaves: a row stands for as many results as the product of what its matches
    stand for, and equal keys are added up. So no intermediate has more rows than a relation.
    """
    mine = [join for join in joins if relation in join.relations]
    rest = tuple(join for join in joins if join not in mine)
    source, weights = f"{relation} AS base", ["CAST(1 AS DOUBLE)"]
    for number, join in enumerate(mine):
        is_left = join.left == relation
        other = join.right if is_left else join.left
        pairs = join.columns if is_left else tuple((right, left) for left, right in join.columns)
        below = weighted(other, _reachable(other, rest), tuple(theirs for _, theirs in pairs))
        on = " AND ".join(f"base.{own} = j{number}.k{place}" for place, (own, _) in enumerate(pairs))
        source += f" JOIN ({below}) AS j{number} ON {on}"
        weights.append(f"j{number}.w")
    chosen = "".join(f"base.{key} AS k{place}, " for place, key in enumerate(keys))
    rows = f"SELECT {chosen}{' * '.join(weights)} AS w FROM {source}"
    groups = ", ".join(f"k{place}" for place in range(len(keys)))
    return f"SELECT {groups}, CAST(sum(w) AS DOUBLE) AS w FROM ({rows}) GROUP BY {groups}" if keys else rows


def _reachable(relation: str, joins: tuple[Join, ...]) -> tuple[Join, ...]:
    """Return the joins of the part of a tree in which `relation` is."""
    reached, found = {relation}, []
    while more := [join for join in joins if join not in found and join.relations & reached]:
        found += more
        reached = reached.union(*(join.relations for join in more))
    return tuple(found)
