"""Queries come, go and are replaced under every kind of strategy, while plans with intermediate stores come and go too:
each query gets what it asks for of the rows that arrive while it is there, with all that are kept from before. Some
change while a batch has stored its rows and not probed yet.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plait
from plait.adapt.reconsidering import Policy
from plait.adapt.rule import Rule
from plait.plan.strategy_names import StrategyName
from plait.runtime.batch import microbatch
from plait.runtime.batch.stream import Run
from plait.runtime.checkpoint import heading
from plait.runtime.declarations import QueryHandle
from plait.runtime.engine import Engine
from plait.runtime.engine_options import EngineOptions
from plait.sql import load_script
from plait.stats.cycles import CycleLength
from tests.property.direct import FREE_STORES
from tests.property.standin import frames
from tests.property.standin.session import Session

CASES = max(int(os.environ.get("PLAIT_CASES", "800")) // 100, 4)
FIRST_SEED = int(os.environ.get("PLAIT_SEED", "0")) + 9_000_000
STRATEGIES: tuple[StrategyName, ...] = ("dppick", "ilp", "adhoc", "bushy", "chain", "independent", "greedy")
BATCHES = 8
WINDOW_S = 3
STREAM = f"""CREATE STREAM {{0}} (ts TIMESTAMP, k BIGINT, j BIGINT, v BIGINT)
    USING parquet OPTIONS (path '{{{{0}}}}/{{0}}', maxFilesPerTrigger '1', keep 'all')
    TIMESTAMP BY ts WINDOW INTERVAL {WINDOW_S} SECONDS;"""
SCRIPT = "".join(map(STREAM.format, "abc"))
JOINS = (
    ("a.k = b.k",),
    ("b.j = c.j",),
    ("a.k = b.k", "b.j = c.j"),
    ("a.k = b.k", "b.j = c.j", "a.j = c.k"),
    ("a.k = a2.k",),
)
EVERY = (1, 2, 3)
"""A relation takes every row, every other or every third one."""

Row = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Asked:
    """A query. Batch b brings the rows of second b."""

    joins: tuple[str, ...]
    every: Mapping[str, int]
    windows_s: Mapping[str, int]

    @property
    def aliases(self) -> tuple[str, ...]:
        return tuple(sorted({side.split(".")[0] for join in self.joins for side in join.split(" = ")}))

    @property
    def select(self) -> str:
        relations = ", ".join("a AS a2" if alias == "a2" else alias for alias in self.aliases)
        conditions = [*self.joins, *(f"{alias}.v % {every} = 0" for alias, every in self.every.items() if every > 1)]
        columns = ", ".join(f"{alias}.v AS {alias}v" for alias in self.aliases)
        return f"SELECT {columns} FROM {relations} WHERE {' AND '.join(conditions)}"

    def results(self, rows: Mapping[str, list[Row]], since: int, until: int) -> Counter[tuple[int, ...]]:
        """Return what it has found from batch `since` on before batch `until`."""
        taken = (
            [row for row in rows[alias[0]] if row["at"] < until and row["v"] % self.every[alias] == 0]
            for alias in self.aliases
        )
        return Counter(tuple(row["v"] for row in found) for found in product(*taken) if self._holds(found, since))

    def _holds(self, found: tuple[Row, ...], since: int) -> bool:
        by_alias, newest = dict(zip(self.aliases, found, strict=True)), max(row["at"] for row in found)
        if newest < since or any(newest - row["at"] > self.windows_s[alias] for alias, row in by_alias.items()):
            return False
        sides = ([side.split(".") for side in join.split(" = ")] for join in self.joins)
        return all(by_alias[left][mine] == by_alias[right][theirs] for (left, mine), (right, theirs) in sides)


@dataclass(slots=True)
class Life:
    """Changes the queries of an engine at random, and compares what those that go have found."""

    random: Random
    rows: Mapping[str, list[Row]]
    running: dict[str, tuple[Asked, QueryHandle]] = field(default_factory=dict)
    count: int = 0

    def change(self, engine: Engine, batch: int) -> None:
        """Add, drop or replace a query, before this batch is probed."""
        kind = self.random.choice(("add", "drop", "replace")) if len(self.running) > 1 else "add"
        if kind == "add":
            self.count += 1
            name, ask = f"q{self.count}", engine.query
        else:
            name = self.random.choice(sorted(self.running))
            self.compare(engine, name, batch)
            ask = engine.replace
        if kind == "drop":
            engine.drop(name)
            del self.running[name]
            return
        asked = self._asked()
        windows = {alias: f"{length} seconds" for alias, length in asked.windows_s.items()}
        handle = ask(name, asked.select, sink=plait.sinks.memory(), windows=windows)
        self.running[name] = asked, handle

    def _asked(self) -> Asked:
        asked = Asked(self.random.choice(JOINS), {}, {})
        every = {alias: self.random.choice(EVERY) for alias in asked.aliases}
        windows_s = {alias: self.random.randint(1, WINDOW_S) for alias in asked.aliases}
        return replace(asked, every=every, windows_s=windows_s)

    def compare(self, engine: Engine, name: str, until: int) -> None:
        """Compare the results of a query with what it should have found."""
        asked, handle = self.running[name]
        since = handle.active_since
        if since is not None and since < until:
            found = Counter(tuple(row.values()) for row in engine.results(name).to_pylist())
            assert found == asked.results(self.rows, since, until), (name, asked.select, asked, since)


def arriving(folder: Path, random: Random) -> dict[str, list[Row]]:
    """Let the files of all batches arrive, and return their rows by stream."""
    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.int64()), ("j", pa.int64()), ("v", pa.int64())])
    rows: dict[str, list[Row]] = {}
    for place, name in enumerate("abc"):
        (folder / name).mkdir()
        rows[name] = []
        for batch in range(BATCHES):
            drawn = [(random.randrange(4), random.randrange(3)) for _ in range(random.choice((1, 3, 6)))]
            numbers = range(len(rows[name]) * 3 + place, 10**6, 3)
            added = [{"at": batch, "k": k, "j": j, "v": v} for (k, j), v in zip(drawn, numbers, strict=False)]
            rows[name] += added
            table = [{**row, "ts": datetime.fromtimestamp(batch, UTC)} for row in added]
            pq.write_table(pa.Table.from_pylist(table, schema), folder / name / f"{batch:05}.parquet")
    return rows


@pytest.fixture
def restless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans change whenever another is forecast to be cheaper at all, and stores come over several batches."""
    frames.install(monkeypatch.setattr)
    settings, request = EngineOptions.settings, EngineOptions.request
    policy = Policy(rule=Rule(horizon_s=30.0, least=-0.5, margin=0.0, patience=1, evidence=0.0))

    def following(*told: object) -> object:
        made = settings(*told)  # type: ignore[arg-type]
        return replace(made, habits=replace(made.habits, policy=policy, cycle=CycleLength(batches=1)))

    def storing(*told: object) -> object:
        made = request(*told)  # type: ignore[arg-type]
        return replace(made, options=replace(made.options, costs=FREE_STORES, store_weight=0.0))

    monkeypatch.setattr(EngineOptions, "settings", following)
    monkeypatch.setattr(EngineOptions, "request", storing)
    monkeypatch.setattr(heading, "AT_ONCE_ROWS", 3)
    monkeypatch.setattr(Run, "_attend", lambda self: None)  # so that a seed always gives the same life


@pytest.mark.usefixtures("restless")
@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + CASES))
def test_queries_that_come_and_go_get_what_they_ask_for(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random, session, changed = Random(seed), Session(), set[int]()
    life = Life(random, arriving(tmp_path, random))
    engine = plait.Engine(
        session,  # type: ignore[arg-type]
        checkpoint=str(tmp_path / "checkpoint"),
        strategy=STRATEGIES[seed % len(STRATEGIES)],
        parallelism=random.choice((1, 1, 3)),
    )
    engine.load(load_script(SCRIPT.format(tmp_path)))

    def boundary(batch: int, done: bool) -> None:
        run = engine._run
        assert run is not None
        if done or batch == 0 or batch in changed:
            return
        changed.add(batch)
        if random.random() < 0.6:
            with run._between:
                assert engine._course is not None
                engine._course.batches.adapter.wait()
        for _ in range(random.randrange(4)):
            life.change(engine, batch)
        if random.random() < 0.3:
            engine._plan_ahead()
        if random.random() < 0.5:
            run.settle()

    def reached(point: str) -> None:
        if point == "stored" and random.random() < 0.5:
            for _ in range(random.randrange(3)):
                life.change(engine, max(changed, default=0))
            engine._plan_ahead()

    monkeypatch.setattr(microbatch, "reach", reached)
    for _ in range(3):
        life.change(engine, 0)
    session.boundary = boundary
    engine.run_available()
    for name in sorted(life.running):
        life.compare(engine, name, BATCHES)
