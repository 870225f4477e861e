"""Random queries that group, of every function and in every way there is, against Spark's own batch engine."""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import plait
from tests.oracle.compare import difference, table_rows
from tests.spark.test_grouping_spark import batch_results, engine, kinds, write

pytestmark = pytest.mark.spark

QUERIES = int(os.environ.get("PLAIT_CASES", "14"))
FIRST_SEED = int(os.environ.get("PLAIT_SEED", "0"))
TOGETHER = 14
NUMBERS, EXACT = ("r.k", "r.small", "r.price", "r.x"), ("r.k", "r.small")
ANY = (*NUMBERS, "r.name", "r.flag", "r.day", "r.f")
FUNCTIONS = {
    "count(*)": ("",),
    "count({})": ANY,
    "count(DISTINCT {})": ANY,
    "count(DISTINCT {}, r.flag)": ANY,
    "count_if({} > 1)": EXACT,
    "sum({})": NUMBERS,
    "sum({} * 2 - 1)": EXACT,
    "avg({})": NUMBERS,
    "min({})": ANY,
    "max({})": ANY,
    "round(stddev({}), 9)": EXACT,
    "round(variance({}), 9)": EXACT,
    "approx_count_distinct({})": ANY,
    "percentile({}, 0.3)": EXACT,
    "median({})": EXACT,
    "bool_or({} > 2)": EXACT,
    "first({})": ("r.k", "r.name"),
    "last({}, true)": ("r.k", "r.name"),
    "collect_list({})": ("r.k", "r.name"),
    "collect_set({})": ("r.k", "r.name"),
}
"""Calls, and the columns they are drawn with."""

BY_TIME = {
    "first({})": "min_by({0}, struct(r.ts, {0}))",
    "last({}, true)": "max_by({0}, struct(r.ts, {0})) FILTER (WHERE {0} IS NOT NULL)",
    "collect_list({})": "transform(array_sort(collect_list("
    "CASE WHEN {0} IS NOT NULL THEN struct(r.ts, {0} AS x) END)), each -> each.x)",
    "collect_set({})": "array_sort(collect_set({0}))",
}
"""What those that depend on the order of rows mean, as Spark's batch engine can be asked."""

KEYS = ("r.k", "r.name", "r.flag", "r.day", "r.x", "lower(r.name)", "r.k % 2", "r.price > 0")
TAILS = {"": "FROM r", "joined": "FROM r JOIN s ON r.k = s.k{}"}
NEAR = " AND abs(unix_micros(r.ts) - unix_micros(s.ts)) <= 6000000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A query, the same as Spark's batch engine is asked, and what kind of query it is."""

    sql: str
    batch: str
    kinds: frozenset[str]


def drawn(seed: int) -> Drawn:
    """Return the query of a seed; a function and a kind of groups come round with the seeds."""
    rng, ways = random.Random(seed), ("tumbling", "hopping", "session", "CUBE", "ROLLUP", "GROUPING SETS", "DISTINCT")
    way = ways[seed % len(ways)]
    call, keys = _window(rng, way), rng.sample(KEYS, rng.choice((1, 2, 2)))
    tail = TAILS["joined" if rng.random() < 0.3 else ""]
    if way == "DISTINCT":
        sql = f"SELECT DISTINCT {call}.end AS until, {', '.join(f'{key} AS k{n}' for n, key in enumerate(keys))} {tail}"
        return Drawn(sql=sql.format(""), batch=sql.format(NEAR), kinds=frozenset({way}))
    names = list(FUNCTIONS)
    chosen = [names[seed % len(names)], *rng.sample(names, 2)]
    if way == "session":  # of several, Spark's batch engine does not put the rows of a session together
        distinct = [each for each in chosen if "DISTINCT" in each]
        chosen = [each for each in chosen if each not in distinct[1:]]
    values = [_value(rng, name, way) for name in chosen]
    having = rng.choice(("", "", " HAVING count(*) > 1"))
    listed = [f"{key} AS k{n}" for n, key in enumerate(keys)]
    if way in ("CUBE", "ROLLUP", "GROUPING SETS"):
        listed.append(f"grouping({keys[0]}) AS g")
    group = f" {tail} GROUP BY {call}, {_grouped(way, keys)}{having}"
    head = f"SELECT {call}.start AS at, {call}.end AS until, {', '.join(listed)}, "
    mine, theirs = (", ".join(f"{pair[side]} AS v{n}" for n, pair in enumerate(values)) for side in (0, 1))
    return Drawn(
        sql=(head + mine + group).replace("s.k{}", "s.k"),
        batch=(head + theirs + group).replace("s.k{}", "s.k" + NEAR),
        kinds=frozenset({way, *chosen, *(["FILTER"] if "FILTER" in mine else [])}),
    )


def _window(rng: random.Random, way: str) -> str:
    if way == "session":
        return f"session_window(r.ts, '{rng.choice((300, 625, 700, 1500))} milliseconds')"
    if way == "hopping":
        return f"window(r.ts, '{rng.choice((4, 9))} seconds', '{rng.choice((2, 3))} seconds', '1 second')"
    return f"window(r.ts, '{rng.choice((3, 5, 8))} seconds')"


def _grouped(way: str, keys: list[str]) -> str:
    match way:
        case "CUBE" | "ROLLUP":
            return f"{way} ({', '.join(keys)})"
        case "GROUPING SETS":
            return f"GROUPING SETS (({', '.join(keys)}), ({keys[-1]}), ())"
        case _:
            return ", ".join(keys)


def _value(rng: random.Random, name: str, way: str) -> tuple[str, str]:
    """Return an aggregate, and as Spark's batch engine is asked; some with a FILTER."""
    column = rng.choice(FUNCTIONS[name])
    mine, theirs = name.format(column), BY_TIME.get(name, name).format(column)
    if name in BY_TIME or "round" in name or rng.random() < 0.75 or ("DISTINCT" in name and way == "session"):
        return mine, theirs
    return f"{mine} FILTER (WHERE r.small > 0)", f"{theirs} FILTER (WHERE r.small > 0)"


@pytest.mark.parametrize("first", range(FIRST_SEED, FIRST_SEED + QUERIES, TOGETHER))
def test_random_groups_are_those_of_sparks_batch_engine(spark: Any, tmp_path: Path, first: int) -> None:
    write(tmp_path, 2)
    made = engine(spark, tmp_path)
    seeds = range(first, first + TOGETHER)
    queries = {seed: made.query(f"q{seed}", drawn(seed).sql, sink=plait.sinks.memory()) for seed in seeds}
    made.run_available(close=True)
    for seed, query in queries.items():
        found, wanted = query.results(), batch_results(spark, tmp_path, drawn(seed).batch)
        assert kinds(found) == kinds(wanted), drawn(seed)
        assert found.num_rows
        assert difference(table_rows(found), table_rows(wanted)) is None, drawn(seed)


def test_every_function_and_way_to_group_is_drawn() -> None:
    seen = Counter(kind for seed in range(140) for kind in drawn(seed).kinds)
    assert seen.keys() >= {*FUNCTIONS, "session", "hopping", "CUBE", "ROLLUP", "GROUPING SETS", "DISTINCT", "FILTER"}
    assert min(seen.values()) >= 3, seen
