"""Deliveries that Flink noted in files."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.systems import flink_live
from benchmarks.systems.task import Delivery, Task
from benchmarks.workloads.three_way import THREE_WAY


def task(tmp_path: Path) -> Task:
    return Task(system="flink", questions=THREE_WAY, data=str(tmp_path), files=1, scratch=str(tmp_path), live=True)


def note(asked: Task, name: str, text: str) -> None:
    path = flink_live.notes(asked, 0) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_results_of_a_file_and_a_moment_are_one_delivery_wherever_they_are_noted(tmp_path: Path):
    asked = task(tmp_path)
    note(asked, ".part-0.inprogress", '0,"2026-01-01 00:00:00.25Z"\n1,"2026-01-01 00:00:01Z"\n')
    note(asked, "part-1", '0,"2026-01-01 00:00:00.25Z"\n')
    first_us = 1_767_225_600_000_000
    assert flink_live.deliveries(asked) == (
        Delivery(delivered_us=first_us + 250_000, file=0, rows=2),
        Delivery(delivered_us=first_us + 1_000_000, file=1, rows=1),
    )


def test_half_a_line_is_no_delivery_and_what_comes_after_the_stop_neither(tmp_path: Path):
    asked = task(tmp_path)
    note(asked, ".part-0.inprogress", '7,"2026-01-01 00:00:00Z"\n8,"2026-01-01 00:00:05Z"\n7,"2026-01')
    asked.stop.touch()
    os.utime(asked.stop, (1_767_225_602, 1_767_225_602))
    assert [(found.file, found.rows) for found in flink_live.deliveries(asked)] == [(7, 1)]


def test_nothing_noted_is_nothing_delivered(tmp_path: Path):
    assert flink_live.deliveries(task(tmp_path)) == ()
    note(task(tmp_path), "part-0", "")
    assert flink_live.deliveries(task(tmp_path)) == ()
