"""Streams as topics, for every system that reads them."""

from __future__ import annotations

from benchmarks.components.kafka import Timed, questions, table
from benchmarks.systems.kafka_topics import formats_of, script
from benchmarks.systems.task import Task
from benchmarks.workloads.three_way import THREE_WAY
from plait.sql import load_script


def test_several_queries_differ_in_which_rows_they_take() -> None:
    assert questions(1) is THREE_WAY
    found = questions(20).queries
    assert len({query.name for query in found}) == 20
    assert len({query.selections for query in found}) == 10


def test_the_streams_of_a_task_are_topics_in_the_dialect_of_scripts() -> None:
    task = Task(system="plait", questions=THREE_WAY, data="d", files=2, scratch="s", slice_us=10_000_000, broker="b:1")
    streams = load_script(script(task, "b:1")).sources
    assert [stream.name for stream in streams] == ["r", "s", "t"]
    assert {stream.delay_us for stream in streams} == {20_000_000}
    assert formats_of(task) == ["kafka"]


def test_rates_count_a_row_once_and_the_median_of_runs_is_shown() -> None:
    found = [
        Timed(system="plait", source="kafka", queries=5, rows=300, seconds=each, ingest_seconds=1)
        for each in (1.0, 2.0, 3.0)
    ]
    shown = table(found)
    assert shown.row_count == 1
    assert [next(iter(column.cells)) for column in shown.columns] == ["plait", "kafka", "5", "150", "2.0", "300"]
