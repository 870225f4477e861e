"""A cluster of several executor processes: the same results as the oracle, also when a worker dies on the way."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from plait.runtime.batch.events import BatchEvent
from tests.cluster import shared_fs
from tests.cluster.runs import PARALLELISM, Event, Outcome, prepare, run
from tests.cluster.standalone import Cluster, cluster
from tests.recovery.workload import engine, expected, found, make_input

pytestmark = pytest.mark.spark

_BATCHES = 4
_CACHE_BYTES = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A cluster whose processes share a file system that none of them can open as a path, with its directory."""

    cluster: Cluster
    environment: dict[str, str]
    shared: Path
    cache: Path

    def run(self, script: Path, *arguments: str, **changes: Any) -> Outcome:
        """Run the script on the cluster, with a plan that does not depend on what was measured by when."""
        return run(
            script, self.cluster.master, "--strategy", "fixed", *arguments, environment=self.environment, **changes
        )

    def cached_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.cache.iterdir())


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    base = tmp_path_factory.mktemp("standalone")
    for name in ("checkpoint", "elsewhere/checkpoint"):
        (base / "shared" / name).mkdir(parents=True)
    environment = {
        "PYTHONPATH": shared_fs.install(base / "library"),
        shared_fs.VARIABLE: str(base / "shared"),
        "PLAIT_CACHE_DIR": str(base / "cache"),
    }
    with cluster(base / "cluster", 2, **environment) as made:
        yield Place(cluster=made, environment=environment, shared=base / "shared", cache=base / "cache")


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
    place: Place, alone: list[int], tmp_path: Path
) -> None:
    script = prepare(tmp_path / "run", _BATCHES)
    outcome = place.run(script)
    assert outcome.finished["batches"] == _BATCHES
    assert found(script.parent) == expected(script.parent)
    assert probe_tuples(outcome) == alone
    shuffled = [event["shuffled_bytes"] for event in outcome.batches()]
    assert all(shuffled)
    assert outcome.finished["shuffled_bytes"] == sum(shuffled)


def test_a_killed_worker_loses_and_repeats_nothing_of_a_remote_checkpoint_in_a_small_cache(
    place: Place, alone: list[int], tmp_path: Path
) -> None:
    script = prepare(tmp_path / "run", _BATCHES)
    executors: list[int] = []

    def kill_in_the_third_batch(event: Event) -> None:
        if event["event"] == "batch" and event["batch"] == 1:
            time.sleep(0.5)
            executors.append(place.cluster.kill_worker(1))

    outcome = place.run(
        script,
        *("--checkpoint", f"{shared_fs.ADDRESS}/checkpoint", *shared_fs.settings(place.shared)),
        *("--conf", f"plait.cache_bytes={_CACHE_BYTES}"),
        on_event=kill_in_the_third_batch,
    )
    assert executors == [1], "the worker had no executor of this run"
    assert outcome.finished["batches"] == _BATCHES
    assert found(script.parent) == expected(script.parent)
    assert probe_tuples(outcome) == alone
    assert 0 < place.cached_bytes() <= _CACHE_BYTES
    assert outcome.finished["stored_bytes"] > 2 * _CACHE_BYTES


def test_a_checkpoint_that_one_worker_does_not_see_is_refused_before_the_first_batch(
    place: Place, tmp_path: Path
) -> None:
    script = prepare(tmp_path / "run", 1)
    place.cluster.add_worker(2, **{shared_fs.VARIABLE: str(place.shared / "elsewhere")})
    where = ("--checkpoint", f"{shared_fs.ADDRESS}/checkpoint/new")
    outcome = place.run(script, *where, *shared_fs.settings(place.shared))
    place.cluster.kill_worker(2)
    assert outcome.status == 1
    assert f"checkpoint {shared_fs.ADDRESS}/checkpoint/new is not shared: the worker on" in outcome.errors
    assert not outcome.batches()
    assert not (script.parent / "out").exists()
