"""Random queries that only count and add up exactly, over several batches with late rows: what is added up by group
while it is looked up comes to what DuckDB finds by window and key, and to what pairs come to.
"""

from __future__ import annotations

import os
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from plait.kernels import range_sums
from plait.operators.traversal.adding import Adding
from tests.oracle.duckdb_oracle import load
from tests.oracle.translate import connection
from tests.unit.operators.traversal.counting_run import SECOND, CountingRun, Row, table_of

FIRST_SEED = int(os.environ.get("PLAIT_SEED", "0"))
CASES, CHUNK = 24, 24
AGGREGATES = ("count({}.x)", "sum({}.x)", "sum({}.d)", "count_if({}.b)", "sum({}.k)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A query by its parts; lengths of windows in seconds."""

    tail: str
    time: str
    size: int
    slide: int
    start: int
    keys: tuple[str, ...]
    aggregates: tuple[str, ...]

    @property
    def select(self) -> str:
        """The query."""
        window = f"window({self.time}.ts, '{self.size} seconds', '{self.slide} seconds', '{self.start} seconds')"
        columns = ", ".join(("window.start", *self.keys, *self.aggregates))
        return f"SELECT {columns} FROM {self.tail} GROUP BY {', '.join((window, *self.keys))}"

    def begins(self, at: int) -> list[int]:
        """Return where the windows begin that a time belongs to."""
        return [b for b in range(at - self.size + 1, at + 1) if (b - self.start) % self.slide == 0]


def drawn_rows(rng: random.Random, begin: int) -> list[Row]:
    """Draw rows of whole seconds, many at bounds of windows; some are late by more than a batch."""

    def or_null(value: object) -> object:
        return None if rng.random() < 0.3 else value

    return [
        (
            max(0, begin + rng.choice((0, 4, 8, 12, rng.randrange(16))) - rng.choice((0, 0, 0, 14))),
            None if rng.random() < 0.1 else rng.randrange(2),
            or_null(rng.choice("ab")),
            or_null(rng.choice((0, 1, 3, -(2**31), 2**31 - 1))),
            None,
            or_null(Decimal(rng.choice(("1", "-9999999.99", "0.01")))),
            or_null(rng.random() < 0.5),
        )
        for _ in range(rng.choice((3, 12, 12)))
    ]


def drawn_queries(rng: random.Random) -> dict[str, Drawn]:
    """Draw two or three queries on one join; their selections may be different."""
    names = rng.choice(("rs", "rs", "rst"))
    joins = "".join(f" JOIN {name} ON r.k = {name}.k" for name in names[1:])
    queries = {}
    for number in range(rng.choice((2, 3))):
        time, where = rng.choice(names), rng.choice(("", "", " WHERE {}.x > 0", " WHERE {}.b"))
        slide = rng.choice((2, 4))
        aggregates = [each.format(rng.choice(names)) for each in rng.sample(AGGREGATES, rng.choice((0, 1, 3)))]
        queries[f"q{number}"] = Drawn(
            tail=f"r{joins}{where.format(rng.choice(names))}",
            time=time,
            size=slide * rng.choice((1, 2, 3)),
            slide=slide,
            start=rng.choice((0, 0, 1)),
            keys=rng.choice(((), (f"{time}.k",), (f"{rng.choice(names)}.k",), (f"{time}.c",), (f"{time}.c", "r.k"))),
            aggregates=("count(*)", *aggregates),
        )
    return queries


def added(groups: Any, query: Drawn) -> dict[Any, list[Any]]:
    """Return what parts come to by window and keys; NULL of nothing but NULLs."""
    found: dict[Any, list[Any]] = defaultdict(lambda: [None] * len(query.aggregates))
    for at, *row in groups:
        for begin in query.begins(at):
            totals = found[(begin, *row[: len(query.keys)])]
            for place, value in enumerate(row[len(query.keys) :]):
                if value is not None:
                    totals[place] = value + (totals[place] or 0)
    return dict(found)


def wanted(query: Drawn, names: str, within: int) -> dict[Any, list[Any]]:
    """Return what DuckDB finds of the rows that are loaded."""
    times = [f"epoch_us({name}.ts)" for name in names]
    near = f"greatest({', '.join(times)}) - least({', '.join(times)}) <= {within * SECOND}"
    windows = f"range({query.start - 40 * query.slide}, 100, {query.slide}) w(opens)"
    at = f"epoch_us({query.time}.ts)"
    tail = query.tail.replace(" WHERE", f" JOIN {windows} ON TRUE WHERE")
    tail += " AND " if " WHERE" in tail else f" JOIN {windows} ON TRUE WHERE "
    tail += f"{near} AND {at} >= opens * {SECOND} AND {at} < (opens + {query.size}) * {SECOND}"
    columns = ", ".join(("opens", *query.keys, *query.aggregates))
    columns = re.sub(r"count_if\((\w\.b)\)", r"count(*) FILTER (WHERE \1)", columns)  # of nothing it is 0 in Spark
    rows = connection().sql(f"SELECT {columns} FROM {tail} GROUP BY ALL").fetchall()
    return {row[: 1 + len(query.keys)]: list(row[1 + len(query.keys) :]) for row in rows}


@contextmanager
def reaches(seen: Counter[str]) -> Iterator[None]:
    """Count how often matches are added up, by shape."""
    of, by_pane = Adding.of, range_sums._add_by_pane

    def counted(counting: Any, partials: Any, keys: Any) -> Adding | None:
        made = of(counting, partials, keys)
        if made is None:
            return None
        way = "by probe" if made.groups is not None else "by pane"
        seen[way] += 1
        seen[f"{way}, keys"] += bool(counting.how.keys)
        seen[f"{way}, windows alone"] += not counting.how.keys
        seen[f"{way}, ours"] += bool(made.ours)
        seen[f"{way}, theirs"] += any(ref.relation == counting.counted for _, ref in counting.measured())
        seen[f"{way}, NULL keys"] += keys.rows is not None
        seen[f"{way}, several queries"] += len(counting.takers) > 1
        seen[f"{way}, three"] += len(partials.positions) > 1
        return made

    def met(*given: Any) -> None:
        by_pane(*given)
        seen["by pane, whole"] += bool(given[-2].any())

    with patch.object(Adding, "of", counted), patch.object(range_sums, "_add_by_pane", met):
        yield


def matched(run: CountingRun) -> int:
    """Return how many partial results have met anything."""
    return sum(count for report in run.reports for _, count in report.matched)


def check(directory: Path, seed: int, seen: Counter[str]) -> None:
    """Compare a random case with DuckDB, and with pairs."""
    rng = random.Random(seed)
    queries, within, parallelism = drawn_queries(rng), rng.choice((0, 4, 30)), rng.choice((1, 3))
    selects = {name: query.select for name, query in queries.items()}
    names = "rst" if "JOIN t" in queries["q0"].tail else "rs"
    batches = [{name: drawn_rows(rng, 12 * number) for name in names} for number in range(3)]
    runs = [
        CountingRun(directory / f"{seed} {counts}", selects, within_s=within, parallelism=parallelism, counts=counts)
        for counts in (True, False)
    ]
    with reaches(seen):
        for run in runs:
            for batch in batches:
                run.batch(**batch)
    load(connection(), {name: table_of([row for batch in batches for row in batch[name]]) for name in names})
    for name, query in queries.items():
        found = added(runs[0].groups(name), query)
        assert found == wanted(query, names, within), f"seed {seed}, {query.select}"
        seen["hopping" if query.slide < query.size else "tumbling"] += bool(found)
        seen["selections"] += bool(found) and "WHERE" in query.tail
        seen["sums that are NULL"] += any(value is None for totals in found.values() for value in totals)
    assert runs[0].matches() == runs[1].matches(), f"seed {seed}"
    assert matched(runs[0]) == matched(runs[1]), f"seed {seed}"


@pytest.mark.parametrize("first", range(FIRST_SEED, FIRST_SEED + CASES, CHUNK))
def test_what_is_added_up_by_group_comes_to_what_duckdb_finds_by_window(tmp_path: Path, first: int) -> None:
    seen = Counter[str]()
    for seed in range(first, first + CHUNK):
        check(tmp_path, seed, seen)
    shapes = ("keys", "windows alone", "ours", "theirs", "NULL keys", "three")
    ways = [f"{way}, {shape}" for way in ("by probe", "by pane") for shape in shapes]
    needed = (*ways, "by pane, whole", "hopping", "tumbling", "selections", "sums that are NULL")
    assert min(seen[each] for each in needed) >= 1, seen
