"""Queries that are dropped while much of them is undecided, on the stand-in for Spark."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

import plait
from tests.property.standin import frames
from tests.property.standin.session import Session
from tests.property.undecided import QUERIES, Place, Results


@pytest.fixture(autouse=True)
def _standin(monkeypatch: pytest.MonkeyPatch) -> None:
    frames.install(monkeypatch.setattr)


def take_up(engine: plait.Engine) -> None:
    """Wait until what was asked for is taken up, or the streaming query is about to be started anew for it: another
    thread may be planning a part of it.
    """
    run, until = engine._run, time.monotonic() + 30
    assert run is not None
    while run._asking.waits() and not run._is_to_end:
        assert time.monotonic() < until
        run.settle()
        time.sleep(0.01)


def dropped_on_the_way(folder: Path, *, close: bool, left: tuple[str, ...] = ()) -> Place:
    """Run three batches, drop all queries but those `left`, and let the run end."""
    place, made = Place(folder, random.Random(4)), list[plait.Engine]()
    folder.mkdir()
    for _ in range(3):
        place.arrive()

    def boundary(batch: int, done: bool) -> None:
        if done and made:
            engine = made.pop()
            for name in QUERIES:
                if name not in left:
                    engine.drop(name)
            take_up(engine)

    made.append(place.engine(Session(boundary)))
    made[0].run_available(close=close)
    assert not made, "the queries were dropped"
    return place


def of(results: Results, names: tuple[str, ...]) -> Results:
    return {name: results[name] for name in names}


def test_an_input_that_ends_after_all_queries_were_dropped_decides_nothing_for_them(tmp_path: Path) -> None:
    ended = dropped_on_the_way(tmp_path / "ended", close=True)
    assert ended.found() == dropped_on_the_way(tmp_path / "open", close=False).found()


def test_an_input_that_ends_decides_all_for_the_queries_that_are_left(tmp_path: Path) -> None:
    left = ("alone", "tally")
    gone = tuple(name for name in QUERIES if name not in left)
    ended = dropped_on_the_way(tmp_path / "ended", close=True, left=left)
    assert of(ended.found(), left) == of(ended.wanted(), left)
    assert of(ended.found(), gone) == of(dropped_on_the_way(tmp_path / "open", close=False).found(), gone)
