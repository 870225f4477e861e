"""Small random instances for the optimality tests: few sources, so that queries overlap."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from plait.optimizer.options import PlanOptions
from plait.query.model import Query
from plait.stats.declared import declared_statistics
from plait.stats.model import Statistics
from tests.unit.optimizer.queries import options, query, stream, table

SECONDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """What `decide` takes."""

    queries: tuple[Query, ...]
    statistics: Statistics
    options: PlanOptions


def instance(
    seed: int, *, queries: int, size: int, parallelism: int = 1, sources: int = 6, tables: int = 0
) -> Instance:
    """Draw queries of two to `size` relations over sources of different rates and numbers of keys."""
    rng = random.Random(seed)
    names = [f"r{number}" for number in range(sources)]
    static = set(names[:tables])
    distinct = {column: float(rng.choice((5, 50, 500))) for column in "abc"}
    made = tuple(
        table(name, rows=rng.choice((10.0, 200.0)), distinct=distinct)
        if name in static
        else stream(name, rate=rng.choice((1.0, 10.0, 40.0)), distinct=distinct, window=SECONDS)
        for name in names
    )
    chosen: dict[tuple[str, ...], Query] = {}
    while len(chosen) < queries:
        found = _query(rng, f"q{len(chosen)}", names, rng.randint(2, size), static)
        if not all(relation.is_table for relation in found.relations):
            chosen.setdefault((found.text, *map(str, found.equalities)), found)
    per_source = {name: parallelism if parallelism == 1 else rng.randint(1, parallelism) for name in names}
    return Instance(
        queries=tuple(chosen.values()),
        statistics=declared_statistics(made),
        options=replace(options("ilp", made, parallelism, **per_source), gap=0.0, time_limit_s=60.0),
    )


def _query(rng: random.Random, name: str, names: list[str], size: int, static: set[str]) -> Query:
    """Draw a tree over random relations, sometimes with an edge more."""
    relations = rng.sample(names, size)
    pairs = [(relations[rng.randrange(place)], relations[place]) for place in range(1, size)]
    if size > 2 and rng.random() < 0.3:
        pairs.append((relations[0], relations[-1]))
    conditions = sorted({_condition(rng, *sorted(pair)) for pair in pairs})
    return query(
        name,
        {relation: relation for relation in sorted(relations)},
        conditions,
        windows=dict.fromkeys(relations, SECONDS),
        tables=static,
    )


def _condition(rng: random.Random, one: str, other: str) -> str:
    column = rng.choice("aabc")
    return f"{one}.{column} = {other}.{column}"
