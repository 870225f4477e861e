"""Results do not depend on how much a batch may take, only the number of batches does."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import plait
from plait.runtime.batch.events import BatchEvent
from plait.sql import load_script
from tests.oracle.compare import difference, table_rows
from tests.oracle.duckdb_oracle import UnsuitableCaseError, expected
from tests.property.case import Case, CaseSource, describe, script
from tests.property.cases import random_case
from tests.property.life_running import with_zone
from tests.property.registered import PREDICATES
from tests.property.standin import frames
from tests.property.standin.session import Session

FIRST_SEED = 7_300_000
CASES = int(os.environ.get("PLAIT_ADMISSIONS", "6"))


@pytest.mark.parametrize("number", range(CASES))
def test_results_do_not_depend_on_the_rows_a_batch_may_take(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames.install(monkeypatch.setattr)
    case = suitable_case(FIRST_SEED + 100 * number)
    wanted = expected(case)
    write(case, tmp_path)
    batches = {}
    for batch_rows in ("1", "30", "100000"):
        events, rows = run(case, tmp_path, batch_rows)
        batches[batch_rows] = len(events)
        assert sum(event.late for event in events) == 0, describe(case)
        for query in case.queries:
            problem = difference(rows[query.name], table_rows(wanted[query.name]))
            assert problem is None, f"{query.name}, plait.batch_rows {batch_rows}: {problem}\n{describe(case)}"
    assert case.batches == batches["1"] >= batches["30"] >= batches["100000"] == 1


def suitable_case(seed: int) -> Case:
    """Return a case with output whose streams are in time however their files are put into batches."""
    while True:
        seed += 1
        case = random_case(seed)
        read = {name for query in case.queries for _, name in query.relations}
        sources = tuple(
            source if source.is_table else patient(source) for source in case.sources if source.name in read
        )
        case = replace(case, sources=sources)
        try:
            if case.batches > 1 and all(table.num_rows for table in expected(case).values()):
                return case
        except UnsuitableCaseError:
            continue


def patient(stream: CaseSource) -> CaseSource:
    """Return the stream with a delay that none of its rows exceeds, whatever was read before it."""
    taus = [tau for tau in stream.taus() if tau is not None]
    disorder = max((highest - tau for highest, tau in zip(accumulate(taus, max), taus, strict=True)), default=0)
    return replace(stream, delay_us=max(stream.delay_us, disorder))


def write(case: Case, folder: Path) -> None:
    """Write a file of each stream for each batch of the case."""
    for source in case.sources:
        (folder / source.name).mkdir()
        if source.is_table:
            pq.write_table(with_zone(source.rows), folder / source.name / "all.parquet")
            continue
        for batch in range(case.batches):
            start, rows = source.batch(batch)
            path = folder / source.name / f"{batch:03d}.parquet"
            pq.write_table(with_zone(source.rows.slice(start, rows)), path)
            os.utime(path, (1_700_000_000 + batch, 1_700_000_000 + batch))


def run(case: Case, folder: Path, batch_rows: str) -> tuple[list[BatchEvent], dict[str, list[tuple[Any, ...]]]]:
    """Drain the streams; return what was heard of the batches, and the results."""
    events: list[BatchEvent] = []
    engine = plait.Engine(
        Session(),  # type: ignore[arg-type]
        checkpoint=str(folder / f"checkpoint-{batch_rows}"),
        parallelism=case.options.parallelism,
        listener=events.append,
    )
    engine.set_option("plait.batch_rows", batch_rows)
    for name, function in PREDICATES.items():
        engine.predicate(name, function)
    text = script(case, sink="memory")
    engine.load(load_script(text, file="case.sql", base=str(folder), predicates=PREDICATES))
    engine.run_available()
    return events, {query.name: table_rows(engine.results(query.name)) for query in case.queries}
