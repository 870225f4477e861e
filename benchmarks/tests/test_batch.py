"""Profiles of micro-batches."""

from __future__ import annotations

from typing import Any

from benchmarks.components.batch import profiles


def _job(number: int, batch: str | None, tasks: list[int]) -> list[dict[str, Any]]:
    properties = {} if batch is None else {"streaming.sql.batchId": batch}
    stages = [{"Number of Tasks": count} for count in tasks]
    start = {"Event": "SparkListenerJobStart", "Job ID": number, "Submission Time": 100, "Stage Infos": stages}
    end = {"Event": "SparkListenerJobEnd", "Job ID": number, "Completion Time": 160}
    return [{**start, "Properties": properties}, end]


def _progress(batch: int, **parts: int) -> dict[str, Any]:
    event = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"
    return {"Event": event, "progress": {"batchId": batch, "durationMs": parts}}


def test_jobs_stages_and_tasks_count_for_the_batch_they_ran_in() -> None:
    log = [*_job(0, None, [4]), *_job(1, "0", [3]), *_job(2, "0", [2, 2]), *_job(3, "1", [1])]
    found = profiles(iter(log), [])
    assert found[0].counts == {"jobs": 2, "stages": 3, "tasks": 7}
    assert found[1].counts == {"jobs": 1, "stages": 1, "tasks": 1}
    assert found[0].job_ms == [60, 60]


def test_spark_reports_its_own_times_of_batches_that_did_something() -> None:
    log = [_progress(0, addBatch=80, walCommit=5, triggerExecution=100), _progress(1, latestOffset=3)]
    found = profiles(iter(log), [])
    assert list(found) == [0]
    assert (found[0].trigger_ms, found[0].spark_ms["walCommit"], found[0].spark_ms["getBatch"]) == (100, 5, 0)
