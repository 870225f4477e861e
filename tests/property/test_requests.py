"""What is asked of an engine that runs: it takes effect together between two batches, without another start where
nothing new is read, and what cannot be is refused alone.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

import plait
from plait.adapt.decision import Change
from plait.adapt.planning import PlanRequest
from plait.errors import PlaitError
from plait.optimizer import planner
from plait.optimizer.incremental import former
from plait.optimizer.incremental.former import Former, QueryChange
from plait.plan.model import Plan
from plait.query.model import Query
from plait.runtime.batch.stream import Run
from plait.runtime.engine import Engine
from plait.runtime.outputs.binding import Binding
from plait.sql import load_script
from tests.property.standin.session import Session
from tests.property.test_undelivered import JOIN, SHY, Place, place

__all__ = ["place"]

KEEP = "OPTIONS (path '{{0}}/{0}', maxFilesPerTrigger '1', keep 'all') TIMESTAMP BY ts WINDOW INTERVAL 100 SECONDS;"
SCRIPT = "".join(
    f"CREATE STREAM {name} (ts TIMESTAMP, k BIGINT, v BIGINT) USING parquet {KEEP.format(name)}" for name in "ab"
)
FIRST = f"CREATE QUERY first INTO memory AS {JOIN};"
NOTHING = Change(reason="cheaper", changes=(), cost_before=None, cost_after=None)
LARGE = "SELECT a.v AS left, b.v AS right FROM a JOIN b ON a.v = coalesce(b.v, 0) WHERE a.v > 3 AND b.k < 1100"


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with every start of the streaming query; requests are settled by the tests alone."""
    seen: list[int] = []
    start = Engine._start_streaming

    def counted(self: Engine, run: Run, trigger: str | None) -> Any:
        seen.append(len(seen))
        return start(self, run, trigger)

    monkeypatch.setattr(Engine, "_start_streaming", counted)
    monkeypatch.setattr(Run, "_attend", lambda self: None)
    return seen


def run(
    place: Place, change: Callable[[Engine], object], *at: int, script: str = SCRIPT + FIRST, is_shy: bool = False
) -> Engine:
    """Run the script on all that is there, and change the engine before each of the batches `at`. `is_shy`: a file
    lies where the folder of query `shy` should be.
    """
    session = Session()
    engine = plait.Engine(session, checkpoint=str(place.folder / "checkpoint"))  # type: ignore[arg-type]
    engine.load(load_script(script.format(place.folder)))

    def boundary(batch: int, done: bool) -> None:
        if batch in at and not done and batch not in changed:
            changed.add(batch)
            change(engine)
            assert engine._run is not None
            engine._run.settle()

    changed = set[int]()
    session.boundary = boundary
    if is_shy:
        (place.folder / "shy").write_text("in the way")
    engine.run_available()
    return engine


def test_a_query_with_selections_and_keys_of_its_own_begins_without_another_start(
    place: Place, starts: list[int]
) -> None:
    for values in ((1, 2, 3), (4, 5), (6, 7)):
        place.arrive(*values)
    handles = []
    engine = run(place, lambda engine: handles.append(engine.query("large", LARGE, sink=plait.sinks.memory())), 1)
    assert starts == [0]
    assert handles[0].active_since == 1
    assert handles[0].wait_active()
    # What had all arrived before is not repeated.
    expected = [{"left": v, "right": v} for v in (4, 5, 6, 7)]
    assert engine.results("large").sort_by("left").to_pylist() == expected
    assert len(engine.results("first")) == 7


def test_a_query_that_joins_on_texts_and_decimals_begins_without_another_start(place: Place, starts: list[int]) -> None:
    for values in ((1, 2, 3), (4, 5)):
        place.arrive(*values)
    on = "CAST(a.v AS STRING) = CAST(b.v AS STRING) AND CAST(a.k AS DECIMAL(30, 2)) = b.k"
    select = f"SELECT a.v AS left, b.v AS right FROM a JOIN b ON {on} WHERE b.v > 1"
    engine = run(place, lambda engine: engine.query("texts", select, sink=plait.sinks.memory()), 1)
    assert starts == [0]
    assert engine.results("texts").sort_by("left").to_pylist() == [{"left": v, "right": v} for v in (4, 5)]


def test_new_results_find_rows_that_were_stored_before_the_query_was_asked_for(place: Place, starts: list[int]) -> None:
    place.arrive(5, 6)
    place.arrive(9)
    select = "SELECT a.v AS left, b.v AS right FROM a JOIN b ON a.k > b.k WHERE b.v > 5"
    engine = run(place, lambda engine: engine.query("above", select, sink=plait.sinks.memory()), 1)
    assert starts == [0]
    assert engine.results("above").to_pylist() == [{"left": 9, "right": 6}]


def test_stored_rows_are_not_written_again_for_a_query_that_can_compute_what_they_lack(
    place: Place, starts: list[int]
) -> None:
    for values in ((5, 6), (7, 8), (9,)):
        place.arrive(*values)
    stored: list[list[str]] = []

    def note(engine: Engine) -> None:
        assert engine._course is not None
        before = engine._course.batches.processor.before
        assert before is not None
        stored.append(sorted(bucket.path for bucket in before.buckets))

    def change(engine: Engine) -> None:
        note(engine)
        engine.query("large", f"{LARGE} AND b.v > 5", sink=plait.sinks.memory())
        engine._run.settle()  # type: ignore[union-attr]
        note(engine)

    engine = run(place, change, 2)
    assert starts == [0]
    assert stored[0] == stored[1]
    assert engine.results("large").to_pylist() == [{"left": 9, "right": 9}]


def test_all_that_is_asked_for_until_a_batch_begins_takes_effect_with_it(place: Place, starts: list[int]) -> None:
    for value in range(4):
        place.arrive(value)

    def change(engine: Engine) -> None:
        for number in range(5):
            handles.append(engine.query(f"q{number}", LARGE, sink=plait.sinks.memory()))
        engine.drop("q3")
        engine.drop("first")

    handles: list[plait.runtime.declarations.QueryHandle] = []
    engine = run(place, change, 2)
    assert starts == [0]
    assert [handle.active_since for handle in handles] == [2, 2, 2, None, 2]
    assert engine.status()["queries"] == ["q0", "q1", "q2", "q4"]
    assert engine._course is not None
    assert len(engine._course.epoch.plan.stores) == 2


def test_a_query_that_reads_what_is_not_read_yet_takes_another_start(place: Place, starts: list[int]) -> None:
    for values in ((1, 2), (3, 4)):
        place.arrive(*values)
    needed = (SCRIPT + FIRST).replace(", keep 'all'", "")
    select = "SELECT a.k FROM a JOIN b ON a.ts = b.ts AND a.k = b.k"
    engine = run(place, lambda engine: engine.query("late", select, sink=plait.sinks.memory()), 1, script=needed)
    assert starts == [0, 1]
    assert engine.results("late").sort_by("k").to_pylist() == [{"k": 1003}, {"k": 1004}]


def test_a_query_that_cannot_be_planned_is_refused_alone(
    place: Place, starts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = PlanRequest.plan

    def planned(self: PlanRequest, *told: Any) -> Any:
        if any(query.name == "bad" for query in self.queries):
            raise PlaitError("no way to plan this")
        return plan(self, *told)

    monkeypatch.setattr(PlanRequest, "plan", planned)
    for value in range(3):
        place.arrive(value)
    handles = {}

    def change(engine: Engine) -> None:
        for name in ("good", "bad", "better"):
            handles[name] = engine.query(name, LARGE, sink=plait.sinks.memory())

    engine = run(place, change, 1)
    assert starts == [0]
    assert (handles["good"].active_since, handles["better"].active_since) == (1, 1)
    with pytest.raises(PlaitError, match="no way to plan this"):
        handles["bad"].wait_active()
    assert engine.status()["queries"] == ["better", "first", "good"]
    assert len(engine.results("first")) == 3


def test_a_query_is_replaced_between_two_batches_and_a_refused_one_leaves_the_old(
    place: Place, starts: list[int]
) -> None:
    for values in ((1, 2), (3, 4), (5,)):
        place.arrive(*values)

    def change(engine: Engine) -> None:
        with pytest.raises(PlaitError, match="nowhere"):
            engine.replace("first", "SELECT a.nowhere FROM a JOIN b ON a.k = b.k", sink=plait.sinks.memory())
        engine.replace("first", LARGE, sink=plait.sinks.memory())

    engine = run(place, change, 1)
    assert starts == [0]
    assert engine.results("first").sort_by("left").to_pylist() == [{"left": v, "right": v} for v in (4, 5)]


def test_what_was_asked_for_is_still_there_after_the_next_start(place: Place, starts: list[int]) -> None:
    place.arrive(1, 2)
    place.arrive(3)
    large = f"CREATE QUERY large INTO parquet OPTIONS (path '{place.folder}/large') AS {LARGE};"
    run(place, lambda engine: engine.load(load_script(SCRIPT.format(place.folder) + large)), 1)
    place.arrive(4)
    engine = run(place, lambda engine: None, -1, script=SCRIPT + FIRST + large)
    assert starts == [0, 1]
    assert dict(engine.summary().queries)["large"] == 1


def test_a_replacement_that_cannot_be_planned_is_refused_and_leaves_the_old_one_with_what_waits_for_its_sink(
    place: Place, starts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = PlanRequest.plan

    def planned(self: PlanRequest, *told: Any) -> Any:
        if any("1100" in query.text for query in self.queries):
            raise PlaitError("no way to plan this")
        return plan(self, *told)

    monkeypatch.setattr(PlanRequest, "plan", planned)
    for value in (1, 2, 3):
        place.arrive(value)
    handles, shy = {}, place.folder / "shy"

    def change(engine: Engine) -> None:
        handles["shy"] = engine.replace("shy", LARGE, sink=plait.sinks.parquet(str(shy)))
        handles["good"] = engine.query("good", JOIN, sink=plait.sinks.memory())
        shy.unlink()

    engine = run(place, change, 1, script=SCRIPT + FIRST + SHY, is_shy=True)
    assert starts == [0]
    with pytest.raises(PlaitError, match="no way to plan this"):
        handles["shy"].wait_active()
    assert handles["good"].active_since == 1
    assert len(engine.results("first")) == 3
    assert (engine.status()["queries"], place.delivered()) == (["first", "good", "shy"], [1, 2, 3])


def test_each_drop_takes_along_what_waits_for_the_sink_of_the_query_of_that_time(
    place: Place, starts: list[int]
) -> None:
    for value in (1, 2, 3):
        place.arrive(value)
    shy, values = place.folder / "shy", iter((1, 2))

    def change(engine: Engine) -> None:
        engine.replace("shy", f"{JOIN} AND a.v > {next(values)}", sink=plait.sinks.parquet(str(shy)))

    engine = run(place, change, 1, 2, script=SCRIPT + SHY, is_shy=True)
    assert starts == [0]
    shy.unlink()
    engine.run_available()
    assert place.delivered() == [3]


def test_a_query_that_is_dropped_before_it_takes_effect_says_so_to_who_waits_for_it(
    place: Place, starts: list[int]
) -> None:
    for value in (1, 2):
        place.arrive(value)
    handles = []

    def change(engine: Engine) -> None:
        handles.append(engine.query("brief", LARGE, sink=plait.sinks.memory()))
        engine.drop("brief")

    run(place, change, 1)
    with pytest.raises(PlaitError, match="'brief' was dropped before it took effect"):
        handles[0].wait_active(5)


def test_results_in_memory_live_as_long_as_somebody_holds_their_query(place: Place, starts: list[int]) -> None:
    for values in ((1, 2, 3), (4, 5), (6,)):
        place.arrive(*values)
    handles = []

    def change(engine: Engine) -> None:
        if not handles:
            handles.append(engine.query("fleeting", JOIN, sink=plait.sinks.memory()))
            return
        engine.drop("fleeting")
        handles.append(engine.query("fleeting", JOIN, sink=plait.sinks.memory()))

    engine = run(place, change, 1, 2)
    assert [sorted(each.results()["v"].to_pylist()) for each in handles] == [[4, 5], [6]]
    assert engine.results("fleeting")["v"].to_pylist() == [6]
    engine.drop("fleeting")
    handles.clear()
    engine.run_available()
    gc.collect()
    held = [each for each in gc.get_objects() if isinstance(each, Binding)]
    assert [each.query.name for each in held if each.query.name == "fleeting"] == []


def test_a_query_may_be_dropped_while_it_is_being_taken_up(
    place: Place, starts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for value in (1, 2, 3):
        place.arrive(value)
    plan, engines = PlanRequest.plan, []

    def planned(self: PlanRequest, *told: Any) -> Any:
        if any(query.name == "brief" for query in self.queries) and engines:
            engines.pop().drop("brief")
        return plan(self, *told)

    monkeypatch.setattr(PlanRequest, "plan", planned)

    def change(engine: Engine) -> None:
        engine.query("brief", LARGE, sink=plait.sinks.memory())
        engines.append(engine)

    engine = run(place, change, 1)
    assert starts == [0]
    assert (engine.status()["queries"], len(engine.results("first"))) == (["first"], 3)


def test_a_second_run_that_is_refused_takes_nothing_from_the_one_that_goes_on(
    place: Place, starts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plait.runtime.engine.sole_run", lambda *told: nullcontext())  # as for a run elsewhere
    for values in ((1, 2), (4, 5), (6, 7)):
        place.arrive(*values)
    steps = iter((lambda engine: engine.query("large", LARGE, sink=plait.sinks.memory()), lambda engine: second()))

    def second() -> None:
        other = plait.Engine(Session(), checkpoint=str(place.folder / "checkpoint"), strategy="independent")  # type: ignore[arg-type]
        other.load(load_script((SCRIPT + FIRST).format(place.folder)))
        with pytest.raises(PlaitError, match="strategy 'independent' has a store for each query"):
            other.run_available()

    engine = run(place, lambda engine: next(steps)(engine), 1, 2)
    assert starts == [0, 1]
    assert sorted(engine.results("large")["left"].to_pylist()) == [4, 5, 6, 7]


def test_what_has_been_taken_up_already_begins_no_other_epoch(place: Place, starts: list[int]) -> None:
    for value in (1, 2):
        place.arrive(value)
    epochs = []

    def change(engine: Engine) -> None:
        run, course = engine._run, engine._course
        assert run is not None
        assert course is not None
        engine.query("large", LARGE, sink=plait.sinks.memory())
        run.settle()
        epochs.append(course.epoch)
        run.ask()
        run.settle()
        epochs.append(course.epoch)

    run(place, change, 1)
    assert starts == [0]
    assert epochs[0] is epochs[1]


def test_what_was_planned_ahead_beside_a_plan_that_has_changed_since_is_not_taken_up(
    place: Place, starts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for value in (1, 2, 3):
        place.arrive(value)
    plan, former, waiting = PlanRequest.plan, list[Any](), list[Any]()

    def planned(self: PlanRequest, *told: Any) -> Any:
        former.append(told[-1])
        for course in waiting:  # the batch under way begins with what the adapter has found
            epoch = course.epoch
            course.batches.processor.change(replace(epoch, plan=replace(epoch.plan)), NOTHING)
        waiting.clear()
        return plan(self, *told)

    monkeypatch.setattr(PlanRequest, "plan", planned)

    def change(engine: Engine) -> None:
        course = engine._course
        assert course is not None
        engine.query("large", LARGE, sink=plait.sinks.memory())
        waiting.append(course)
        former.clear()
        engine._plan_ahead()
        in_force = course.epoch.plan
        assert engine._take_up()
        assert [each.plan is in_force for each in former] == [False, True]

    engine = run(place, change, 1)
    assert starts == [0]
    assert len(engine.results("first")) == 3


def test_options_that_do_not_fit_each_other_refuse_a_query_and_end_nothing(place: Place, starts: list[int]) -> None:
    for value in (1, 2, 3):
        place.arrive(value)
    handles = []

    def change(engine: Engine) -> None:
        engine.set_option("plait.storage_rows", 10)
        engine.set_option("plait.storage_bytes", 10)
        handles.append(engine.query("large", LARGE, sink=plait.sinks.memory()))
        engine._plan_ahead()
        engine._run.settle()  # type: ignore[union-attr]

    engine = run(place, change, 1)
    with pytest.raises(PlaitError, match="give the budget in one of them"):
        handles[0].wait_active()
    assert len(engine.results("first")) == 3


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Grows with every plan that is made, by the queries it is for; all are made beside the one before."""
    seen: list[tuple[str, ...]] = []
    replan = planner.replan

    def noted(before: Former, change: QueryChange, queries: tuple[Query, ...], *given: Any) -> Any:
        seen.append(tuple(sorted(query.name for query in queries)))
        return replan(before, change, queries, *given)

    monkeypatch.setattr(planner, "replan", noted)
    monkeypatch.setattr(former, "MOST_CHANGED", 1e9)
    return seen


def test_a_query_that_takes_another_start_is_planned_once(
    place: Place, starts: list[int], planned: list[tuple[str, ...]]
) -> None:
    for values in ((1, 2), (3, 4)):
        place.arrive(*values)
    needed = (SCRIPT + FIRST).replace(", keep 'all'", "")
    select = "SELECT a.k FROM a JOIN b ON a.ts = b.ts AND a.k = b.k"
    run(place, lambda engine: engine.query("late", select, sink=plait.sinks.memory()), 1, script=needed)
    assert starts == [0, 1]
    assert planned == [("first", "late")]


def test_what_was_planned_ahead_is_taken_up_and_what_came_since_is_added_to_it(
    place: Place, starts: list[int], planned: list[tuple[str, ...]]
) -> None:
    for values in ((1, 2), (4, 5), (6, 7)):
        place.arrive(*values)
    plans = []

    def change(engine: Engine) -> None:
        assert engine._course is not None
        engine.query("early", LARGE, sink=plait.sinks.memory())
        engine._plan_ahead()
        assert engine._course.ahead is not None
        plans.append(engine._course.ahead.made.plan)
        engine.query("late", LARGE, sink=plait.sinks.memory())
        assert engine._run is not None
        engine._run.settle()
        plans.append(engine._course.epoch.plan)

    engine = run(place, change, 1)
    assert starts == [0]
    assert planned == [("early", "first"), ("early", "first", "late")]
    assert [plan.queries for plan in plans] == planned
    assert sorted(engine.results("late")["left"].to_pylist()) == [4, 5, 6, 7]


@pytest.mark.parametrize("adapt", ["auto", "off"])
def test_nobody_who_asks_waits_until_all_are_planned_anew_if_that_is_done_beside_the_stream_anyway(
    place: Place, starts: list[int], planned: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch, adapt: str
) -> None:
    monkeypatch.setattr(former, "MOST_CHANGED", 0.5)
    for values in ((1, 2), (4, 5), (6, 7)):
        place.arrive(*values)

    def change(engine: Engine) -> None:
        for number in range(4):
            engine.query(f"more{number}", LARGE, sink=plait.sinks.memory())
            engine._plan_ahead()

    run(place, change, 1, script=f"SET plait.adapt = {adapt};\n{SCRIPT}{FIRST}")
    beside = [len(queries) for queries in planned]
    assert beside == ([2, 3, 4, 5] if adapt == "auto" else [2, 4, 5])


def test_no_batch_waits_until_the_parts_of_a_plan_are_written_out(place: Place, starts: list[int]) -> None:
    for values in ((1, 2), (4, 5)):
        place.arrive(*values)
    unknown = []

    def change(engine: Engine) -> None:
        course = engine._course
        assert course is not None
        engine.query("early", LARGE, sink=plait.sinks.memory())
        for plan in (course.epoch.plan, engine._plan_ahead() and course.ahead and course.ahead.made.plan):
            assert isinstance(plan, Plan)
            parts = (*plan.stores, *plan.trees)
            unknown.append([part for part in parts if id(part) not in course.prepared.written.texts])

    run(place, change, 1)
    assert unknown == [[], []]


def test_planning_that_fails_ahead_refuses_the_query_when_it_is_taken_up(
    place: Place, starts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = PlanRequest.plan

    def failing(self: PlanRequest, *told: Any) -> Any:
        if any(query.name == "bad" for query in self.queries):
            raise PlaitError("no way to plan this")
        return plan(self, *told)

    monkeypatch.setattr(PlanRequest, "plan", failing)
    for value in range(3):
        place.arrive(value)
    handles = []

    def change(engine: Engine) -> None:
        handles.append(engine.query("bad", LARGE, sink=plait.sinks.memory()))
        engine._plan_ahead()

    run(place, change, 1)
    with pytest.raises(PlaitError, match="no way to plan this"):
        handles[0].wait_active()
