"""Write a case by hand: short enough to read in a test."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa

from tests.property.case import Case, CaseColumn, CaseQuery, CaseSource, RunOptions, Windows
from tests.property.values import KINDS

_EPOCH = datetime.datetime(1970, 1, 1)
_BY_TYPE = {kind.spark: kind for kind in reversed(KINDS)}


def stream(
    name: str, columns: str, *rows: tuple[Any, ...], window_us: int | None = None, delay_us: int = 0
) -> CaseSource:
    """Return a stream. Each row is (batch, τ in microseconds or None, values...); a last column ``ts`` holds τ."""
    typed = (*_columns(columns), CaseColumn(name="ts", kind=_BY_TYPE["TIMESTAMP"]))
    ordered = sorted(rows, key=lambda row: row[0])
    values = [
        (*row[2:], None if row[1] is None else _EPOCH + datetime.timedelta(microseconds=row[1])) for row in ordered
    ]
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
    """Return a query over ``(alias, source)`` relations in FROM order."""
    return CaseQuery(name="q", sql=sql, relations=relations, windows=windows, conditions=(), projection=())


def case(sources: tuple[CaseSource, ...], *queries: CaseQuery, **options: Any) -> Case:
    """Return a case; `options` are fields of RunOptions, among them `strategy` for all batches."""
    batches = 1 + max((max(source.batch_of, default=0) for source in sources), default=0)
    chosen = {"parallelism": 1, "routing": "local", "block_rows": 1024, **options}
    strategy = chosen.pop("strategy", "greedy")
    chosen.setdefault("strategies", (strategy,) * batches)
    renamed = tuple(
        CaseQuery(
            name=f"q{number}",
            sql=found.sql,
            relations=found.relations,
            windows=found.windows,
            conditions=(),
            projection=(),
        )
        for number, found in enumerate(queries)
    )
    return Case(seed=-1, sources=sources, queries=renamed, batches=batches, options=RunOptions(**chosen))


def _columns(text: str) -> tuple[CaseColumn, ...]:
    """Read ``k BIGINT, d DECIMAL(10,2)``."""
    columns = []
    for part in text.replace(", ", "\n").splitlines():
        name, kind = part.split(" ")
        columns.append(CaseColumn(name=name, kind=_BY_TYPE[kind]))
    return tuple(columns)


def _table(columns: tuple[CaseColumn, ...], rows: list[tuple[Any, ...]]) -> pa.Table:
    arrays = [pa.array([row[n] for row in rows], column.kind.arrow) for n, column in enumerate(columns)]
    return pa.table(arrays, names=[column.name for column in columns])
