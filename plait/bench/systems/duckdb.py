"""DuckDB, with everything there at once as one batch query: the oracle, and what a join costs without a stream."""

from __future__ import annotations

import time

from plait.bench.checksum import Checksum, aggregates
from plait.bench.question import duckdb_columns, duckdb_select
from plait.bench.systems.task import Outcome, Task


def run(task: Task) -> Outcome:
    """Join the files; count the rows of the result, or add them up."""
    import duckdb

    database = duckdb.connect(config={"threads": task.cores})
    select = duckdb_select(task.data_path, task.files)
    startup_seconds, started = task.startup_seconds(), time.perf_counter()
    total: Checksum | None = None
    if task.check:
        sums = database.execute(f"SELECT {', '.join(aggregates(duckdb_columns()))} FROM ({select})").fetchone()
        total = Checksum.of_sums(sums or ())
        results = total.rows
    else:
        # Through Arrow, so that every row is really made, as the other systems make it for a sink that discards it.
        results = sum(batch.num_rows for batch in database.sql(select).fetch_record_batch(1_000_000))
    seconds = time.perf_counter() - started
    return Outcome(
        rows_in=_rows_in(task),
        startup_seconds=startup_seconds,
        seconds=seconds,
        results=results,
        checksum=total,
    )


def _rows_in(task: Task) -> int:
    """Return how many rows the files hold, from their footers."""
    import pyarrow.parquet as pq

    from plait.bench.data import STREAMS, file_name

    return sum(
        pq.read_metadata(task.data_path / stream / file_name(file)).num_rows
        for stream in STREAMS
        for file in range(task.files)
    )
