"""Random sets of queries over random rows: what grouping comes to, counted tuple by tuple."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise

import pytest

from plait.optimizer import plan
from plait.optimizer.assemble.build import build
from plait.optimizer.assemble.covering import cover
from plait.optimizer.options import PlanOptions
from plait.optimizer.probe_orders import cheapest_extension, choose_orders
from plait.plan.model import Plan
from plait.plan.traversals import probes
from plait.query.model import Query, SourceExpression
from plait.stats.model import QuerySets, SourceStatistics, Statistics
from tests.unit.optimizer.counted import Row, counted
from tests.unit.optimizer.queries import options, query, stream

NAMES, KEYS = "rstu", 12
SOURCES = tuple(stream(name, window=None) for name in NAMES)
ROWS = 60
SETS = 200


def random_rows(rng: random.Random) -> dict[str, list[Row]]:
    moments = list(range(ROWS * len(NAMES)))
    rng.shuffle(moments)
    return {
        name: [
            {"a": rng.randrange(KEYS), "b": rng.randrange(KEYS), "v": rng.randrange(100), "at": moments.pop()}
            for _ in range(ROWS)
        ]
        for name in NAMES
    }


def random_queries(rng: random.Random) -> tuple[Query, ...]:
    """Return queries over chains of two or three neighbours, whose selections overlap much, little or not at all."""
    centre = rng.randrange(20, 80)
    found = []
    for number in range(rng.randint(2, 8)):
        size = rng.choice((2, 2, 3))
        first = rng.randrange(len(NAMES) - size + 1) if rng.random() < 0.4 else 0
        chain = NAMES[first : first + size]
        found.append(
            query(
                f"q{number}",
                {name: name for name in chain},
                [f"{left}.b = {right}.a" for left, right in pairwise(chain)],
                where={name: _selection(rng, centre) for name in chain},
                windows=dict.fromkeys(chain),
            )
        )
    return tuple(found)


def _selection(rng: random.Random, centre: int) -> list[str]:
    kind = rng.random()
    if kind < 0.15:
        return []
    if kind < 0.6:
        return [f"`v` > {centre + rng.randrange(-15, 15)}"]
    if kind < 0.75:
        return [f"`v` < {centre + rng.randrange(-15, 15)}"]
    low = rng.randrange(90)
    return [f"`v` > {low}", f"`v` < {low + rng.randrange(5, 40)}"]


def holds(conjuncts: tuple[SourceExpression, ...], row: Row) -> bool:
    return all(eval(each.sql.replace("`", ""), {}, dict(row)) for each in conjuncts)


def measured(queries: tuple[Query, ...], rows: Mapping[str, list[Row]]) -> Statistics:
    """Return what is known of these rows when they have all been looked at."""
    sources, samples = [], []
    for name, listed in sorted(rows.items()):
        wanted = {
            " AND ".join(f"({each.sql})" for each in sorted(relation.selections, key=lambda each: each.sql))
            or "true": (relation.selections)
            for each_query in queries
            for relation in each_query.relations
            if relation.source == name
        }
        texts = sorted(wanted)
        passed = [sum(holds(wanted[text], row) << place for place, text in enumerate(texts)) for row in listed]
        samples.append(QuerySets(source=name, selections=tuple(texts), sets=tuple(sorted(Counter(passed).items()))))
        sources.append(
            SourceStatistics(
                source=name,
                rows=float(ROWS),
                rate_rows_per_s=1.0,
                distinct=(("a", float(KEYS)), ("b", float(KEYS))),
                selectivity=tuple(
                    (text, sum(bits >> place & 1 for bits in passed) / ROWS) for place, text in enumerate(texts)
                ),
            )
        )
    return Statistics(sources=tuple(sources), query_sets=tuple(samples))


def alternatives(queries: tuple[Query, ...], statistics: Statistics, asked: PlanOptions) -> Iterator[Plan]:
    """Yield the plans in which all that can be is joined as one, and in which nothing is."""
    as_one = cover(queries, lambda each, relation: f"{relation.source}")
    for joined in (as_one, queries):
        orders = choose_orders(joined, statistics, asked, cheapest_extension)
        yield build(queries, orders, statistics, asked, covering=joined)


def expected(made: Plan) -> float:
    """Return the tuples that a plan is estimated to send and to find."""
    return sum((step.estimate.probe_tuples or 0.0) + (step.estimate.results or 0.0) for _, step in probes(made))


def test_grouping_is_never_much_dearer_than_all_as_one_or_all_apart() -> None:
    asked = options("adhoc", SOURCES)
    total, worst, paid = Counter[str](), 0.0, 0
    for seed in range(SETS):
        rng = random.Random(f"groups {seed}")
        rows, queries = random_rows(rng), random_queries(rng)
        statistics = measured(queries, rows)
        made = plan(queries, statistics, asked)
        others = tuple(alternatives(queries, statistics, asked))
        assert expected(made) <= 1.001 * min(map(expected, others)), f"set {seed}"
        grouped = counted(made, rows).work
        as_one, apart = (counted(each, rows).work for each in others)
        worst = max(worst, grouped / min(as_one, apart))
        paid += grouped < min(as_one, apart)
        total.update(grouped=grouped, as_one=as_one, apart=apart, best=min(as_one, apart))
    assert worst <= 1.05
    assert total["grouped"] < total["best"] < min(total["as_one"], total["apart"])
    assert paid >= SETS // 3


@pytest.mark.parametrize("seed", range(3))
def test_counting_agrees_with_estimates(seed: int) -> None:
    rng = random.Random(f"counted {seed}")
    rows = random_rows(rng)
    queries = (query("q", {"r": "r", "s": "s"}, ["r.b = s.a"], windows={"r": None, "s": None}),)
    made = plan(queries, measured(queries, rows), options("adhoc", SOURCES))
    count = counted(made, rows)
    assert count.sent == 2 * ROWS
    assert count.found == pytest.approx(ROWS * ROWS / KEYS, rel=0.2)
