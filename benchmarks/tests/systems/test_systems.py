"""Plait and Spark's own joins answer the same questions as DuckDB."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from benchmarks.suite.pacing import Feed
from benchmarks.systems import duckdb, plait, separate
from benchmarks.systems import spark as native
from benchmarks.systems.task import Task
from benchmarks.workloads.data import FIRST_US, write_files
from benchmarks.workloads.joins import Join, JoinQuery, JoinStream, OutputOf, QuerySet
from plait.query.model import Column

pytestmark = pytest.mark.spark

FILES, ROWS, SLICE_US = 3, 80, 20_000_000
TYPES = {"ts": "timestamp", "k": "bigint", "l": "int", "v": "string"}
STREAMS = tuple(
    JoinStream(name=name, time="ts", columns=tuple(Column(name=column, type=kind) for column, kind in TYPES.items()))
    for name in "abcd"
)


def query(name: str, relations: str, window_s: int | None, *selections: tuple[str, str]) -> JoinQuery:
    """Join the relations in a chain, on k and on l by turns."""
    return JoinQuery(
        name=name,
        relations=tuple(relations),
        joins=tuple(
            Join(left=right, right=left, columns=((column, column),))
            for left, right, column in zip(relations, relations[1:], "klk", strict=False)
        ),
        outputs=tuple(
            OutputOf(relation=relation, column=column, type=kind)
            for relation in relations
            for column, kind in TYPES.items()
        ),
        selections=selections,
        window_s=window_s,
    )


def write(directory: Path) -> None:
    random = np.random.default_rng(4)
    for stream in STREAMS:
        write_files(directory / stream.name, (rows(random, file) for file in range(FILES)))


def rows(random: np.random.Generator, file: int) -> pa.Table:
    taus = FIRST_US + random.integers(file * SLICE_US, (file + 1) * SLICE_US, ROWS)
    return pa.table(
        {
            "ts": pa.array(taus, pa.timestamp("us", "UTC")),
            "k": random.integers(0, 40, ROWS),
            "l": pa.array(random.integers(0, 40, ROWS), pa.int32()),
            "v": ["x" * int(length) for length in random.integers(0, 9, ROWS)],
        }
    )


def plain_session(session: SparkSession) -> SparkSession:
    """Return a session whose streams need no names."""
    made = session.newSession()
    made.conf.set("spark.sql.streaming.queryEvolution.enableSourceEvolution", "false")
    made.conf.set("spark.sql.streaming.offsetLog.formatVersion", "1")
    return made


@pytest.mark.parametrize("window_s", [None, 15])
def test_all_systems_find_what_duckdb_finds(spark: SparkSession, tmp_path: Path, window_s: int | None):
    write(tmp_path)
    asked = (query("wide", "abcd", window_s, ("b", "b.k % 2 = 0")), query("pair", "bc", window_s))
    task = Task(
        system="any",
        questions=QuerySet.over(STREAMS, asked),
        data=str(tmp_path),
        files=FILES,
        scratch=str(tmp_path / "plait"),
        mode="shared",
        sample=1,
        check=True,
    )
    expected = duckdb.run(task)
    assert min(answer.rows for answer in expected.answers) > 20
    by_plait = plait.drain_on(spark, task)
    assert {answer.query: answer for answer in by_plait.answers} == {
        answer.query: answer for answer in expected.answers
    }
    by_spark = native.drain_on(plain_session(spark), task)
    assert by_spark.answers == expected.answers
    for outcome in (by_plait, by_spark):
        assert outcome.rows_in == expected.rows_in == 4 * FILES * ROWS
        assert outcome.late_rows == 0
        assert outcome.peak_stored_tuples is not None
        assert 0 < (outcome.stored_tuples or 0) <= outcome.peak_stored_tuples
    small = plait.drain_on(spark, replace(task, mode=plait.SMALL_BATCHES, scratch=str(tmp_path / "small")))
    assert small.answers == expected.answers
    assert (len(by_plait.batch_seconds), len(small.batch_seconds)) == (2, FILES)  # started anew after the first file
    alone = separate.add_up(task, [plait.drain_on(spark, found) for found in separate.one_by_one(task)])
    assert alone.answers == expected.answers
    assert sum(edge.measured for edge in by_plait.edges) == by_plait.probe_tuples


@pytest.mark.parametrize("name", ["plait", "spark"])
def test_live_streams_are_followed_until_every_result_is_delivered(spark: SparkSession, tmp_path: Path, name: str):
    write(tmp_path)
    asked = (query("wide", "abc", 15), query("pair", "bc", 15))
    task = Task(
        system=name,
        questions=QuerySet.over(STREAMS, asked),
        data=str(tmp_path),
        files=FILES,
        scratch=str(tmp_path / name),
        check=True,
        slice_us=SLICE_US,
    )
    expected = {answer.query: answer.rows for answer in duckdb.run(task).answers}
    live = replace(task, live=True, check=False, expected=sum(expected.values()))
    feed = Feed(rows_per_file=10, rows_per_s=10, grace_s=60)
    with feed.beside(live):
        outcome = plait.follow_on(spark, live) if name == "plait" else native.follow_on(plain_session(spark), live)
    assert sum(delivery.rows for delivery in outcome.deliveries) == live.expected
    assert len(feed.arrived_us) == FILES
    waited = [delivery.delivered_us - feed.arrived_us[delivery.file] for delivery in outcome.deliveries]
    assert min(waited) > 0
    assert {delivery.file for delivery in outcome.deliveries} == set(range(FILES))
