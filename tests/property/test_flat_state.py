"""What is kept does not grow with time: in a tight loop of hours of event time with windows of minutes the rows and
files of a checkpoint are as many in the end as after a quarter, and so is the memory of the process.

``-m slow`` runs 24 hours, other runs an hour.
"""

from __future__ import annotations

import gc
import os
import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import plait
from plait.runtime.batch.events import BatchEvent
from plait.sql import load_script
from tests.property.standin import frames
from tests.property.standin.session import Session
from tests.property.undecided import A_S, B_S, Place

QUERIES = ("alone", "never", "tally", "sums", "visits")
SECONDS_A_BATCH = 60
_MINUTES = {
    f"INTERVAL {A_S} SECONDS": "INTERVAL 5 MINUTES",
    f"INTERVAL {B_S} SECONDS": "INTERVAL 2 MINUTES",
    "'8 seconds', '4 seconds'": "'6 minutes', '2 minutes'",
    "'10 seconds'": "'10 minutes'",
    "'2 seconds'": "'2 minutes'",
}
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(slots=True)
class Watched:
    """What was there after each batch."""

    place: Place
    batches: int
    rows: list[int] = field(default_factory=list)
    files: list[int] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)

    def hear(self, event: BatchEvent) -> None:
        """Look at what is there, and bring the next file while there is to be one."""
        self.rows.append(event.stored_tuples)
        kept = self.place.folder / "checkpoint" / "plait"
        self.files.append(sum(len(names) for _, _, names in os.walk(kept)))
        if len(self.rows) % 10 == 0:
            gc.collect()
            self.memory.append(int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE)

    def boundary(self, batch: int, done: bool) -> None:
        """Let the next file arrive once those before have been taken."""
        if done and self.place.files < self.batches:
            self.place.arrive(rows=60, seconds=SECONDS_A_BATCH, keys=40)


def grown(series: list[int]) -> float:
    """Return by how much the largest of the last quarter exceeds the largest of the second."""
    quarter = len(series) // 4
    return max(series[-quarter:]) / max(series[quarter : 2 * quarter])


def watched(folder: Path, batches: int) -> Watched:
    """Run so many batches, each a minute of event time."""
    place = Place(folder, random.Random(18), sinks="noop")
    place.arrive(rows=60, seconds=SECONDS_A_BATCH, keys=40)
    seen = Watched(place=place, batches=batches)
    engine = plait.Engine(
        Session(seen.boundary),  # type: ignore[arg-type]
        checkpoint=str(folder / "checkpoint"),
        listener=seen.hear,
    )
    script = place.script(QUERIES)
    for seconds, minutes in _MINUTES.items():
        script = script.replace(seconds, minutes)
    engine.load(load_script(script))
    engine.run_available()
    assert len(seen.rows) == batches
    return seen


@pytest.fixture(autouse=True)
def _standin(monkeypatch: pytest.MonkeyPatch) -> None:
    frames.install(monkeypatch.setattr)


def test_rows_and_files_that_wait_for_the_watermark_do_not_become_more_with_time(tmp_path: Path) -> None:
    seen = watched(tmp_path, 60)
    assert grown(seen.rows) < 1.2
    assert grown(seen.files) < 1.3


@pytest.mark.slow
def test_a_day_of_outer_anti_and_grouping_queries_leaves_rows_files_and_memory_flat(tmp_path: Path) -> None:
    seen = watched(tmp_path, 24 * 60)
    assert grown(seen.rows) < 1.2
    assert grown(seen.files) < 1.2
    assert grown(seen.memory) < 1.1
