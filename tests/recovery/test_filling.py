"""An intermediate store that comes while the engine runs over a full history: how much each batch takes, what is told
of it, and kills while it is filled and when it is there.

Without Spark: what a kill is to the process an exception is to the engine, which is thrown away then.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plait
from plait import faults
from plait.adapt.adapter import Adapter
from plait.adapt.decision import Change
from plait.adapt.planning import PlanRequest, probing_only
from plait.cli.history_text import history_json, history_text
from plait.plan.coming import settled_id
from plait.plan.model import Plan
from plait.runtime import batches
from plait.runtime.batch.building_indexes import unindexed
from plait.runtime.batch.events import BatchEvent
from plait.runtime.batch.stream import Run
from plait.runtime.batch.throttle import Throttle
from plait.runtime.checkpoint import heading
from plait.runtime.checkpoint.plan_history import history_of, order_texts
from plait.sql import load_script
from plait.state.fillings import left_rows
from plait.state.manifest import ManifestLog
from plait.state.model import Manifest
from plait.state.storage import Storage
from tests.property.forcing import forced
from tests.property.standin import frames
from tests.property.standin.session import Session

BATCHES, HISTORY, ROWS = 17, 80, 5
"""The first file of each stream has `HISTORY` rows, the others `ROWS`."""
SLICE = 20
KEYS = 29
COLUMNS = {"r": "a", "s": "ab", "t": "bc", "u": "c"}
SELECT = (
    "SELECT r.v AS r, s.v AS s, t.v AS t, u.v AS u FROM r JOIN s ON r.a = s.a JOIN t ON s.b = t.b JOIN u ON t.c = u.c"
)
FAIL_POINTS = ("stored", "probed", "closed", "delivered", "committed", "published")
START = "greedy"

Rows = dict[str, list[dict[str, int]]]


class Killed(Exception):
    """The engine has died."""


def value(stream: str, number: int, column: str) -> int:
    """Return a key, spread evenly: streams have all of them in common."""
    return (number * (7 + ord(column) % 3) + ord(stream)) % KEYS


def rows_of(stream: str, batch: int) -> list[dict[str, int]]:
    first = 0 if batch == 0 else HISTORY + (batch - 1) * ROWS
    count = HISTORY if batch == 0 else ROWS
    return [
        {"v": number, **{column: value(stream, number, column) for column in COLUMNS[stream]}}
        for number in range(first, first + count)
    ]


def write_streams(folder: Path, count: int = BATCHES) -> None:
    for stream in COLUMNS:
        (folder / stream).mkdir(parents=True, exist_ok=True)
        for batch in range(count):
            table = pa.Table.from_pylist(rows_of(stream, batch))
            times = pa.array([batch * 1_000_000] * table.num_rows, pa.int64()).cast(pa.timestamp("us", "UTC"))
            path = folder / stream / f"{batch:03d}.parquet"
            pq.write_table(table.append_column("ts", times), path)
            os.utime(path, (1_700_000_000 + batch,) * 2)


def expected(count: int = BATCHES) -> Counter[tuple[int, ...]]:
    """Return the join of everything, by nested loops over equal keys."""
    r, s, t, u = ([row for batch in range(count) for row in rows_of(stream, batch)] for stream in COLUMNS)
    found = Counter[tuple[int, ...]]()
    for one in s:
        for two in (row for row in t if row["b"] == one["b"]):
            left = [row["v"] for row in r if row["a"] == one["a"]]
            right = [row["v"] for row in u if row["c"] == two["c"]]
            found.update((a, one["v"], two["v"], b) for a in left for b in right)
    return found


def script(folder: Path) -> str:
    streams = "".join(
        f"CREATE STREAM {stream} (ts TIMESTAMP, v BIGINT, {', '.join(f'{each} BIGINT' for each in keys)}) "
        f"USING parquet OPTIONS (path '{folder}/{stream}', maxFilesPerTrigger '1') TIMESTAMP BY ts WINDOW UNBOUNDED;"
        for stream, keys in COLUMNS.items()
    )
    return streams + f"CREATE QUERY q INTO parquet OPTIONS (path '{folder}/out') AS {SELECT};"


@dataclass(slots=True)
class History:
    """Runs over one folder. `minds`: the strategy whose plan is wanted from a batch on. `kills`: (batch, fail point);
    each happens once.
    """

    folder: Path
    patch: pytest.MonkeyPatch
    minds: Mapping[int, str]
    kills: tuple[tuple[int, str], ...] = ()
    events: list[BatchEvent] = field(default_factory=list)
    before_batch: Callable[[int], object] = lambda _: None
    _armed: tuple[int, str] | None = None
    _batch: int = 0
    engine: Any = None

    def run(self, strategy: str = START) -> None:
        """Run until all is taken, again after each kill."""
        self.patch.setattr(Adapter, "next_change", lambda adapter, running: self._next_change(adapter, running))
        self.patch.setattr(Run, "_attend", lambda run: None)
        while True:
            session = Session(boundary=self._boundary)
            self.engine = plait.Engine(
                session,  # type: ignore[arg-type]
                checkpoint=str(self.folder / "checkpoint"),
                strategy=strategy,
                parallelism=2,
                listener=self.events.append,
            )
            self.engine.load(load_script(script(self.folder)))
            try:
                self.engine.run_available()
                return
            except Exception:
                if self._armed is None:
                    raise
                self.kills = tuple(kill for kill in self.kills if kill != self._armed)
                self._armed = None

    def _boundary(self, batch: int, done: bool) -> None:
        self._batch = batch
        if not done:
            self.before_batch(batch)
        kill = next((kill for kill in self.kills if kill[0] == batch and not done), None)

        def die(*_: object) -> None:
            self._armed = kill
            raise Killed

        environment = {} if kill is None else {"PLAIT_FAULT": kill[1]}
        faults._reached.clear()
        self.patch.setattr(faults, "os", SimpleNamespace(environ=environment, kill=die, getpid=os.getpid))

    def _next_change(self, adapter: Any, running: Plan) -> Change | None:
        strategy = self.minds.get(self._batch)
        if strategy is None:
            return None
        request = adapter._request
        wanted = PlanRequest(queries=request.queries, options=replace(request.options, strategy=strategy)).plan(None)
        fitting = probing_only(running, wanted)
        assert fitting is not None
        return forced(running, fitting)

    @property
    def found(self) -> Counter[tuple[int, ...]]:
        tables = [pq.read_table(path) for path in (self.folder / "out").glob("*.parquet")]
        return Counter(tuple(row.values()) for table in tables for row in table.to_pylist())

    @property
    def manifest(self) -> Manifest:
        found = ManifestLog(Storage.open(str(self.folder / "checkpoint" / "plait"))).latest()
        assert found is not None
        return found

    def taken(self) -> list[dict[str, int]]:
        """Return the rows that each batch took, by store."""
        return [{each.store: each.taken for each in event.filling} for event in self.events]


@pytest.fixture
def patched(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    frames.install(monkeypatch.setattr)
    monkeypatch.setattr(Throttle, "rows", lambda throttle: max(SLICE - throttle._taken_rows, 0))
    monkeypatch.setattr(heading, "AT_ONCE_ROWS", SLICE)
    plan = PlanRequest.plan  # whatever has been measured, lest each start wants another one
    monkeypatch.setattr(PlanRequest, "plan", lambda request, *_: plan(request, None))
    return monkeypatch


def test_each_batch_takes_a_slice_of_a_full_history_and_all_of_it_is_taken_once(
    tmp_path: Path, patched: pytest.MonkeyPatch
) -> None:
    write_streams(tmp_path)
    history = History(tmp_path, patched, minds={2: "left-deep"})
    history.run()
    assert history.found == expected()
    taken = Counter[str]()
    for event, rows in zip(history.events, history.taken(), strict=True):
        assert sum(rows.values()) <= SLICE
        assert sum(rows.values()) == 0 or event.filling_tuples > 0
        taken.update(rows)
    filling = {each.store: each.rows for event in history.events for each in event.filling}
    assert len(filling) >= 1
    assert taken == filling  # each row that was there, once
    assert all(rows >= HISTORY for rows in filling.values())
    assert history.events[-1].filling == ()
    plan = history.engine._course.epoch.plan
    assert plan.coming == ()
    assert {store.id for store in plan.stores if store.intermediate} >= filling.keys()


def test_until_it_is_there_queries_are_answered_in_the_orders_of_before(
    tmp_path: Path, patched: pytest.MonkeyPatch
) -> None:
    write_streams(tmp_path)
    history = History(tmp_path, patched, minds={2: "left-deep"})
    plans: dict[int, Plan] = {}
    history.before_batch = lambda batch: plans.update({batch - 1: history.engine._course.epoch.plan} if batch else {})
    history.run()
    first = next(event.batch for event in history.events if event.filling)
    last = max(event.batch for event in history.events if event.filling)
    assert first == 2
    assert last >= first + HISTORY // SLICE - 1
    for batch, plan in plans.items():
        reads = {step.member.store for tree in plan.trees for _, step in tree.walk() if step.parts and step.outputs}
        assert bool(reads) == (batch > last)


@pytest.mark.parametrize("point", FAIL_POINTS)
def test_kills_while_a_store_is_filled_and_when_it_is_there_lose_and_repeat_nothing(
    tmp_path: Path, patched: pytest.MonkeyPatch, point: str
) -> None:
    patched.setattr(Throttle, "rows", lambda throttle: max(2 * SLICE - throttle._taken_rows, 0))
    write_streams(tmp_path, 2)
    History(tmp_path, patched, minds={}).run()
    write_streams(tmp_path, 10)
    history = History(tmp_path, patched, minds={}, kills=tuple((batch, point) for batch in range(2, 10)))
    seen: list[Manifest] = []
    history.before_batch = lambda _: seen.append(history.manifest)
    history.run(strategy="left-deep")
    assert not history.kills
    assert history.found == expected(10)
    left: dict[str, list[int]] = {}
    for manifest in (*seen, history.manifest):
        for store, rows in left_rows(manifest.fillings, manifest.buckets).items():
            left.setdefault(store, []).append(rows)
    # What has been taken before a kill is not taken again after it, and in the end the plan is there that was wanted.
    assert all(rows == sorted(rows, reverse=True) for rows in left.values())
    assert len({settled_id(store) for store in left}) > 1
    assert not any(rows[-1] for rows in left.values())
    assert history.engine._course.epoch.plan.coming == ()


def test_minds_that_change_while_stores_are_filled_cost_no_result_and_no_row_that_is_still_wanted(
    tmp_path: Path, patched: pytest.MonkeyPatch
) -> None:
    write_streams(tmp_path, 2 * BATCHES)
    minds = {2: "left-deep", 4: "bushy", 5: "left-deep", 7: "greedy", 8: "chain", 9: "left-deep", 11: "bushy"}
    history = History(tmp_path, patched, minds=minds)
    history.run()
    assert history.found == expected(2 * BATCHES)
    assert max(sum(rows.values()) for rows in history.taken()) <= SLICE
    reasons = [event.change.reason for event in history.events if event.change is not None]
    assert len(reasons) >= len(minds)
    assert reasons[-1] == "filled"


def test_indexes_that_stored_rows_lack_are_built_beside_the_stream_before_anybody_looks_them_up(
    tmp_path: Path, patched: pytest.MonkeyPatch
) -> None:
    patched.setattr(batches, "MOST_AT_ONCE", 0)
    write_streams(tmp_path)
    history = History(tmp_path, patched, minds={3: "greedy"})
    plans: dict[int, Plan] = {}

    def before_batch(batch: int) -> None:
        history.engine._course.batches.processor.indexer._pool.submit(lambda: None).result()  # it has done its work
        plans[batch - 1] = history.engine._course.epoch.plan

    history.before_batch = before_batch
    history.run(strategy="left-deep")
    assert history.found == expected()
    changes = {event.batch: event.change for event in history.events if event.change is not None}
    assert [(batch, change.reason) for batch, change in changes.items()] == [(3, "cheaper"), (4, "indexed")]
    sorted_rows = changes[3].indexing
    assert sorted_rows >= HISTORY
    assert changes[4].indexing == 0
    # Its orders are those of before until then.
    assert order_texts(plans[2]) == order_texts(plans[3]) != order_texts(plans[4])
    stored = [each for each in history.manifest.buckets if each.batch_max < 3]
    storage = Storage.open(str(tmp_path / "checkpoint" / "plait"))
    assert sum(each.rows for each, _ in unindexed(plans[2], (plans[4],), stored, storage)) == 0


def test_what_a_run_has_taken_is_not_taken_again_by_the_next_one_with_the_same_plan(
    tmp_path: Path, patched: pytest.MonkeyPatch
) -> None:
    write_streams(tmp_path, 4)
    first = History(tmp_path, patched, minds={2: "left-deep"})
    first.run()
    left = {each.store: each.left for each in first.events[-1].filling}
    assert any(left.values())
    write_streams(tmp_path)
    second = History(tmp_path, patched, minds={})
    second.run(strategy="left-deep")
    assert second.found == expected()
    begun = {each.store: each.left + each.taken for each in second.events[0].filling}
    assert {store: begun[store] for store in left} == left


def test_history_and_summary_say_what_is_filled_and_how_far_it_is(tmp_path: Path, patched: pytest.MonkeyPatch) -> None:
    write_streams(tmp_path, 4)
    history = History(tmp_path, patched, minds={2: "left-deep"})
    history.run()
    entries = history_of(str(tmp_path / "checkpoint"))
    (filling,) = history.events[-1].filling
    share = 1 - filling.left / filling.rows
    text = history_text(entries)
    assert f"{filling.store} is filled first; until then queries are answered as before: {share:.0%} of" in text
    told = json.loads(history_json(entries))["epochs"][-1]
    assert told["left"] == {filling.store: [filling.left, filling.rows]}
    summary = history.engine.summary().as_json()
    assert summary["filling"] == {filling.store: {"taken": filling.taken, "left": filling.left, "rows": filling.rows}}
    assert summary["filling_tuples"] == sum(event.filling_tuples for event in history.events) > 0
    change = next(event.change for event in history.events if event.change is not None)
    assert filling.store in change.as_json()["filling"]


def test_a_checkpoint_of_before_there_were_fillings_still_opens(tmp_path: Path, patched: pytest.MonkeyPatch) -> None:
    write_streams(tmp_path, 4)
    History(tmp_path, patched, minds={}).run(strategy="left-deep")
    folder = tmp_path / "checkpoint" / "plait"
    for path in (folder / "manifests").glob("*.json"):
        rewrite_without_fillings(path)
    write_streams(tmp_path)
    later = History(tmp_path, patched, minds={})
    later.run(strategy="left-deep")
    assert later.found == expected()
    assert later.taken() == [{}] * len(later.events)


def rewrite_without_fillings(path: Path) -> None:
    from plait.state.storage import checksum_of

    body, seal, _ = path.read_bytes().rpartition(b',\n"checksum":"')
    body, count = re.subn(rb',"fillings":\[(?:[^\[\]]|\[[^\[\]]*\])*\]', b"", body)
    assert count == 1
    path.write_bytes(body + seal + checksum_of(body).encode() + b'"}\n')
