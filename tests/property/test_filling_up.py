"""A query that is to have the results of before it came has each of them once, however few rows of the past a batch
takes for it, and whatever is killed, expires or is planned otherwise meanwhile.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

import plait
from plait.errors import PlaitError
from plait.runtime.batch import microbatch
from plait.runtime.batch.stream import Run
from plait.runtime.batch.throttle import Throttle
from plait.runtime.engine import Engine
from plait.sql import load_script
from plait.state.buckets import OpenBucket
from plait.state.manifest import ManifestLog
from plait.state.model import Bucket, Manifest
from plait.state.storage import Storage
from tests.property import test_changing_queries as changing
from tests.property.standin import frames
from tests.property.standin.session import Session

CASES = max(int(os.environ.get("PLAIT_CASES", "800")) // 100, 4)
FIRST_SEED = int(os.environ.get("PLAIT_SEED", "0")) + 11_000_000
BATCHES, AT = 26, 6
POINTS = ("stored", "probed", "closed", "delivered", "committed", "published")
FIRST = "CREATE QUERY first INTO noop AS SELECT a.v FROM a JOIN b ON a.k = b.k;"
SELECTS = (
    "SELECT a.v AS x, b.v AS y, 0 AS z FROM a JOIN b ON a.k = b.k",
    "SELECT a.v AS x, b.v AS y, c.v AS z FROM a JOIN b ON a.k = b.k JOIN c ON b.j = c.j WHERE a.v % 2 = 0",
    "SELECT a.v AS x, a2.v AS y, 0 AS z FROM a JOIN a AS a2 ON a.k = a2.j",
    "SELECT a.v AS x, 0 AS y, 0 AS z FROM a WHERE a.k > 1",
)


class Life:
    """Runs a query that comes with batch `AT`. `slices`: how many rows of the past a batch takes; None: all. `deaths`:
    at which point of which batch the engine dies.
    """

    def __init__(self, folder: Path, select: str, slices: int | None, deaths: dict[int, str]) -> None:
        self.folder, self.select, self.slices, self.deaths = folder, select, slices, dict(deaths)
        self.batch, self.died = 0, 0
        self.left: list[int] = []
        self.changes: dict[int, Callable[[Engine], object]] = {}
        self.is_there = True

    def go(self, patch: pytest.MonkeyPatch, strategies: Random | None = None) -> Counter[tuple[Any, ...]]:
        """Run all batches, with another start after each death; return what the sink of the query has."""
        frames.install(patch.setattr)
        patch.setattr(Run, "_attend", lambda run: None)
        patch.setattr(microbatch, "reach", self._reach)
        if self.slices is not None:
            patch.setattr(microbatch, "AT_ONCE_ROWS", -1)
            patch.setattr(Throttle, "rows", lambda throttle: max(self.slices - throttle._taken_rows, 0))
        while True:
            strategy = strategies.choice(("greedy", "dppick", "fixed")) if strategies else "greedy"
            engine = self._engine(strategy)
            try:
                engine.run_available()
                break
            except PlaitError as error:
                if "out of power" not in str(error):
                    raise
                self.died += 1
        files = (self.folder / "late").glob("*.parquet")
        return Counter(tuple(row.values()) for file in files for row in pq.read_table(file).to_pylist())

    def _engine(self, strategy: Any) -> Engine:
        session = Session()
        engine = plait.Engine(session, checkpoint=str(self.folder / "checkpoint"), strategy=strategy)  # type: ignore[arg-type]
        engine.load(load_script((changing.SCRIPT + "SET plait.backfill = true;" + FIRST).format(self.folder)))
        if self.batch >= AT and self.is_there:
            self._ask(engine)

        def boundary(batch: int, done: bool) -> None:
            assert engine._course is not None
            engine._course.batches.processor._is_endless = self.slices is not None
            if done or batch < self.batch:
                return
            if batch == AT and batch > self.batch:
                self._ask(engine)
            change = self.changes.pop(batch, None)
            if change is not None:
                change(engine)
            self.batch = batch
            assert engine._run is not None
            engine._run.settle()

        session.boundary = boundary
        return engine

    def _ask(self, engine: Engine) -> None:
        engine.query("late", self.select, sink=plait.sinks.parquet(str(self.folder / "late")))

    def _reach(self, point: str) -> None:
        if point == "committed":
            self.left.append(sum(1 for each in self.manifest.filling_up for _ in each.left))
        if self.deaths.get(self.batch) == point:
            del self.deaths[self.batch]
            raise PlaitError("out of power")

    @property
    def manifest(self) -> Manifest:
        """The last one."""
        manifest = ManifestLog(Storage.open(str(self.folder / "checkpoint" / "plait"))).latest()
        assert manifest is not None
        return manifest


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], Path]:
    """Makes folders with the same streams."""
    monkeypatch.setattr(changing, "BATCHES", BATCHES)

    def made(name: str, seed: int) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        changing.arriving(folder, Random(seed))
        return folder

    return made


def at_once(folder: Path, select: str) -> Counter[tuple[Any, ...]]:
    with pytest.MonkeyPatch.context() as patch:
        return Life(folder, select, None, {}).go(patch)


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + CASES))
def test_what_comes_bit_by_bit_is_what_comes_at_once(seed: int, place: Callable[[str, int], Path]) -> None:
    random = Random(seed)
    select = SELECTS[seed % len(SELECTS)]
    expected = at_once(place("once", seed), select)
    deaths = {batch: random.choice(POINTS) for batch in range(AT, AT + 12) if random.random() < 0.3}
    life = Life(place("bits", seed), select, random.choice((1, 2, 5)), deaths)
    with pytest.MonkeyPatch.context() as patch:
        assert life.go(patch, random) == expected
    assert life.died == len(deaths)
    assert any(life.left), "all was taken at once"
    assert (life.manifest.filling_up, life.manifest.pasts) == ((), ())


def test_results_of_the_past_wait_for_their_slice_although_their_rows_expire(
    place: Callable[[str, int], Path],
) -> None:
    expected = at_once(place("once", 7), SELECTS[0])
    life = Life(place("bits", 7), SELECTS[0], 1, {})
    with pytest.MonkeyPatch.context() as patch:
        assert life.go(patch) == expected
    # A window is 3 seconds, and a batch a second: the last slice was taken when nothing of the past was stored.
    assert sum(map(bool, life.left)) > 5


@pytest.mark.parametrize("kind", ["drop", "replace"])
def test_a_query_that_is_dropped_or_replaced_leaves_nothing_of_the_past_behind(
    place: Callable[[str, int], Path], kind: str
) -> None:
    life = Life(place("bits", 7), SELECTS[0], 1, {})

    def change(engine: Engine) -> None:
        assert life.manifest.filling_up
        if kind == "drop":
            engine.drop("late")
        else:
            engine.replace("late", SELECTS[1], sink=plait.sinks.parquet(str(life.folder / "other")))

    life.changes[AT + 2] = change
    with pytest.MonkeyPatch.context() as patch:
        life.go(patch)
    assert (life.manifest.filling_up, life.manifest.pasts) == ((), ())
    assert sum(map(bool, life.left)) == 2


def test_what_was_kept_for_a_query_is_read_as_it_wants_it_whatever_one_that_comes_later_wants(
    place: Callable[[str, int], Path],
) -> None:
    select = "SELECT a.v AS x, b.v AS y, 0 AS z FROM a JOIN b ON a.j = b.j WHERE a.v > 4"
    expected = at_once(place("once", 7), select)
    life = Life(place("bits", 7), select, 1, {})
    # Its keys take Spark: rows are written again for it instead of being read otherwise.
    other = "SELECT a.v FROM a JOIN b ON md5(CAST(a.k AS STRING)) = md5(CAST(b.k AS STRING))"
    life.changes[AT + 2] = lambda engine: engine.query("other", other, sink=plait.sinks.memory())
    with pytest.MonkeyPatch.context() as patch:
        assert life.go(patch) == expected
    assert sum(map(bool, life.left)) > 5


def test_a_file_is_opened_once_although_it_is_wanted_of_the_past_and_of_now(
    place: Callable[[str, int], Path],
) -> None:
    life = Life(place("bits", 7), SELECTS[0], 1, {})
    opened, begin = Counter[str](), OpenBucket.__init__

    def noted(bucket: OpenBucket, storage: Storage, of: Bucket) -> None:
        opened[of.path] += 1
        begin(bucket, storage, of)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OpenBucket, "__init__", noted)
        life.go(patch)
    assert sum(map(bool, life.left)) > 5
    assert set(opened.values()) == {1}


def test_a_checkpoint_remembers_what_is_left_to_take(place: Callable[[str, int], Path]) -> None:
    life = Life(place("bits", 7), SELECTS[2], 2, {AT + 3: "published"})
    found: list[Manifest] = []
    life.changes[AT + 2] = lambda engine: found.append(life.manifest)
    with pytest.MonkeyPatch.context() as patch:
        life.go(patch)
    (each,), (past,) = found[0].filling_up, found[0].pasts
    assert (each.query, each.since, past.since) == ("late", AT, AT)
    assert {left.path for left in each.left} <= {bucket.path for bucket in past.buckets}
    assert max(bucket.batch_max for bucket in past.buckets) == AT - 1
