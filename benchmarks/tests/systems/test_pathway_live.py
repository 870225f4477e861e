"""Live streams come to Pathway a batch of new files at a time, and what it delivers is known by file and time."""

from __future__ import annotations

import threading
from pathlib import Path

from benchmarks.systems.pathway_batches import arriving, stored
from benchmarks.systems.pathway_live import Counts
from benchmarks.systems.streams import let_arrive
from benchmarks.systems.task import Task
from benchmarks.workloads.data import file_name
from benchmarks.workloads.joins import JoinStream, QuerySet
from plait.query.model import Column

STREAMS = tuple(JoinStream(name=name, time="ts", columns=(Column(name="ts", type="timestamp"),)) for name in "ab")


def task(directory: Path, files: int = 4) -> Task:
    for stream in STREAMS:
        (directory / "data" / stream.name).mkdir(parents=True)
        for file in range(files):
            (directory / "data" / stream.name / file_name(file)).touch()
    return Task(
        system="pathway",
        questions=QuerySet(streams=STREAMS, queries=()),
        data=str(directory / "data"),
        files=files,
        scratch=str(directory),
        live=True,
    )


def test_stored_files_come_one_a_batch(tmp_path: Path):
    assert list(stored(task(tmp_path, 3))) == [range(1), range(1, 2), range(2, 3)]


def test_all_files_that_have_arrived_for_every_stream_make_a_batch(tmp_path: Path):
    live = task(tmp_path)
    over = threading.Event()
    batches = arriving(live, over.is_set)
    let_arrive(live, range(2), live.arriving)
    assert next(batches) == range(2)
    assert live.ready.exists()
    lacking = live.arriving / "b" / file_name(2)
    let_arrive(live, range(2, 4), live.arriving)
    lacking.rename(tmp_path / "later")
    timer = threading.Timer(0.1, lambda: (tmp_path / "later").rename(lacking))
    timer.start()
    assert next(batches) == range(2, 4)
    assert not timer.is_alive()
    over.set()
    assert list(batches) == []


def test_no_file_comes_once_it_is_over(tmp_path: Path):
    live = task(tmp_path)
    let_arrive(live, range(4), live.arriving)
    assert list(arriving(live, lambda: True)) == []


def test_a_count_that_takes_the_place_of_another_delivers_the_difference():
    counts = Counts()
    for batch in (((0, 5, True),), ((0, 5, False), (0, 8, True), (1, 2, True)), ((1, 2, False), (1, 2, True))):
        for file, rows, is_addition in batch:
            counts.change(None, {"file": file, "rows": rows}, 0, is_addition)
        counts.end_batch(0)
    assert [(each.file, each.rows) for each in counts.deliveries] == [(0, 5), (0, 3), (1, 2)]
    assert counts.total == 10
    times = [each.delivered_us for each in counts.deliveries]
    assert times == sorted(times)
    assert times[1] == times[2] > 1_600_000_000_000_000
