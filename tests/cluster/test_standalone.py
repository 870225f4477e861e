"""A cluster of several executor processes: the same results as the oracle, also when a worker dies on the way."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plait.runtime.events import BatchEvent
from tests.cluster.runs import PARALLELISM, Event, Outcome, prepare, run
from tests.cluster.standalone import Cluster, cluster
from tests.recovery.workload import engine, expected, found, make_input

pytestmark = pytest.mark.spark

_BATCHES = 5


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("standalone") / "cluster") as made:
        yield made


@pytest.fixture(scope="module")
def alone(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> list[int]:
    """Probe tuples per batch in a single process. Strategy `fixed` does not depend on what was measured by when."""
    directory = tmp_path_factory.mktemp("alone")
    make_input(directory, batches=_BATCHES)
    events: list[BatchEvent] = []
    made = engine(directory, spark, strategy="fixed", parallelism=PARALLELISM, listener=events.append)
    assert made.run_available().batches == _BATCHES
    assert found(directory) == expected(directory)
    return [event.probe_tuples for event in events]


def probe_tuples(outcome: Outcome) -> list[int]:
    return [event["probe_tuples"] for event in outcome.batches()]


def test_two_workers_give_the_oracles_results_and_count_the_same_probe_tuples(
    two_workers: Cluster, alone: list[int], tmp_path: Path
) -> None:
    script = prepare(tmp_path / "run", _BATCHES)
    outcome = run(script, two_workers.master, "--strategy", "fixed")
    assert outcome.finished["batches"] == _BATCHES
    assert found(script.parent) == expected(script.parent)
    assert probe_tuples(outcome) == alone


def test_a_killed_worker_loses_and_repeats_nothing(two_workers: Cluster, alone: list[int], tmp_path: Path) -> None:
    script = prepare(tmp_path / "run", _BATCHES)
    executors: list[int] = []

    def kill_in_the_third_batch(event: Event) -> None:
        if event["event"] == "batch" and event["batch"] == 1:
            time.sleep(0.5)
            executors.append(two_workers.kill_worker(1))

    outcome = run(script, two_workers.master, "--strategy", "fixed", on_event=kill_in_the_third_batch)
    assert executors == [1], "the worker had no executor of this run"
    assert outcome.finished["batches"] == _BATCHES
    assert found(script.parent) == expected(script.parent)
    assert probe_tuples(outcome) == alone
