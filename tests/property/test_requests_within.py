"""What gets its plan while a batch stores its rows is answered by that batch, where these rows serve it as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import plait
from plait.errors import PlaitError
from plait.runtime.batch import microbatch
from plait.runtime.batch.events import BatchEvent
from plait.runtime.engine import Engine
from plait.sql import load_script
from tests.property.standin.session import Session
from tests.property.test_requests import FIRST, LARGE, NOTHING, SCRIPT, starts
from tests.property.test_undelivered import JOIN, Place, place

__all__ = ["place", "starts"]

NEEDED = SCRIPT.replace(", keep 'all'", "")


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], object]]:
    """What is called when a batch comes to a point, by its name."""
    told: dict[str, Callable[[], object]] = {}
    monkeypatch.setattr(microbatch, "reach", lambda point: told.get(point, lambda: None)())
    return told


def engine_on(
    place: Place, script: str = SCRIPT + FIRST, listener: Callable[[BatchEvent], None] | None = None
) -> Engine:
    folder = str(place.folder / "checkpoint")
    engine = plait.Engine(Session(), checkpoint=folder, listener=listener)  # type: ignore[arg-type]
    engine.load(load_script(script.format(place.folder)))
    return engine


class Asking:
    """Asks an engine for something when it has stored the rows of batch `at`, and plans for it if it `plans`."""

    def __init__(self, engine: Engine, ask: Callable[[Engine], Any], at: int, *, plans: bool = True) -> None:
        self.engine, self.ask, self.at, self.plans = engine, ask, at, plans
        self.batch, self.handle = -1, None

    def __call__(self) -> None:
        self.batch += 1
        if self.batch == self.at:
            self.handle = self.ask(self.engine)
            if self.plans:
                assert self.engine._plan_ahead()


def large(engine: Engine) -> Any:
    return engine.query("large", LARGE, sink=plait.sinks.memory())


@pytest.mark.parametrize(("plans", "first"), [(True, [4, 5, 6, 7]), (False, [6, 7])])
def test_a_query_is_answered_by_the_batch_that_has_stored_its_rows_when_the_plan_is_there(
    place: Place, starts: list[int], hooks: dict[str, Any], plans: bool, first: list[int]
) -> None:
    for values in ((1, 2), (4, 5), (6, 7)):
        place.arrive(*values)
    engine = engine_on(place)
    asking = hooks["stored"] = Asking(engine, large, 1, plans=plans)
    engine.run_available()
    assert starts == [0]
    assert asking.handle.active_since == (1 if plans else 2)
    assert sorted(engine.results("large")["left"].to_pylist()) == first
    assert len(engine.results("first")) == 6


def test_the_event_of_a_batch_within_which_a_query_is_taken_up_tells_of_the_change_it_began_with(
    place: Place, starts: list[int], hooks: dict[str, Any]
) -> None:
    for values in ((1, 2), (4, 5), (6, 7)):
        place.arrive(*values)
    events = list[BatchEvent]()
    engine = engine_on(place, listener=events.append)

    def ask(engine: Engine) -> Any:
        assert engine._course is not None
        engine._course.batches.processor.tell(NOTHING)
        return large(engine)

    hooks["stored"] = Asking(engine, ask, 1)
    engine.run_available()
    assert [event.change for event in events] == [None, NOTHING, None]
    assert len({event.epoch for event in events}) == 2


def test_rows_of_that_batch_find_what_was_stored_before(place: Place, starts: list[int], hooks: dict[str, Any]) -> None:
    place.arrive(5, 6)
    place.arrive(9)
    engine = engine_on(place)
    select = "SELECT a.v AS left, b.v AS right FROM a JOIN b ON a.k > b.k WHERE b.v > 5"
    hooks["stored"] = Asking(engine, lambda engine: engine.query("above", select, sink=plait.sinks.memory()), 1)
    engine.run_available()
    assert engine.results("above").to_pylist() == [{"left": 9, "right": 6}]


def test_a_query_that_begins_within_a_batch_has_the_results_of_the_past_if_it_is_to_have_them(
    place: Place, starts: list[int], hooks: dict[str, Any]
) -> None:
    for values in ((1, 2), (4, 5), (6,)):
        place.arrive(*values)
    engine = engine_on(place, "SET plait.backfill = true;" + SCRIPT + FIRST)
    asking = hooks["stored"] = Asking(engine, lambda it: it.query("more", JOIN, sink=plait.sinks.memory()), 1)
    engine.run_available()
    assert asking.handle.active_since == 1
    assert sorted(engine.results("more")["v"].to_pylist()) == [1, 2, 4, 5, 6]


@pytest.mark.parametrize(("condition", "since"), [("a.v > 3 AND a.v > 2", 1), ("a.v > 1", 2)])
def test_a_query_that_wants_rows_which_that_batch_has_not_stored_begins_with_the_next(
    place: Place, starts: list[int], hooks: dict[str, Any], condition: str, since: int
) -> None:
    for values in ((2, 4), (2, 5), (2, 6)):
        place.arrive(*values)
    join = "SELECT a.k, a.v FROM a JOIN b ON a.k = b.k WHERE"
    engine = engine_on(place, NEEDED + f"CREATE QUERY first INTO memory AS {join} a.v > 2;")
    select = f"{join} {condition}"
    asking = hooks["stored"] = Asking(engine, lambda it: it.query("more", select, sink=plait.sinks.memory()), 1)
    engine.run_available()
    assert asking.handle.active_since == since


def test_a_query_that_is_dropped_within_a_batch_has_no_results_of_it(
    place: Place, starts: list[int], hooks: dict[str, Any]
) -> None:
    for values in ((1, 2), (3, 4), (5,)):
        place.arrive(*values)
    found: list[dict[str, int]] = []
    script = SCRIPT + FIRST + FIRST.replace("first", "other")
    engine = engine_on(place, script, listener=lambda event: found.append(dict(event.results)))
    hooks["stored"] = Asking(engine, lambda engine: engine.drop("first"), 1)
    engine.run_available()
    assert found == [{"first": 2, "other": 2}, {"other": 2}, {"other": 1}]


def test_rows_of_before_a_query_was_dropped_are_found_beside_those_that_are_stored_with_less(
    place: Place, starts: list[int], hooks: dict[str, Any]
) -> None:
    for _ in range(7):
        place.arrive(1, 2)
    narrow = f"CREATE QUERY narrow INTO memory AS {JOIN.replace('a.k, ', '')};"
    wide = "CREATE QUERY wide INTO noop AS SELECT a.k, b.k AS other, a.v, b.v AS right FROM a JOIN b ON a.k = b.k;"
    engine = engine_on(place, NEEDED + narrow + wide)
    hooks["stored"] = Asking(engine, lambda engine: engine.drop("wide"), 3)
    engine.run_available()
    assert starts == [0]
    assert len(engine.results("narrow")) == 2 * 7 * 7


@pytest.mark.parametrize("point", ["probed", "closed", "delivered", "committed", "published"])
def test_a_run_that_dies_after_a_query_was_taken_up_within_a_batch_goes_on_with_each_result_once(
    place: Place, starts: list[int], hooks: dict[str, Any], point: str
) -> None:
    for values in ((1, 2), (4, 5), (6, 7)):
        place.arrive(*values)
    query = f"CREATE QUERY shy INTO parquet OPTIONS (path '{place.folder}/shy') AS {JOIN} AND a.v > 1;"
    engine = engine_on(place)
    asking = Asking(engine, lambda it: it.load(load_script(SCRIPT.format(place.folder) + query)), 1)

    def die() -> None:
        if asking.batch == 1:
            raise PlaitError("out of power")

    hooks |= {"stored": asking, point: die}
    with pytest.raises(PlaitError, match="out of power"):
        engine.run_available()
    hooks.clear()
    engine_on(place, SCRIPT + FIRST + query).run_available()
    assert place.delivered() == [4, 5, 6, 7]


def test_a_batch_that_cannot_take_up_a_query_within_leaves_it_to_be_refused_alone(
    place: Place, starts: list[int], hooks: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for values in ((1, 2), (4, 5), (6, 7)):
        place.arrive(*values)
    engine = engine_on(place)
    asking = hooks["stored"] = Asking(engine, large, 1)
    monkeypatch.setattr("plait.runtime.course.go_on", _failing)
    engine.run_available()
    with pytest.raises(PlaitError, match="no room"):
        asking.handle.wait_active()
    assert len(engine.results("first")) == 6


def _failing(*told: object, **more: object) -> object:
    raise PlaitError("no room")
