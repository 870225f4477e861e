"""What the benchmark of closing rows reads."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks.components.closing_compared import BATCH_S, times_of
from benchmarks.suite.closing_live import results
from benchmarks.suite.closing_live import times_of as live_times_of
from benchmarks.workloads.closing_questions import GROUPS, NAMES, Decided, select_in_duckdb, streams_of, write_streams
from benchmarks.workloads.data import FIRST_US, file_name

LEFT = times_of("left")


def test_about_half_of_the_keys_of_a_batch_are_in_both_streams_and_none_in_two_batches(tmp_path: Path) -> None:
    write_streams(tmp_path / "data", 1000, 2, LEFT, seed=7)
    keys = {
        (stream, batch): set(pq.read_table(tmp_path / "data" / stream / file_name(batch))["k"].to_pylist())
        for stream in "lr"
        for batch in range(2)
    }
    assert all(len(each) == 1000 for each in keys.values())
    assert 400 < len(keys["l", 0] & keys["r", 0]) < 600
    assert not keys["l", 0] & (keys["l", 1] | keys["r", 1])


def test_files_are_in_order_of_time(tmp_path: Path) -> None:
    write_streams(tmp_path / "data", 100, 2, times_of(GROUPS), seed=7, streams="l")
    times = pq.read_table(tmp_path / "data" / "l" / file_name(1))["ts"].cast("int64").to_pylist()
    assert (times[0], times) == (FIRST_US + BATCH_S * 1_000_000, sorted(times))
    assert not (tmp_path / "data" / "r").exists()


def test_only_joins_read_both_streams() -> None:
    assert {name: streams_of(name) for name in NAMES} == {"left": "lr", "full": "lr", "semi": "lr", "groups": "l"}


@pytest.mark.parametrize("question", NAMES)
def test_results_are_counted_by_the_file_that_decides_them(question: str, tmp_path: Path) -> None:
    times, streams = live_times_of(question), streams_of(question)
    write_streams(tmp_path / "data", 60, 12, times, seed=3, streams=streams)
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    for stream in streams:
        database.execute(f"CREATE VIEW {stream} AS FROM read_parquet('{tmp_path}/data/{stream}/*.parquet')")
    found = select_in_duckdb(question, times)
    if question == GROUPS:
        sql = f"SELECT epoch(begin)::BIGINT, epoch_us(begin) + {times.window_us} FROM ({found})"
    else:
        kind = {"left": "LEFT", "full": "FULL", "semi": "INNER"}[question]
        within = f"abs(epoch_us(l.ts) - epoch_us(b.ts)) <= {times.window_us}"
        sql = f"""
            SELECT coalesce(l.id, -1 - b.id), CASE WHEN l.ts IS NULL THEN epoch_us(b.ts) + {times.window_us}
              WHEN b.ts IS NULL THEN epoch_us(l.ts) + {times.window_us} ELSE epoch_us(greatest(l.ts, b.ts)) END
            FROM l {kind} JOIN r AS b ON l.k = b.k AND {within}
        """
    rows = database.execute(sql).fetchnumpy()
    keys, decided = (np.asarray(values) for values in rows.values())
    wanted = (decided - FIRST_US) // times.file_us
    known = Decided.read(tmp_path / "data", question, times)
    assert known.file_of(keys.astype(np.int64)).tolist() == wanted.tolist()
    assert len(keys) == database.execute(f"SELECT count(*) FROM ({found})").fetchall()[0][0]
    for files in (range(12), range(4, 7)):
        assert results(tmp_path / "data", question, files) == sum(file in files for file in wanted.tolist())
