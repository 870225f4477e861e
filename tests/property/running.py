"""Run one case and say what is wrong with its outcome."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from plait.query.model import Query, Source
from plait.state.buckets import close_others
from plait.state.storage import Storage
from tests.oracle.compare import difference, table_rows
from tests.oracle.duckdb_oracle import UnsuitableCaseError, expected, late_masks
from tests.property.arrivals import Arrivals, watermarks
from tests.property.case import Case
from tests.property.direct import DirectRun, Outcome
from tests.property.front_end import from_text

FrontEnd = Callable[[Case], tuple[tuple[Source, ...], tuple[Query, ...]]]
_MANY_ROWS = 1500
"""Results of this size in pieces of a row or three would take most of the time and show nothing new."""
_MEMORY = Path("/dev/shm")


def run_case(case: Case, front_end: FrontEnd = from_text, *, ends: bool = False) -> Outcome:
    """Run a case in a checkpoint of its own, in memory where there is a place for that. `ends`: its input does."""
    directory = tempfile.mkdtemp(prefix="plait-case-", dir=_MEMORY if _MEMORY.is_dir() else None)
    try:
        sources, queries = front_end(case)
        run = DirectRun(case, sources, queries, directory)
        outcome = run.run()
        if ends:
            run.end()
        return outcome
    finally:
        close_others(Storage.open(directory), ())
        shutil.rmtree(directory)


def fault(case: Case, outcome: Outcome, wanted: dict[str, pa.Table]) -> str | None:
    """Return what is wrong with an outcome; None if everything is as it must be."""
    for query in case.queries:
        rows = outcome.rows(query.name)
        problem = difference(rows, table_rows(wanted[query.name]))
        if problem is not None:
            return f"{query.name}: {problem}"
        if outcome.rows_out.get(query.name, 0) != len(rows):
            return f"{query.name}: counted {outcome.rows_out.get(query.name, 0)} rows, wrote {len(rows)}"
    late = {name: sum(mask) for name, mask in late_masks(case).items()}
    bad = {source.name: source.taus().count(None) for source in case.sources if not source.is_table}
    if outcome.late != late or outcome.bad != bad:
        return f"late {outcome.late}, expected {late}; bad {outcome.bad}, expected {bad}"
    miscounted = accounting_fault(case, outcome) or cycles_fault(case, outcome)
    if miscounted is not None:
        return miscounted
    marks = expected_watermarks(case)
    return None if outcome.watermarks == marks else f"watermarks {outcome.watermarks}, expected {marks}"


def accounting_fault(case: Case, outcome: Outcome) -> str | None:
    """Return of which stream the rows counted under each heading are not all that arrived; None if all add up."""
    for source in case.sources:
        if source.is_table:
            continue
        counts, stored = outcome.progress[source.name], outcome.stored.get(source.name, Counter())
        lost = counts.late + counts.bad + counts.outside + counts.null_keys
        if counts.rows != len(source.batch_of) or counts.bad != sum(bad.rows for bad in counts.bad_rows):
            return f"{source.name}: {len(source.batch_of)} rows arrived, counted {counts}"
        # With one store what is left is what the store took; of several each row is in one at least.
        if not max(stored.values(), default=0) <= counts.rows - lost <= stored.total():
            return f"{source.name}: {counts.rows} rows less {lost} leave what was stored, {dict(stored)}: {counts}"
    return None


def cycles_fault(case: Case, outcome: Outcome) -> str | None:
    """Return which series does not fit what was counted otherwise; None if all do."""
    if outcome.cycles.number != case.batches:
        return f"{outcome.cycles.number} cycles of {case.batches} batches"
    probes = 0
    for series in outcome.cycles.of("step"):
        sent, matched, matches = series.totals
        probes += sent
        if not matched <= min(sent, matches) or bool(matched) != bool(matches):
            return f"{series.name}: {matched} of {sent} tuples had {matches} matches"
    if probes > sum(outcome.probe_tuples.values()):
        return f"{probes} probe tuples in series, {outcome.probe_tuples} by edge"
    return None


def expected_watermarks(case: Case) -> list[int | None]:
    streams = [source for source in case.sources if not source.is_table]
    arrivals = [
        Arrivals(delay_us=source.delay_us, taus=source.taus(), batch_of=list(source.batch_of)) for source in streams
    ]
    return watermarks(arrivals, case.batches)


def check(case: Case, front_end: FrontEnd = from_text) -> str | None:
    """Run a case and return its fault or the error it died of; None if all is well. Raises UnsuitableCaseError."""
    wanted = expected(case)
    if sum(table.num_rows for table in wanted.values()) > _MANY_ROWS:
        case = case.with_options(block_rows=max(case.options.block_rows, 256))
    try:
        return fault(case, run_case(case, front_end), wanted)
    except UnsuitableCaseError:
        raise
    except Exception as error:  # any error at all is a finding
        return f"{type(error).__name__}: {error}"
