"""Make a failing case smaller while it still fails, so that a person can follow it by hand."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa

from tests.oracle.duckdb_oracle import UnsuitableCaseError
from tests.property.case import Case, CaseSource
from tests.property.plain import simpler_queries

Fails = Callable[[Case], bool]


def shrink(case: Case, fails: Fails, seconds: float = 20.0) -> Case:
    """Return the smallest failing case found in the time; `fails` says whether a case still does.

    Taking rows away can only lower a watermark, so a case without late rows stays one.
    """
    deadline = time.monotonic() + seconds
    progress = True
    while progress and time.monotonic() < deadline:
        progress = False
        for smaller in _smaller(case):
            if time.monotonic() > deadline:
                break
            if _still_fails(smaller, fails):
                case, progress = smaller, True
                break
    return case


def _still_fails(case: Case, fails: Fails) -> bool:
    try:
        return fails(case)
    except UnsuitableCaseError:
        return False


def _smaller(case: Case) -> Iterator[Case]:
    """Yield simpler cases, the boldest steps first."""
    if len(case.queries) > 1:
        for query in case.queries:
            yield replace(case, queries=(query,))
    read = {name for query in case.queries for _, name in query.relations}
    if len(read) < len(case.sources):
        yield replace(case, sources=tuple(source for source in case.sources if source.name in read))
    for number, query in enumerate(case.queries):
        for simpler in simpler_queries(case, query):
            yield replace(case, queries=(*case.queries[:number], simpler, *case.queries[number + 1 :]))
    yield from _simpler_options(case)
    for number, source in enumerate(case.sources):
        rows = source.rows.num_rows
        size = rows
        while size >= 1:
            for start in range(0, rows, size):
                kept = [row for row in range(rows) if not start <= row < start + size]
                yield _with_source(case, number, _only(source, kept))
            size //= 2


def _simpler_options(case: Case) -> Iterator[Case]:
    plain = {
        "restarts": frozenset(),
        "compactions": frozenset(),
        "weak_hash": False,
        "derives": False,
        "sliced_ingest": 1,
        "block_rows": 65536,
        "routing": "local",
        "parallelism": 1,
        "storage_rows": None,
        "strategies": (case.options.strategies[0],) * case.batches,
    }
    for name, value in plain.items():
        if getattr(case.options, name) != value:
            yield case.with_options(**{name: value})


def _only(source: CaseSource, rows: list[int]) -> CaseSource:
    batches = tuple(source.batch_of[row] for row in rows) if source.batch_of else ()
    return replace(source, rows=source.rows.take(pa.array(rows, pa.int64())), batch_of=batches)


def _with_source(case: Case, number: int, source: CaseSource) -> Case:
    return replace(case, sources=(*case.sources[:number], source, *case.sources[number + 1 :]))
