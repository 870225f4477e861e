"""How EXPLAIN words join predicates that are no equality."""

from __future__ import annotations

import pytest

from plait.optimizer import plan
from plait.optimizer.options import PlanOptions
from plait.plan.explain import explain
from plait.query.model import Column, Operand, Query, SinkSpec, Stream
from plait.query.types import resolve_types
from plait.sql.predicates.evaluation import resolve_residuals
from plait.sql.select.binder import bind_query
from plait.stats.model import Statistics

TYPES = {"ts": "timestamp", "k": "bigint", "x": "bigint", "f": "double", "d": "date", "name": "string"}
COLUMNS = tuple(Column(name=name, type=kind) for name, kind in TYPES.items())
SOURCES = {name: Stream(name=name, time="ts", schema=COLUMNS, window_us=10_000_000) for name in "abc"}


def query(condition: str, tables: str = "a, b") -> Query:
    bound = bind_query(
        name="q",
        select=f"SELECT a.k FROM {tables} WHERE {condition}",
        sink=SinkSpec(format="noop"),
        sources=SOURCES,
        predicates=("similar",),
    )

    def type_of(operand: Operand) -> str:
        return TYPES[operand.expression.columns[0]]

    return resolve_residuals(resolve_types(bound, type_of), type_of)


def explained(made: Query, strategy: str = "greedy") -> str:
    options = PlanOptions(strategy=strategy, parallelism=2, sources=tuple(SOURCES.values()))
    return explain(plan((made,), Statistics(), options), "text")


@pytest.mark.parametrize(
    ("condition", "shown"),
    [
        ("a.x BETWEEN b.x - 5 AND b.x + 5", "b on b.x between a.x - 5 and a.x + 5, in all 2 partitions"),
        ("a.x < b.x", "b on b.x >= a.x + 1,"),
        ("b.ts <= a.ts + INTERVAL 90 SECONDS AND a.k = b.k", "b on a.k = b.k and b.ts <= a.ts + 1 min 30 s, in one"),
        ("b.d >= a.d + INTERVAL 2 DAYS", "b on b.d >= a.d + 2 d,"),
        ("abs(a.f - b.f) < 0.5", "b on b.f between a.f - 0.5 and a.f + 0.5 and (abs((a.f - b.f)) < 0.5),"),
        ("a.name LIKE concat(b.name, '%')", "b on (a.name LIKE concat(b.name, '%')),"),
        ("similar(a.name, b.name)", "b on similar(a.name, b.name),"),
        ("a.k = b.k AND a.x <> b.x", "b on a.k = b.k and (a.x <> b.x), in one partition"),
    ],
)
def test_conditions_read_as_they_were_meant(condition: str, shown: str) -> None:
    assert shown in explained(query(condition))


def test_keys_that_are_compared_by_size_say_so() -> None:
    assert "keys    f as double by size" in explained(query("abs(a.f - b.f) < 0.5"))


def test_an_intermediate_store_names_its_conditions() -> None:
    made = query("a.x BETWEEN b.x - 5 AND b.x + 5 AND b.name <> c.name AND b.k = c.k", "a, b, c")
    text = explained(made, "left-deep")
    assert "keeps   b ⋈ c on b.k = c.k and (b.name <> c.name)" in text
    assert "keys    b.x as bigint" in text
