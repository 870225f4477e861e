"""What the benchmark of closing rows reads."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.components.closing_compared import BATCH_S, FIRST_S, QUESTIONS, write_streams


def test_about_half_of_the_keys_of_a_batch_are_in_both_streams_and_none_in_two_batches(tmp_path: Path) -> None:
    write_streams(tmp_path, 1000, 2, seed=7)
    keys = {
        (stream, batch): set(pq.read_table(tmp_path / stream / f"{batch:05}.parquet")["k"].to_pylist())
        for stream in "lr"
        for batch in range(2)
    }
    assert all(len(each) == 1000 for each in keys.values())
    assert 400 < len(keys["l", 0] & keys["r", 0]) < 600
    assert not keys["l", 0] & (keys["l", 1] | keys["r", 1])


def test_files_are_in_order_of_time(tmp_path: Path) -> None:
    write_streams(tmp_path, 100, 2, seed=7, streams="l")
    times = pq.read_table(tmp_path / "l" / "00001.parquet")["ts"].cast("int64").to_pylist()
    assert (times[0], times) == ((FIRST_S + BATCH_S) * 1_000_000, sorted(times))
    assert not (tmp_path / "r").exists()


def test_only_joins_read_both_streams() -> None:
    assert {name: question.streams for name, question in QUESTIONS.items()} == {
        "left": "lr",
        "full": "lr",
        "semi": "lr",
        "groups": "l",
    }
