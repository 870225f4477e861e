"""DuckDB, with everything there at once as batch queries: the oracle, and what the joins cost without a stream."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.systems.checksum import Checksum, aggregates
from benchmarks.systems.integers import duckdb_integers
from benchmarks.systems.system import System
from benchmarks.systems.task import Answer, Outcome, Task
from benchmarks.workloads.data import file_name
from benchmarks.workloads.joins import JoinQuery, JoinStream

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


SYSTEM = System(name="duckdb", summary="DuckDB, everything there at once, a batch query each: a floor, no stream")


def run(task: Task) -> Outcome:
    """Join the files, one query after the other; count the rows of each result, or add them up."""
    import duckdb

    database = duckdb.connect(config={"threads": task.cores})
    for stream in task.questions.streams:
        show_stream(database, stream, task)
    startup_seconds, started = task.startup_seconds(), time.perf_counter()
    answers = tuple(answer(database, query, task) for query in task.questions.queries)
    seconds = time.perf_counter() - started
    return Outcome(rows_in=rows_in(task), startup_seconds=startup_seconds, seconds=seconds, answers=answers)


def show_stream(database: DuckDBPyConnection, stream: JoinStream, task: Task) -> None:
    """Make the rows of a stream's files a view with its name."""
    paths = (str(task.data_path / stream.name / file_name(file)) for file in range(task.files))
    names = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
    database.execute(f"CREATE VIEW {stream.name} AS SELECT * FROM read_parquet([{names}])")


def answer(database: DuckDBPyConnection, query: JoinQuery, task: Task) -> Answer:
    """Return what one query comes to."""
    select = query.batch_sql(task.questions.times())
    if not task.check:
        # Through Arrow, so that every row is really made, as the other systems make it for a sink that discards it.
        rows = sum(batch.num_rows for batch in database.sql(select).fetch_record_batch(1_000_000))
        return Answer(query=query.name, rows=rows)
    sums = database.execute(f"SELECT {', '.join(aggregates(duckdb_integers(query.outputs)))} FROM ({select})")
    total = Checksum.of_sums(sums.fetchone() or ())
    return Answer(query=query.name, rows=total.rows, checksum=total)


def rows_in(task: Task) -> int:
    """Return how many rows the files of the streams hold, from their footers."""
    import pyarrow.parquet as pq

    return sum(
        pq.read_metadata(task.data_path / stream.name / file_name(file)).num_rows
        for stream in task.questions.streams
        for file in range(task.files)
    )
