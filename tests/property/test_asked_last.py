"""What is asked of an engine in the moment in which its input ends, on the stand-in for Spark.

What is asked for before the end takes effect before it, whoever plans for it or not: it comes to the same as if there
had been a boundary between two batches. What comes later comes too late, and says so.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

import plait
from plait.errors import OptionError
from plait.runtime.batch import microbatch
from plait.runtime.batch.stream import Run
from plait.runtime.declarations import QueryHandle
from tests.property.standin import frames
from tests.property.standin.session import Session
from tests.property.undecided import QUERIES, Place, Results

HALF = tuple(QUERIES)[::2]
OTHERS = tuple(name for name in QUERIES if name not in HALF)
Ask = Callable[[plait.Engine], object]


@pytest.fixture(autouse=True)
def _standin(monkeypatch: pytest.MonkeyPatch) -> None:
    frames.install(monkeypatch.setattr)
    monkeypatch.setattr(Run, "_attend", lambda self: None)  # nobody plans for what is asked for, or takes it up


def ran(
    folder: Path, ask: Ask, *, settles: bool = False, close: bool = True, queries: tuple[str, ...] = tuple(QUERIES)
) -> Place:
    """Run three batches with these queries, and ask for something once all has been read; `settles`: there is a
    boundary after that.
    """
    place, asked = Place(folder, random.Random(5)), list[bool]()
    folder.mkdir()
    for _ in range(3):
        place.arrive()

    def boundary(batch: int, done: bool) -> None:
        if not done or asked:
            return
        asked.append(True)
        ask(engine)
        if settles:
            assert engine._run is not None
            engine._run.settle()

    engine = place.engine(Session(boundary), queries)
    engine.run_available(close=close)
    assert asked
    return place


def dropping(*names: str) -> Ask:
    def drop(engine: plait.Engine) -> None:
        for name in names:
            engine.drop(name)

    return drop


def adding(folder: Path, *names: str) -> Ask:
    def add(engine: plait.Engine) -> list[QueryHandle]:
        sinks = {name: plait.sinks.parquet(str(folder / "out" / name)) for name in names}
        return [engine.query(name, QUERIES[name], sink=sinks[name]) for name in names]

    return add


def of(results: Results, names: tuple[str, ...]) -> Results:
    return {name: results[name] for name in names}


@pytest.mark.parametrize("close", [True, False])
@pytest.mark.parametrize("gone", [HALF, tuple(QUERIES)])
def test_a_query_that_is_dropped_when_all_has_been_read_gets_nothing_of_the_end(
    tmp_path: Path, gone: tuple[str, ...], close: bool
) -> None:
    found = ran(tmp_path / "last", dropping(*gone), close=close).found()
    assert found == ran(tmp_path / "settled", dropping(*gone), settles=True, close=close).found()
    assert of(found, gone) == of(ran(tmp_path / "open", dropping(), close=False).found(), gone)


def test_those_that_are_left_get_all_that_the_end_decides(tmp_path: Path) -> None:
    ended = ran(tmp_path / "last", dropping(*HALF))
    assert of(ended.found(), OTHERS) == of(ended.wanted(), OTHERS)


def test_a_query_that_is_added_when_all_has_been_read_gets_what_the_end_decides(tmp_path: Path) -> None:
    found = {
        kind: ran(tmp_path / kind, adding(tmp_path / kind, *OTHERS), settles=kind == "settled", queries=HALF).found()
        for kind in ("last", "settled")
    }
    assert found["last"] == found["settled"]
    assert any(found["last"][name] for name in OTHERS)


def test_one_that_is_replaced_then_is_the_new_one_at_the_end(tmp_path: Path) -> None:
    handles = list[QueryHandle]()

    def replace(engine: plait.Engine) -> None:
        handles.append(engine.replace("never", f"{QUERIES['never']} WHERE a.id < 0", sink=plait.sinks.memory()))

    ran(tmp_path / "last", replace)
    assert handles[0].wait_active(0)
    assert not len(handles[0].results())


@pytest.mark.parametrize("close", [True, False])
def test_the_handle_of_a_query_that_is_added_then_says_which_batch_answers_it(tmp_path: Path, close: bool) -> None:
    handles = list[QueryHandle]()
    ran(
        tmp_path / "last",
        lambda engine: handles.append(engine.query("more", QUERIES["once"], sink=plait.sinks.memory())),
        close=close,
    )
    assert handles[0].wait_active()
    assert handles[0].active_since == 1


def at_the_end(monkeypatch: pytest.MonkeyPatch, ask: Callable[[], object]) -> None:
    """Let something be asked for within the last batch: one comes before it."""
    seen = list[int]()

    def reach(point: str) -> None:
        if point == "closed":
            seen.append(len(seen))
            if len(seen) == 2:
                ask()

    monkeypatch.setattr(microbatch, "reach", reach)


def run_to_the_end(
    folder: Path, monkeypatch: pytest.MonkeyPatch, ask: Callable[[plait.Engine], list[QueryHandle]]
) -> tuple[Place, plait.Engine, list[QueryHandle]]:
    """Run three batches to the end of the input; within the last one something is asked for."""
    place, handles = Place(folder, random.Random(5)), list[QueryHandle]()
    for _ in range(3):
        place.arrive()
    engine = place.engine()
    at_the_end(monkeypatch, lambda: handles.extend(ask(engine)))
    engine.run_available(close=True)
    return place, engine, handles


def test_a_query_that_comes_within_the_last_batch_is_refused_since_none_will_answer_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, engine, (handle,) = run_to_the_end(
        tmp_path, monkeypatch, lambda engine: [engine.query("more", QUERIES["once"], sink=plait.sinks.memory())]
    )
    with pytest.raises(OptionError, match="had ended before query 'more' could take part"):
        handle.wait_active()
    assert sorted(engine.queries()) == sorted(QUERIES)
    assert place.found() == place.wanted()


def test_a_query_and_one_that_reads_its_groups_are_each_refused_by_name_within_the_last_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {
        "groups": "SELECT window.end AS until, count(*) AS n FROM b GROUP BY window(b.ts, '5 seconds')",
        "reader": "SELECT g.n FROM groups g WHERE g.n > 0",
    }
    _, _, handles = run_to_the_end(
        tmp_path,
        monkeypatch,
        lambda engine: [engine.query(name, sql, sink=plait.sinks.memory()) for name, sql in asked.items()],
    )
    for name, handle in zip(asked, handles, strict=True):
        with pytest.raises(OptionError, match=f"had ended before query '{name}' could take part"):
            handle.wait_active()


def test_a_query_that_is_to_be_replaced_within_the_last_batch_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, engine, (handle,) = run_to_the_end(
        tmp_path, monkeypatch, lambda engine: [engine.replace("never", QUERIES["once"], sink=plait.sinks.memory())]
    )
    with pytest.raises(OptionError, match="had ended before query 'never' could take part"):
        handle.wait_active()
    assert engine.queries()["never"].text == QUERIES["never"]
    assert place.found() == place.wanted()


def test_whoever_waits_for_what_comes_after_a_run_is_told_that_no_batch_answers_it_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path, random.Random(5))
    place.arrive()
    engine = place.engine(queries=("never",))
    engine.run_available()
    handle = engine.query("once", QUERIES["once"], sink=plait.sinks.memory())
    assert not handle.wait_active()
    place.arrive()
    engine.run_available()
    assert handle.wait_active()
