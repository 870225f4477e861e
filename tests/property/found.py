"""Write a case by hand: short enough to read in a test."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tests.property.case import Case, CaseColumn, CaseQuery, CaseSource, RunOptions, Windows
from tests.property.expressions import apply, column
from tests.property.plain import plain_query
from tests.property.values import KINDS, time_value

Condition = tuple[str, Callable[..., bool | None]]

_BY_TYPE = {kind.spark: kind for kind in reversed(KINDS)}


def stream(
    name: str,
    columns: str,
    *rows: tuple[Any, ...],
    window_us: int | None = None,
    delay_us: int = 0,
    time: str = "TIMESTAMP",
) -> CaseSource:
    """Return a stream. Each row is (batch, τ in microseconds or None, values...); a last column ``ts`` of type `time`
    holds τ.
    """
    typed = (*_columns(columns), CaseColumn(name="ts", kind=_BY_TYPE[time]))
    ordered = sorted(rows, key=lambda row: row[0])
    values = [(*row[2:], None if row[1] is None else time_value(typed[-1].kind, row[1])) for row in ordered]
    return CaseSource(
        name=name,
        columns=typed,
        rows=_table(typed, values),
        time="ts",
        window_us=window_us,
        delay_us=delay_us,
        batch_of=tuple(row[0] for row in ordered),
    )


def table(name: str, columns: str, *rows: tuple[Any, ...]) -> CaseSource:
    """Return a table."""
    typed = _columns(columns)
    return CaseSource(name=name, columns=typed, rows=_table(typed, list(rows)))


def query(sql: str, *relations: tuple[str, str], windows: Windows = ()) -> CaseQuery:
    """Return a query over ``(alias, source)`` relations in FROM order, as text alone."""
    return CaseQuery(name="q", sql=sql, relations=relations, windows=windows, conditions=(), projection=())


def joined(left: CaseSource, right: CaseSource, *conditions: Condition, windows: Windows = ()) -> CaseQuery:
    """Return a query over sources ``a`` and ``b`` with all their columns, as text and as structure.

    Each condition is a template with ``{a.column}`` and ``{b.column}``, and what it means in Python: a function of
    these values in the order of their first appearance, not called for NULL.
    """
    columns = {
        f"{alias}.{item.name}": column(alias, item.name, item.kind.name, item.kind.small)
        for alias, source in (("a", left), ("b", right))
        for item in source.columns
    }
    predicates = []
    for text, function in conditions:
        names = list(dict.fromkeys(re.findall(r"{([ab]\.\w+)}", text)))
        template = re.sub(r"{([ab]\.\w+)}", lambda found, names=names: f"{{{names.index(found[1])}}}", text)
        predicates.append(apply(template, function, *(columns[name] for name in names), kind="b"))
    relations = (("a", left.name), ("b", right.name))
    return plain_query("q", relations, predicates, list(columns.values()), windows)


def case(sources: tuple[CaseSource, ...], *queries: CaseQuery, **options: Any) -> Case:
    """Return a case; `options` are fields of RunOptions, among them `strategy` for all batches."""
    batches = 1 + max((max(source.batch_of, default=0) for source in sources), default=0)
    chosen = {"parallelism": 1, "routing": "local", "block_rows": 1024, **options}
    strategy = chosen.pop("strategy", "greedy")
    chosen.setdefault("strategies", (strategy,) * batches)
    renamed = tuple(replace(found, name=f"q{number}") for number, found in enumerate(queries))
    return Case(seed=-1, sources=sources, queries=renamed, batches=batches, options=RunOptions(**chosen))


def _columns(text: str) -> tuple[CaseColumn, ...]:
    """Read ``k BIGINT, d DECIMAL(10,2)``."""
    columns = []
    for part in re.split(r", (?![^<(]*[>)])", text):
        name, kind = part.split(" ", 1)
        columns.append(CaseColumn(name=name, kind=_BY_TYPE[kind]))
    return tuple(columns)


def _table(columns: tuple[CaseColumn, ...], rows: list[tuple[Any, ...]]) -> pa.Table:
    arrays = [pa.array([row[n] for row in rows], column.kind.arrow) for n, column in enumerate(columns)]
    return pa.table(arrays, names=[column.name for column in columns])
