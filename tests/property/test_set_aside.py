"""Of many queries the few that fail are set aside, each by itself and for its own reason; the others miss nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import plait
from plait.sql import load_script
from tests.property.standin.session import Session
from tests.property.test_undelivered import JOIN, SCRIPT, Place, place

__all__ = ["place"]

COUNT = 50
BLOCKED, REFUSING, SHY, BROKEN, UNWRITABLE = "q03", "q11", "q17", "q23", "q31"
NAMES = [f"q{number:02}" for number in range(COUNT)]
TOO_LARGE = "SELECT b.v * 9223372036854775807 AS v FROM a JOIN b ON a.k = b.k"


class Sinks:
    """Where results of each query go: what functions took by query, and whether those that can fail do."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.taken, self.fail, self.was_asked = folder, dict[str, list[int]](), True, False

    def of(self, name: str) -> plait.sinks.Sink:
        kinds: tuple[Callable[[], plait.sinks.Sink], ...] = (
            plait.sinks.memory,
            lambda: plait.sinks.parquet(str(self.folder / name)),
            lambda: plait.sinks.foreach_arrow(self._taking(name)),
        )
        if name in (BLOCKED, UNWRITABLE):
            return kinds[1]()
        return kinds[2]() if name in (REFUSING, SHY, BROKEN) else kinds[int(name[1:]) % 3]()

    def _taking(self, name: str) -> Callable[[pa.Table, int], None]:
        def take(rows: pa.Table, batch: int) -> None:
            if self.fail and name == REFUSING:
                raise ValueError("never today")
            if name == SHY and not self.was_asked:
                self.was_asked = True
                raise OSError("come back later")
            self.taken.setdefault(name, []).extend(rows["v"].to_pylist())

        return take

    def found(self, engine: plait.Engine, name: str) -> list[int]:
        """Return what has come of a query."""
        if name in self.taken:
            return sorted(self.taken[name])
        if (self.folder / name).is_dir():
            return sorted(
                v for file in (self.folder / name).glob("*.parquet") for v in pq.read_table(file)["v"].to_pylist()
            )
        if name in (BLOCKED, REFUSING, SHY, BROKEN, UNWRITABLE):
            return []
        return sorted(engine.results(name)["v"].to_pylist())


def started(place: Place, sinks: Sinks) -> plait.Engine:
    engine = plait.Engine(Session(), checkpoint=str(place.folder / "checkpoint"))  # type: ignore[arg-type]
    engine.load(load_script(SCRIPT.format(place.folder)))
    for name in NAMES:
        engine.query(name, TOO_LARGE if name == BROKEN else JOIN, sink=sinks.of(name))
    return engine


def failing(engine: plait.Engine) -> dict[str, Any]:
    found: dict[str, Any] = engine.status()["totals"]["failing"]
    return found


def test_queries_that_fail_are_set_aside_alone_and_tried_again(place: Place) -> None:
    sinks = Sinks(place.folder)
    for name in (BLOCKED, UNWRITABLE):
        (place.folder / name).write_text("in the way")
    place.arrive(1, 2)
    place.arrive(3)
    engine = started(place, sinks)
    engine.run_available()
    assert f"the part of the plan that {SHY} needs;" in engine.explain(queries=SHY)
    told = failing(engine)
    assert sorted(told) == [BLOCKED, REFUSING, SHY, BROKEN, UNWRITABLE]
    assert "never today" in told[REFUSING]
    assert "9223372036854775807" in told[BROKEN]
    assert BLOCKED in told[BLOCKED]
    assert UNWRITABLE in told[UNWRITABLE]
    assert "come back later" in told[SHY]
    for name in NAMES:
        assert sinks.found(engine, name) == ([] if name in told else [1, 2, 3]), name
    assert dict(engine.summary().queries) == {**dict.fromkeys(NAMES, 3), "other": 3}

    sinks.fail = False
    (place.folder / BLOCKED).unlink()
    place.arrive(4)
    again = started(place, sinks)
    again.run_available()
    assert sorted(failing(again)) == [BROKEN, UNWRITABLE]
    assert [sinks.found(again, name) for name in (BLOCKED, REFUSING, SHY)] == [[1, 2, 3, 4]] * 3
