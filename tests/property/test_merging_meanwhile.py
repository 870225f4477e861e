"""Buckets that are being merged for the queries of before do not lose what a query needs that has come meanwhile."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

import plait
from plait.runtime.batch.compacting import Compactor
from plait.runtime.batch.stream import Run
from plait.sql import load_script
from tests.property import test_changing_queries as changing
from tests.property.standin import frames
from tests.property.standin.session import Session

SCRIPT = changing.SCRIPT.replace(", keep 'all'", "").replace(f"INTERVAL {changing.WINDOW_S} SECONDS", "UNBOUNDED")
JOIN = "b.k AS other, b.v AS right FROM a JOIN b ON a.k = b.k"
FIRST = f"CREATE QUERY first INTO noop AS SELECT a.k, a.v, {JOIN};"
DROPPED_AT, BACK_AT = 5, 6


class Life:
    """Drops a query and adds another like it, while what began to be merged in between is not done."""

    def __init__(self, folder: Path, select: str, *, merges: bool) -> None:
        self.session, self.select, self.merges = Session(), select, merges
        self.engine = plait.Engine(self.session, checkpoint=str(folder / "checkpoint"), parallelism=1)  # type: ignore[arg-type]
        self.engine.load(load_script((SCRIPT + FIRST).format(folder)))
        self.engine.query("gone", select, sink=plait.sinks.noop())
        self.session.boundary = self.boundary
        self.seen: list[int] = []
        self.may_merge, self.merged = threading.Event(), 0

    def boundary(self, batch: int, done: bool) -> None:
        if done or batch in self.seen:
            return
        self.seen.append(batch)
        run, course = self.engine._run, self.engine._course
        assert run is not None
        assert course is not None
        if batch == DROPPED_AT:
            self.engine.drop("gone")
            run.settle()
        if batch == BACK_AT:
            self.engine.query("back", self.select, sink=plait.sinks.memory())
            run.settle()
            self.may_merge.set()
            merging = course.batches.processor._compactor._running
            if self.merges:
                assert merging is not None
                self.merged = len(merging.result())

    def found(self, patch: pytest.MonkeyPatch) -> Counter[tuple[Any, ...]]:
        """Run all batches; return what the query has found that came back."""
        frames.install(patch.setattr)
        patch.setattr(Run, "_attend", lambda run: None)
        start, merge = Compactor.start, Compactor._merge

        def started(compactor: Compactor, *given: Any) -> None:
            if self.merges and self.seen[-1] == DROPPED_AT:
                start(compactor, *given)

        def merging(compactor: Compactor, *given: Any) -> Any:
            assert self.may_merge.wait(30)
            return merge(compactor, *given)

        patch.setattr(Compactor, "start", started)
        patch.setattr(Compactor, "_merge", merging)
        self.engine.run_available()
        return Counter(tuple(row.values()) for row in self.engine.results("back").to_pylist())


@pytest.mark.parametrize("condition", ["", " WHERE md5(CAST(a.v AS STRING)) < '8'"], ids=["column", "selection"])
def test_what_is_merged_while_a_query_comes_loses_nothing_that_it_needs(tmp_path: Path, condition: str) -> None:
    found = []
    for merges in (True, False):
        folder = tmp_path / str(merges)
        folder.mkdir()
        changing.arriving(folder, Random(7))
        life = Life(folder, f"SELECT a.k, a.v, a.j, {JOIN}{condition}", merges=merges)
        with pytest.MonkeyPatch.context() as patch:
            found.append(life.found(patch))
        assert (life.merged > 0) == merges
    assert found[0] == found[1]
    assert found[0]
