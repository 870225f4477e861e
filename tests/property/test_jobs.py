"""How many Spark jobs a batch takes, whatever the number of queries."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plait
from plait.sql import load_script
from tests.property.standin import frames
from tests.property.standin.session import Session

STREAMS = """
    CREATE STREAM a (ts TIMESTAMP, k BIGINT, v BIGINT) USING parquet OPTIONS (path '{0}/a')
        TIMESTAMP BY ts WINDOW INTERVAL 100 SECONDS;
    CREATE STREAM b (ts TIMESTAMP, k BIGINT, v BIGINT) USING parquet OPTIONS (path '{0}/b')
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
    """Run one batch of many queries over two streams; return its jobs."""
    for stream in "ab":
        (folder / stream).mkdir()
        schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.int64()), ("v", pa.int64())])
        rows = [{"ts": datetime.fromtimestamp(1, UTC), "k": v, "v": v} for v in VALUES]
        pq.write_table(pa.Table.from_pylist(rows, schema), folder / stream / "0.parquet")
    script = STREAMS + "".join(
        f"CREATE QUERY q{n} INTO {sink.format(n=n)} AS SELECT {columns.format(n=n)} FROM a JOIN b ON a.k = b.k;"
        for n in range(QUERIES)
    )
    engine = plait.Engine(Session(), checkpoint=str(folder / "checkpoint"))  # type: ignore[arg-type]
    engine.load(load_script(script.format(folder)))
    jobs.clear()
    summary = engine.run_available()
    assert (summary.batches, dict(summary.queries)) == (1, {f"q{n}": len(VALUES) for n in range(QUERIES)})
    assert summary.failing == ()
    return jobs


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
