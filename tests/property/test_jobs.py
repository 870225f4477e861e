"""How many Spark jobs a batch takes, whatever the number of queries."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plait
from plait.runtime.batch.events import BatchEvent, Summary
from plait.sql import load_script
from tests.property.standin import frames
from tests.property.standin.session import Session

STREAMS = """
    CREATE STREAM a (ts TIMESTAMP, k BIGINT, v BIGINT) USING parquet OPTIONS (path '{0}/a', maxFilesPerTrigger '1')
        TIMESTAMP BY ts WINDOW INTERVAL 100 SECONDS;
    CREATE STREAM b (ts TIMESTAMP, k BIGINT, v BIGINT) USING parquet OPTIONS (path '{0}/b', maxFilesPerTrigger '1')
        TIMESTAMP BY ts WINDOW INTERVAL 100 SECONDS;
"""
QUERIES = 20
VALUES = (1, 2, 3)
COMPUTED = "a.v * 2 + {n} AS n, CAST(b.k AS STRING) || '!' AS t"
OF_SPARK = "a.v * 2 + {n} AS n, upper(CAST(b.k AS STRING) || '!') AS t"


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count what would be jobs of Spark, by the action."""
    frames.install(monkeypatch.setattr)
    found: Counter[str] = Counter()

    def counted(holder: Any, name: str) -> None:
        inner = getattr(holder, name)

        def outer(*arguments: Any) -> Any:
            found[name] += 1
            return inner(*arguments)

        monkeypatch.setattr(holder, name, outer)

    counted(frames.Frame, "collect")
    counted(frames.Frame, "toArrow")
    counted(frames._Writer, "save")
    return found


def run(folder: Path, columns: str, sink: str, jobs: Counter[str]) -> Counter[str]:
    """Run one batch; return its jobs."""
    summary = run_all(folder, columns, sink, jobs)
    assert (summary.batches, dict(summary.queries)) == (1, {f"q{n}": len(VALUES) for n in range(QUERIES)})
    assert summary.failing == ()
    return jobs


def run_all(
    folder: Path,
    columns: str,
    sink: str,
    jobs: Counter[str],
    *,
    batches: int = 1,
    listener: Callable[[BatchEvent], None] | None = None,
) -> Summary:
    """Run many queries over two streams, the same rows in every batch; count the jobs."""
    for stream in "ab":
        (folder / stream).mkdir()
        schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.int64()), ("v", pa.int64())])
        rows = [{"ts": datetime.fromtimestamp(1, UTC), "k": v, "v": v} for v in VALUES]
        for batch in range(batches):
            pq.write_table(pa.Table.from_pylist(rows, schema), folder / stream / f"{batch}.parquet")
    script = STREAMS + "".join(
        f"CREATE QUERY q{n} INTO {sink.format(n=n)} AS SELECT {columns.format(n=n)} FROM a JOIN b ON a.k = b.k;"
        for n in range(QUERIES)
    )
    engine = plait.Engine(Session(), checkpoint=str(folder / "checkpoint"), listener=listener)  # type: ignore[arg-type]
    engine.load(load_script(script.format(folder)))
    jobs.clear()
    return engine.run_available()


def written(folder: Path, number: int) -> list[tuple[int, str]]:
    tables = [pq.read_table(file) for file in (folder / "out" / str(number)).glob("*.parquet")]
    return sorted((row["n"], row["t"]) for table in tables for row in table.to_pylist())


PARQUET = "parquet OPTIONS (path '{{0}}/out/{n}')"


def test_columns_that_need_no_spark_cost_no_job(tmp_path: Path, jobs: Counter[str]) -> None:
    assert run(tmp_path, COMPUTED, PARQUET, jobs) == {"collect": 1}
    for number in range(QUERIES):
        assert written(tmp_path, number) == [(2 * v + number, f"{v}!") for v in VALUES]


def test_columns_that_take_spark_cost_one_job_for_all_queries(tmp_path: Path, jobs: Counter[str]) -> None:
    assert run(tmp_path, OF_SPARK, PARQUET, jobs) == {"collect": 2}
    for number in range(QUERIES):
        assert written(tmp_path, number) == [(2 * v + number, f"{v}!") for v in VALUES]


def test_results_that_are_discarded_are_computed_in_one_job(tmp_path: Path, jobs: Counter[str]) -> None:
    assert run(tmp_path, OF_SPARK, "noop", jobs) == {"collect": 2}


def test_results_kept_in_memory_cost_no_job_where_they_need_no_spark(tmp_path: Path, jobs: Counter[str]) -> None:
    assert run(tmp_path, COMPUTED, "memory", jobs) == {"collect": 1}


def test_a_sink_that_takes_nothing_does_not_keep_the_others_from_theirs(tmp_path: Path, jobs: Counter[str]) -> None:
    def block(event: BatchEvent) -> None:
        """Put a file where the folder of query 3 was."""
        if event.batch == 0:
            shutil.rmtree(tmp_path / "out" / "3")
            (tmp_path / "out" / "3").write_text("in the way")

    summary = run_all(tmp_path, OF_SPARK, PARQUET, jobs, batches=2, listener=block)
    assert [query for query, _ in summary.failing] == ["q3"]
    for number in set(range(QUERIES)) - {3}:
        assert written(tmp_path, number) == sorted([(2 * v + number, f"{v}!") for v in VALUES] * 4)
