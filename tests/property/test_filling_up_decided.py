"""A query that is to have the results of before it came has also those that the watermark had decided by then: rows
without a partner, first partners, and the groups of windows of time that were over; as far back as all is stored that
decides them, and nothing of what was before.

Queries come at a random batch, at a start or while others run, and engines die on the way. ``PLAIT_CASES=8000`` draws
ten times as many cases, ``PLAIT_SEED=7`` others.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import pytest

import plait
from plait.errors import PlaitError
from plait.runtime.batch import microbatch
from plait.runtime.engine import Engine
from plait.sql import load_script
from tests.property.standin import frames
from tests.property.standin.session import Session
from tests.property.undecided import A_S, B_S, QUERIES, Place, Results

CASES = max(int(os.environ.get("PLAIT_CASES", "800")) // 64, 4)
FIRST_SEED = int(os.environ.get("PLAIT_SEED", "0")) + 17_000_000
POINTS = ("stored", "probed", "closed", "delivered", "committed", "published")
GROUPED = tuple(name for name, select in QUERIES.items() if "GROUP BY" in select)
SESSIONS = tuple(name for name, select in QUERIES.items() if "session_window" in select)
FOREVER_S = 10_000
SECONDS = 6
"""What a file brings of event time."""

STREAM = """CREATE STREAM {0} (ts TIMESTAMP, k BIGINT, id BIGINT)
    USING parquet OPTIONS (path '{{0}}/{0}', maxFilesPerTrigger '1', keep 'all')
    TIMESTAMP BY ts WINDOW INTERVAL {1} SECONDS DELAY INTERVAL 1 SECOND;"""
WINDOWS = {"a": f"{A_S} seconds", "b": f"{B_S} seconds"}
FIRST = {
    "inner": "SELECT a.id FROM a JOIN b ON a.k = b.k",
    "outer": "SELECT a.id, b.id AS other FROM a FULL JOIN b ON a.k = b.k",
}


@dataclass(slots=True)
class Life:
    """Runs the queries of `QUERIES` from batch `at` of so many `batches` on, beside `first`. `stored_s`: how long rows
    stay, whatever the queries need; `deaths`: at which point of which batch the engine dies; `is_asked`: the queries
    come while the engine runs, else at a start.
    """

    place: Place
    first: str
    at: int
    batches: int
    stored_s: int
    is_asked: bool
    strategy: str = "greedy"
    backfill: bool = True
    deaths: dict[int, str] = field(default_factory=dict)
    batch: int = 0

    def go(self, patch: pytest.MonkeyPatch) -> Results:
        """Run to the end of the input, with another start after each death; return what all sinks have."""
        patch.setattr(microbatch, "reach", self._reach)
        if not self.is_asked:
            for _ in range(self.at):
                self.place.arrive(seconds=SECONDS)
            self._run()
        while self.place.files < self.batches:
            self.place.arrive(seconds=SECONDS)
        self._run(close=True)
        return self.place.found()

    def _run(self, close: bool = False) -> None:
        while True:
            try:
                self._engine(is_started_with=not self.is_asked and self.batch + 1 >= self.at).run_available(close=close)
                return
            except PlaitError as error:
                if "out of power" not in str(error):
                    raise

    def _engine(self, is_started_with: bool) -> Engine:
        session = Session()
        engine = plait.Engine(session, checkpoint=str(self.place.folder / "checkpoint"))  # type: ignore[arg-type]
        engine.set_option("plait.strategy", self.strategy)
        engine.set_option("plait.backfill", str(self.backfill).lower())
        streams = "".join(STREAM.format(name, self.stored_s) for name in "ab")
        engine.load(load_script(streams.format(self.place.folder)))
        engine.query("first", FIRST[self.first], sink=plait.sinks.noop(), windows=WINDOWS)
        if is_started_with and self.place.files == self.batches:
            self._ask(engine)
        has_asked = False

        def boundary(batch: int, done: bool) -> None:
            nonlocal has_asked
            if done:
                return
            if self.is_asked and batch >= self.at and not has_asked:
                has_asked = True
                self._ask(engine)
            self.batch = batch
            assert engine._run is not None
            engine._run.settle()

        session.boundary = boundary
        return engine

    def _ask(self, engine: Engine) -> None:
        for name, select in QUERIES.items():
            sink = plait.sinks.parquet(str(self.place.folder / "out" / name))
            windows = {alias: window for alias, window in WINDOWS.items() if f"{alias}." in select}
            engine.query(name, select, sink=sink, windows=windows)

    def _reach(self, point: str) -> None:
        if self.deaths.get(self.batch) == point:
            del self.deaths[self.batch]
            raise PlaitError("out of power")


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Place]:
    """Makes places with the same input of a seed."""
    frames.install(monkeypatch.setattr)
    made: list[Place] = []

    def place(seed: int) -> Place:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(Place(folder, Random(seed)))
        return made[-1]

    return place


def drawn(seed: int, place: Place, **changes: object) -> Life:
    random = Random(seed)
    at = random.randint(1, 7)
    life = Life(
        place=place,
        first=random.choice(tuple(FIRST)),
        at=at,
        batches=at + random.randint(1, 5),
        stored_s=FOREVER_S,
        is_asked=random.random() < 0.6,
        strategy=random.choice(("greedy", "dppick", "adhoc")),
    )
    life.deaths = {batch: random.choice(POINTS) for batch in range(at, life.batches) if random.random() < 0.25}
    for name, value in changes.items():
        setattr(life, name, value)
    return life


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + CASES))
def test_where_all_is_stored_a_query_that_comes_late_has_what_it_would_have_had_from_the_start(
    seed: int, places: Callable[[int], Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    life = drawn(seed, places(seed))
    found, wanted = life.go(monkeypatch), life.place.wanted()
    for name in QUERIES:
        assert found[name] == wanted[name], (name, wanted[name] - found[name], found[name] - wanted[name])


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + CASES))
def test_of_what_is_forgotten_nothing_is_told_that_is_not_so(
    seed: int, places: Callable[[int], Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What runs before keeps as much as what comes needs of now, so that nothing but the past is lacking."""
    stored_s = Random(seed).choice((A_S + B_S, 2 * A_S + B_S))
    life = drawn(seed, places(seed), first="outer", stored_s=stored_s)
    found, wanted = life.go(monkeypatch), life.place.wanted()
    without = drawn(seed, places(seed), first="outer", stored_s=stored_s, backfill=False, deaths={}).go(monkeypatch)
    for name in QUERIES:
        if name in SESSIONS:  # which may have begun with rows that are gone
            assert found[name] == without[name] or found[name] == wanted[name], name
            continue
        assert not found[name] - wanted[name], name
        if name in GROUPED:
            begun = datetime(1970, 1, 1) + timedelta(seconds=life.at * SECONDS)
            later = {row for row in wanted[name] if row[0] >= begun}
            assert later <= set(found[name]), name
        else:
            assert not without[name] - found[name], name


def test_rows_of_the_past_come_as_far_back_as_their_partners_are_stored(
    places: Callable[[int], Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lonely(stored_s: int, **changes: object) -> list[int]:
        given = {"first": "outer", "at": 12, "batches": 14, "stored_s": stored_s, "deaths": {}, **changes}
        life = drawn(5, places(5), **given)
        assert life.go(monkeypatch)["never"] <= life.place.wanted()["never"]
        return sorted(row[0] for row in life.place.found()["never"])

    some, all_ = lonely(2 * A_S + B_S), lonely(FOREVER_S)
    assert lonely(FOREVER_S, backfill=False) == lonely(A_S + B_S) < some < all_ or (
        len(lonely(FOREVER_S, backfill=False)) <= len(lonely(A_S + B_S)) < len(some) < len(all_)
    )
    assert min(all_) < 12
    assert lonely(FOREVER_S, strategy="independent") == lonely(FOREVER_S, backfill=False)
