"""The thread that keeps a streaming query going, and when it starts another one for what it is asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from plait.runtime.batch import stream
from plait.runtime.batch.stream import Run


class Query:
    """A streaming query that runs until it is stopped."""

    def __init__(self) -> None:
        self._ended = threading.Event()

    @property
    def isActive(self) -> bool:
        return not self._ended.is_set()

    def stop(self) -> None:
        self._ended.set()

    def awaitTermination(self) -> None:
        self._ended.wait()


class Runs:
    """Starts runs, and notes when they start queries. `goes_on`: whether these can go on for what is asked."""

    def __init__(self) -> None:
        self.starts: list[float] = []
        self.taken_up = 0
        self.goes_on = False
        self.run: Run | None = None

    def begin(self, *, is_endless: bool = True) -> Run:
        run = Run(self._start, is_endless=is_endless, take_up=self._take_up)
        self.run = run
        run.begin()
        return run

    def _start(self) -> Any:
        self.starts.append(time.monotonic())
        return Query()

    def _take_up(self) -> bool:
        self.taken_up += 1
        return self.goes_on


@pytest.fixture
def runs() -> Iterator[Runs]:
    made = Runs()
    yield made
    if made.run is not None:
        made.run.stop()


def wait_for(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_what_can_be_taken_up_starts_no_other_query(runs: Runs) -> None:
    runs.goes_on = True
    run = runs.begin()
    for asked in range(1, 4):
        run.ask()
        wait_for(lambda asked=asked: runs.taken_up >= asked)
    assert len(runs.starts) == 1


def test_queries_are_started_at_most_once_in_a_while_for_whatever_is_asked(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "RESTART_EVERY_S", 0.3)
    run = runs.begin()
    for _ in range(40):
        run.ask()
        time.sleep(0.01)
    wait_for(lambda: len(runs.starts) >= 3)
    time.sleep(0.4)
    assert len(runs.starts) == 3
    assert all(later - earlier >= 0.3 for earlier, later in zip(runs.starts, runs.starts[1:], strict=False))


def test_a_batch_begins_with_what_was_asked_for_before(runs: Runs) -> None:
    run = runs.begin()
    runs.goes_on = True
    order: list[str] = []
    take_up = run._take_up
    run._take_up = lambda: bool(order.append("taken up")) or take_up()
    run._requested.set()  # as `ask` does, before the attendant gets to it
    run.batch(lambda frame, number: bool(order.append("carried out")), None, 0)  # type: ignore[arg-type]
    assert order == ["taken up", "carried out"]


def test_a_batch_does_not_wait_for_long_planning_and_what_is_planned_begins_with_a_later_one(runs: Runs) -> None:
    run = runs.begin()
    runs.goes_on = True
    may_end, order = threading.Event(), list[str]()
    take_up = run._take_up
    run._plan_ahead = lambda: bool(may_end.wait(20)) or None  # type: ignore[assignment, return-value]
    run._take_up = lambda: bool(order.append("taken up")) or take_up()
    run.ask()
    wait_for(run._planning.locked)
    run.batch(lambda frame, number: bool(order.append("first")), None, 0)  # type: ignore[arg-type]
    may_end.set()
    wait_for(lambda: runs.taken_up == 1)
    run.batch(lambda frame, number: bool(order.append("second")), None, 1)  # type: ignore[arg-type]
    assert order == ["first", "taken up", "second"]


def test_nothing_is_planned_ahead_while_a_batch_takes_up_what_was_asked_before(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    attend = Run._attend
    monkeypatch.setattr(Run, "_attend", lambda self: None)
    run = runs.begin()
    attendant, order = threading.Thread(target=attend, args=(run,), daemon=True), list[str]()

    def take_up() -> bool:
        if not attendant.ident:
            run.ask()
            attendant.start()
            time.sleep(0.1)
        order.append("taken up")
        return True

    run._plan_ahead, run._take_up = lambda: order.append("planned"), take_up
    run._requested.set()
    run.batch(lambda frame, number: False, None, 0)  # type: ignore[arg-type]
    wait_for(lambda: len(order) >= 3)
    assert order == ["taken up", "planned", "taken up"]


def test_a_run_that_is_stopped_while_it_plans_ahead_leaves_nobody_planning(runs: Runs) -> None:
    run = runs.begin()
    may_end = threading.Event()
    run._plan_ahead = lambda: bool(may_end.wait(20)) or None  # type: ignore[assignment, return-value]
    run.ask()
    wait_for(run._planning.locked)
    threading.Timer(0.2, may_end.set).start()
    run.stop()
    assert (run._attendant.is_alive(), runs.taken_up, run.wait(0)) == (False, 0, True)


def test_what_cannot_be_taken_up_ends_the_run_and_says_why(runs: Runs) -> None:
    run = runs.begin()

    def fail() -> bool:
        raise RuntimeError("broken")

    run._take_up = fail
    run.ask()
    wait_for(lambda: not run.is_alive())
    assert str(run.failure) == "broken"


def test_a_run_that_has_ended_takes_nothing_up_and_leaves_no_thread_behind(runs: Runs) -> None:
    run = runs.begin(is_endless=False)
    assert run._query is not None
    run._query.stop()
    assert run.wait(20)
    run._attendant.join(20)
    run.ask()
    assert run.settle() == 0
    assert (runs.taken_up, run._attendant.is_alive(), run.failure) == (0, False, None)


def test_a_query_that_was_started_since_is_not_stopped_in_place_of_the_one_before(runs: Runs) -> None:
    run = runs.begin()
    former, stop = run._query, run._stop

    def late(query: Any) -> None:
        query.stop()  # somebody else was quicker
        wait_for(lambda: len(runs.starts) == 2 and run._query is not None)
        stop(query)

    run._stop = late  # type: ignore[method-assign]
    run.restart()
    run._stop = stop  # type: ignore[method-assign]
    assert run._query is not None
    assert (run._query is former, run._query.isActive, run.failure) == (False, True, None)


class Drained(Query):
    """A streaming query that has nothing more to read."""

    def awaitTermination(self) -> None:
        self.stop()


@pytest.mark.parametrize(("query", "ended"), [(Drained(), ["ended"]), (None, ["ended"])])
def test_a_run_that_has_done_all_there_was_to_do_ends_its_input(query: Any, ended: list[str]) -> None:
    calls = list[str]()
    run = Run(lambda: query, is_endless=False, end=lambda: calls.append("ended"))
    run.begin()
    assert run.wait(20)
    assert (calls, run.failure) == (ended, None)


def test_a_run_that_is_stopped_or_fails_does_not_end_its_input() -> None:
    calls = list[str]()

    def fail() -> Any:
        raise ValueError("no such stream")

    failed = Run(fail, is_endless=False, end=lambda: calls.append("ended"))
    failed.begin()
    stopped = Run(Query, is_endless=False, end=lambda: calls.append("ended"))
    stopped.begin()
    stopped.stop()
    assert failed.wait(20)
    assert stopped.wait(20)
    assert calls == []


def test_a_run_whose_last_batch_fails_has_failed() -> None:
    def fail() -> None:
        raise ValueError("no space")

    run = Run(Drained, is_endless=False, end=fail)
    run.begin()
    assert run.wait(20)
    assert isinstance(run.failure, ValueError)
