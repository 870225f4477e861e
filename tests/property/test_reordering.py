"""Figures 12b and 13 of paper 004: what is stored before a change of partitions or of the probe order is joined with
what comes after it, every pair once.

The paper partitions twice for the length of a window, and joins the halves of windows apart (IR1, IR2, IR3). Here rows
stay where they are and are found there, and each result is found by its last member, so nothing has to be told apart.
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plait
from plait.adapt.planning import probing_only
from plait.plan.model import Plan
from plait.plan.traversals import endings
from plait.runtime.engine import Engine
from plait.sql import load_script
from plait.state.manifest import ManifestLog
from plait.state.storage import Storage
from plait.stats.model import Statistics
from tests.property.forcing import forced
from tests.property.standin import frames
from tests.property.standin.session import Session
from tests.unit.optimizer.random_orders import random_plan

STREAM = """CREATE STREAM {0} (ts TIMESTAMP, k BIGINT, v BIGINT) USING parquet
    OPTIONS (path '{{0}}/{0}', maxFilesPerTrigger '1') TIMESTAMP BY ts WINDOW INTERVAL 100 SECONDS;"""
SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.int64()), ("v", pa.int64())])


def arrive(folder: Path, streams: str, batches: int) -> None:
    """Let a row of each stream arrive with each batch: its `v` is the batch, and all have the same key."""
    for stream in streams:
        (folder / stream).mkdir()
        for batch in range(batches):
            row = {"ts": datetime.fromtimestamp(batch, UTC), "k": 7, "v": batch}
            pq.write_table(pa.Table.from_pylist([row], SCHEMA), folder / stream / f"{batch}.parquet")


def engine_on(folder: Path, streams: str, query: str, session: Session, parallelism: int = 1) -> Engine:
    checkpoint = str(folder / "checkpoint")
    engine = plait.Engine(session, checkpoint=checkpoint, strategy="fixed", parallelism=parallelism)  # type: ignore[arg-type]
    script = "".join(map(STREAM.format, streams)) + f"CREATE QUERY q INTO parquet OPTIONS (path '{{0}}/q') AS {query};"
    engine.load(load_script(script.format(folder)))
    return engine


def found(folder: Path) -> list[tuple[Any, ...]]:
    files = (folder / "q").glob("*.parquet")
    return sorted(tuple(row.values()) for file in files for row in pq.read_table(file).to_pylist())


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    frames.install(monkeypatch.setattr)


def test_figure_12b_buckets_of_two_partitionings_are_joined_each_pair_once(tmp_path: Path) -> None:
    query = "SELECT a.v AS x, b.v AS y FROM a JOIN b ON a.k = b.k"
    arrive(tmp_path, "ab", 1)
    engine_on(tmp_path, "ab", query, Session(), parallelism=2).run_available()
    for stream in "ab":  # T2: the change arrives, and with it the second and the third bucket
        for batch in (1, 2):
            row = {"ts": datetime.fromtimestamp(batch, UTC), "k": 7, "v": batch}
            pq.write_table(pa.Table.from_pylist([row], SCHEMA), tmp_path / stream / f"{batch}.parquet")
    engine_on(tmp_path, "ab", query, Session(), parallelism=5).run_available()
    manifest = ManifestLog(Storage.open(str(tmp_path / "checkpoint" / "plait"))).latest()
    assert manifest is not None
    assert {bucket.parallelism for bucket in manifest.buckets} == {2, 5}
    assert found(tmp_path) == list(product(range(3), repeat=2))


def _order(plan: Plan, start: str) -> tuple[str, ...]:
    (aliases,) = (output.aliases for _, _, output in endings(plan) if output.aliases[0] == start)
    return aliases


def test_figure_13_a_new_order_joins_what_the_one_before_has_left_and_repeats_nothing(tmp_path: Path) -> None:
    query = "SELECT a.v AS x, b.v AS y, c.v AS z FROM a JOIN b ON a.k = b.k JOIN c ON a.k = c.k AND b.k = c.k"
    arrive(tmp_path, "abc", 4)
    session, orders, results = Session(), list[tuple[str, ...]](), list[list[tuple[Any, ...]]]()
    engine = engine_on(tmp_path, "abc", query, session)

    def boundary(batch: int, done: bool) -> None:
        if batch != 2 or done:
            return
        course = engine._course
        assert course is not None
        request, running, random = course.asked.request, course.epoch.heading, Random(0)
        orders.append(_order(running, "c"))
        while True:
            wanted = random_plan(request.queries, Statistics(), request.options, random)
            fitting = probing_only(running, wanted)
            if fitting is not None and _order(fitting, "c") != orders[0]:
                break
        orders.append(_order(fitting, "c"))
        results.append(found(tmp_path))
        course.batches.adapter._forced = forced(running, fitting)

    session.boundary = boundary
    engine.run_available()
    assert engine._course is not None
    assert _order(engine._course.epoch.heading, "c") == orders[1] != orders[0]
    before = list(product(range(2), repeat=3))
    assert results == [before]  # IR1, all of whose members had arrived
    assert found(tmp_path) == list(product(range(4), repeat=3))  # R
