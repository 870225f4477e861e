"""Queries are added, dropped and replaced at random all the time, and nothing of that is left behind.

A run makes 160 changes in rounds of 40, each of which ends without queries of its own; ``PLAIT_CHURN=1000`` sets
another number, ``PLAIT_SEED=7`` where random choices start.
"""

from __future__ import annotations

import gc
import os
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plait
from plait.query.remembering import forget
from plait.runtime.checkpoint.plan_history import FILE, MOST_ENTRIES, read_history
from plait.runtime.engine import Engine, QueryHandle
from plait.sql import load_script
from plait.state.manifest import ManifestLog, encode
from plait.state.model import Manifest
from plait.state.place import state_of
from plait.stats.cycles import HISTORY, Cycles
from tests.property.standin import frames
from tests.property.standin.session import Session

CHANGES = int(os.environ.get("PLAIT_CHURN", "160"))
SEED = int(os.environ.get("PLAIT_SEED", "0"))
PER_BATCH = 4
CHANGING_BATCHES, RESTING_BATCHES = 10, 8
ROUND = CHANGING_BATCHES + RESTING_BATCHES
ROUNDS = CHANGES // (PER_BATCH * CHANGING_BATCHES)
QUIET_BATCHES = 40
"""At the end nothing changes any more, until old plans and manifests are deleted."""
BATCHES = 1 + ROUNDS * ROUND + QUIET_BATCHES
MORE_OBJECTS = 1500
"""So many more objects may be alive after the later rounds than after the earlier ones: one plan of the same queries
and its alternatives or another may be at hand, which makes a difference of about 1,000 whichever round it is.
"""
MOST_QUERIES = 12
VALUES = (0, 3, 6, 9)
"""Arrive with every batch, as a pair each; batch b adds 10 * b to them."""

STREAM = """CREATE STREAM {0} (ts TIMESTAMP, k BIGINT, v BIGINT)
    USING parquet OPTIONS (path '{{0}}/{0}', maxFilesPerTrigger '1', keep 'all')
    TIMESTAMP BY ts WINDOW INTERVAL 3 SECONDS;"""
SCRIPT = STREAM.format("a") + STREAM.format("b")
FIRST = "CREATE QUERY first INTO noop AS SELECT a.v FROM a JOIN b ON a.k = b.k;"
JOINS = ("a.k = b.k", "a.v = b.v", "a.k = b.v + 1000", "a.v = coalesce(b.v, 0)", "a.k = b.k AND a.v = b.v")
SELECTIONS: tuple[tuple[str, Callable[[int], bool]], ...] = (
    ("true", lambda value: True),
    ("a.v % 10 = 3", lambda value: value % 10 == 3),
    ("b.v % 10 > 3", lambda value: value % 10 > 3),
    ("a.v % 10 IN (0, 9)", lambda value: value % 10 in (0, 9)),
    ("a.v % 10 >= 6 AND b.k > 1000", lambda value: value % 10 >= 6 and value > 0),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A query in force since the batch that its `handle` names: it pairs the rows of each value that it `keeps`."""

    text: str
    handle: QueryHandle
    keeps: Callable[[int], bool]

    def results(self, until: int) -> list[int]:
        """Return the values that it has found before batch `until`: with a batch that cannot wait for its plan none."""
        since = self.handle.active_since
        values = (10 * batch + value for batch in range(until if since is None else since, until) for value in VALUES)
        return [value for value in values if self.keeps(value)]


@dataclass(slots=True)
class Churn:
    """Changes the queries of an engine at random, and compares what those that go have found."""

    random: Random
    running: dict[str, Asked] = field(default_factory=dict)
    changes: int = 0

    def change(self, engine: Engine, batch: int) -> None:
        """Make some changes, with which batch `batch` begins."""
        for _ in range(PER_BATCH):
            kind = self.random.choice(("add", "add", "drop", "replace")) if self.running else "add"
            if kind == "add" and len(self.running) >= MOST_QUERIES:
                kind = "drop"
            self.changes += 1
            if kind == "add":
                self.add(engine, f"q{self.changes}")
                continue
            name = self.random.choice(sorted(self.running))
            former = self.running[name].text
            self.drop(engine, name, batch)
            if kind == "replace":
                self.add(engine, name, former)

    def add(self, engine: Engine, name: str, other_than: str = "") -> None:
        """Ask for a query. The very same one again would be the one there was, and keep its results."""
        text = other_than
        while text == other_than:
            selection, keeps = self.random.choice(SELECTIONS)
            text = f"SELECT a.v, b.k FROM a JOIN b ON {self.random.choice(JOINS)} WHERE {selection}"
        self.running[name] = Asked(text, engine.query(name, text, sink=plait.sinks.memory()), keeps)

    def drop(self, engine: Engine, name: str, batch: int) -> None:
        """Drop a query."""
        asked = self.running.pop(name)
        found = engine.results(name)
        assert sorted(found["v"].to_pylist()) == asked.results(batch), name
        assert [row["k"] - row["v"] for row in found.to_pylist()] == [1000] * len(found)
        engine.drop(name)


@dataclass(frozen=True, slots=True)
class Left:
    """What a run leaves behind: its files; the bytes of what does not tell of the past (series of cycles and the
    history of plans are as long as they may be); its plan, without what is estimated; and its last manifest.
    """

    files: int
    bytes: int
    epochs: int
    stores: tuple[str, ...]
    plan: str
    manifest: Manifest

    @classmethod
    def by(cls, folder: Path) -> Left:
        """Look at a checkpoint."""
        files = [path for path in (folder / "checkpoint" / "plait").rglob("*") if path.is_file()]
        manifest = ManifestLog(state_of(str(folder / "checkpoint"))).latest()
        assert manifest is not None
        (plan,) = (path for path in files if path.name == f"{manifest.plan}.json")
        others = (path for path in files if path.name != FILE and path.parent.name != "manifests")
        return cls(
            files=len(files),
            bytes=sum(path.stat().st_size for path in others) + len(encode(replace(manifest, cycles=Cycles()))),
            epochs=len(read_history(state_of(str(folder / "checkpoint")))),
            stores=tuple(sorted({bucket.store for bucket in manifest.buckets})),
            plan=re.sub(r"\d+\.\d+", "n", plan.read_text()),
            manifest=manifest,
        )


def run(folder: Path, churn: Churn | None) -> list[int]:
    """Run all batches, changing queries in front of those that are for it; return how many objects there were when each
    round was over, when only the first query is left.
    """
    session, objects, seen = Session(), list[int](), set[int]()
    engine = plait.Engine(session, checkpoint=str(folder / "checkpoint"))  # type: ignore[arg-type]
    engine.load(load_script((SCRIPT + FIRST).format(folder)))

    def boundary(batch: int, done: bool) -> None:
        if done or batch in seen or batch == 0:
            return
        seen.add(batch)
        past, place = divmod(batch - 1, ROUND)
        if place == 0 and 0 < past <= ROUNDS:
            forget()  # of queries that are gone no more is remembered than of as many as are left
            gc.collect()
            objects.append(len(gc.get_objects()))
        if churn is not None and past < ROUNDS and place < CHANGING_BATCHES:
            churn.change(engine, batch)
        elif churn is not None:
            for name in sorted(churn.running):
                churn.drop(engine, name, batch)
        assert engine._run is not None
        engine._run.settle()

    session.boundary = boundary
    engine.run_available()
    return objects


def fill(folder: Path) -> None:
    """Let the files of all batches arrive, in order of their names."""
    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.int64()), ("v", pa.int64())])
    for stream in "ab":
        (folder / stream).mkdir(parents=True)
        for batch in range(BATCHES):
            values = [10 * batch + value for value in VALUES]
            rows = [{"ts": datetime.fromtimestamp(batch, UTC), "k": 1000 + value, "v": value} for value in values]
            pq.write_table(pa.Table.from_pylist(rows, schema), folder / stream / f"{batch:05}.parquet")


def test_queries_that_come_and_go_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames.install(monkeypatch.setattr)
    folder, other = tmp_path / "changing", tmp_path / "still"
    fill(folder)
    fill(other)
    threads = threading.active_count()
    churn = Churn(Random(SEED))
    objects = run(folder, churn)
    run(other, None)
    assert churn.changes == ROUNDS * CHANGING_BATCHES * PER_BATCH
    assert threading.active_count() <= threads
    left, still = Left.by(folder), Left.by(other)
    assert left.stores == still.stores
    assert left.plan == still.plan
    assert left.epochs <= MOST_ENTRIES
    assert len(left.manifest.cycles.batches) <= HISTORY
    assert left.files <= still.files + 3
    assert left.bytes <= still.bytes * 1.25 + 20_000
    assert len(left.manifest.buckets) <= len(still.manifest.buckets) + 2
    assert len(objects) == ROUNDS
    assert min(objects[ROUNDS // 2 :]) <= min(objects[: ROUNDS // 2]) + MORE_OBJECTS
