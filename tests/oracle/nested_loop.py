"""What a query must output, computed by loops over Python objects: slow, plain, and independent of any SQL engine."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tests.oracle.duckdb_oracle import joinable_rows
from tests.property.case import Case, CaseQuery
from tests.property.expressions import Expression, Row

MOST_COMBINATIONS = 200_000


class TooManyCombinationsError(Exception):
    """The loops would run too long."""


def nested_loop(case: Case, query: CaseQuery) -> list[tuple[Any, ...]]:
    """Return the rows of the query, in no particular order. Raises TooManyCombinationsError."""
    rows = {name: table.to_pylist() for name, table in joinable_rows(case).items()}
    taus = {
        name: table.column(case.source(name).time or 0).cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
        if not case.source(name).is_table
        else []
        for name, table in joinable_rows(case).items()
    }
    found: list[tuple[Row, dict[str, int]]] = [({}, {})]
    bound: set[str] = set()
    visited = 0
    for alias, name in query.relations:
        bound.add(alias)
        ready = [item for item in query.conditions if _reads(item) <= bound and (alias in _reads(item))]
        longer = []
        for partial, partial_taus in found:
            for number, row in enumerate(rows[name]):
                visited += 1
                if visited > MOST_COMBINATIONS:
                    raise TooManyCombinationsError(query.name)
                candidate = {**partial, alias: row}
                if all(condition.value(candidate) is True for condition in ready):
                    tau = {} if case.source(name).is_table else {alias: taus[name][number]}
                    longer.append((candidate, {**partial_taus, **tau}))
        found = longer
    return [
        tuple(item.value(row) for item in query.projection)
        for row, members in found
        if _in_windows(case, query, members)
    ]


def _reads(expression: Expression) -> set[str]:
    return {alias for alias, _ in expression.columns}


def _in_windows(case: Case, query: CaseQuery, members: dict[str, int]) -> bool:
    newest = max(members.values())
    for alias, tau in members.items():
        window_us = case.window_us(query, alias)
        if window_us is not None and newest - tau > window_us:
            return False
    return True
