"""The thread that keeps a streaming query going, and when it starts another one for what it is asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from plait.runtime.batch import stream
from plait.runtime.batch.asking import Asking
from plait.runtime.batch.stream import Again, Run, Stopping


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
    """Starts runs, and notes when they start queries. `goes_on`: whether these can go on for what is asked. `planned`:
    how much of what is asked has a plan; `plan_ahead` makes one, and `taken`: when what has one was taken up.
    """

    def __init__(self) -> None:
        self.starts: list[float] = []
        self.taken_up = 0
        self.goes_on = False
        self.planned = 0
        self.taken: list[str] = []
        self.run: Run | None = None
        self.query: Callable[[], Query | None] = Query
        self.plan_ahead: Callable[[], bool] = lambda: False
        self.take_up: Callable[[], bool] = self._take_up

    def begin(self, *, is_endless: bool = True) -> Run:
        asked = Asking(
            waits=lambda: self.planned > 0,
            take_up=lambda: self.take_up(),
            plan_ahead=lambda: self.plan_ahead(),
            is_planned=lambda: self.planned > 0,
            take_planned=self._take_planned,
        )
        run = Run(self._start, is_endless=is_endless, asked=asked)
        self.run = run
        run.begin()
        return run

    def _start(self) -> Any:
        self.starts.append(time.monotonic())
        return self.query()

    def _take_up(self) -> bool:
        self.taken_up += 1
        return self.goes_on

    def _take_planned(self, within: bool) -> bool:
        self.taken.append("within" if within else "between")
        self.planned = 0
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
    take_up = runs.take_up
    runs.take_up = lambda: bool(order.append("taken up")) or take_up()
    run._requested.set()  # as `ask` does, before the attendant gets to it
    run.batch(lambda frame, number, take_up: bool(order.append("carried out")), None, 0)  # type: ignore[arg-type]
    assert order == ["taken up", "carried out"]


def test_a_batch_does_not_wait_for_long_planning_and_what_is_planned_begins_with_a_later_one(runs: Runs) -> None:
    run = runs.begin()
    runs.goes_on = True
    may_end, order = threading.Event(), list[str]()
    take_up = runs.take_up
    runs.plan_ahead = lambda: not may_end.wait(20)
    runs.take_up = lambda: bool(order.append("taken up")) or take_up()
    run.ask()
    wait_for(run._planning.locked)
    run.batch(lambda frame, number, take_up: bool(order.append("first")), None, 0)  # type: ignore[arg-type]
    may_end.set()
    wait_for(lambda: runs.taken_up == 1)
    run.batch(lambda frame, number, take_up: bool(order.append("second")), None, 1)  # type: ignore[arg-type]
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

    runs.plan_ahead, runs.take_up = lambda: bool(order.append("planned")), take_up
    run._requested.set()
    run.batch(lambda frame, number, take_up: False, None, 0)  # type: ignore[arg-type]
    wait_for(lambda: len(order) >= 3)
    assert order == ["taken up", "planned", "taken up"]


def test_a_run_that_is_stopped_while_it_plans_ahead_leaves_nobody_planning(runs: Runs) -> None:
    run = runs.begin()
    may_end = threading.Event()
    runs.plan_ahead = lambda: not may_end.wait(20)
    run.ask()
    wait_for(run._planning.locked)
    threading.Timer(0.2, may_end.set).start()
    run.stop()
    assert (run._attendant.is_alive(), runs.taken_up, run.wait(0)) == (False, 0, True)


def test_what_cannot_be_taken_up_ends_the_run_and_says_why(runs: Runs) -> None:
    run = runs.begin()

    def fail() -> bool:
        raise RuntimeError("broken")

    runs.take_up = fail
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


def test_a_batch_that_has_to_be_done_again_does_not_end_and_another_query_is_started_for_it(runs: Runs) -> None:
    run = runs.begin()

    def fail(frame: object, number: int, take_up: object) -> bool:
        raise Again

    with pytest.raises(Stopping):
        run.batch(fail, None, 0)  # type: ignore[arg-type]
    wait_for(lambda: len(runs.starts) == 2)
    assert (run.failure, run.is_alive()) == (None, True)


def test_what_is_done_at_the_end_is_done_again_after_another_start() -> None:
    calls = list[str]()

    def end() -> None:
        calls.append("ended")
        if len(calls) < 3:
            raise Again

    def start() -> Any:
        calls.append("started")
        return Drained()

    run = Run(start, is_endless=False, end=end)
    run.begin()
    assert run.wait(20)
    assert (calls, run.failure) == (["started", "ended", "started", "ended"], None)


def test_what_only_takes_time_is_done_again_after_another_start(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "QUIET_S", 0.01)
    passed = list[int]()

    def pass_time() -> None:
        passed.append(len(runs.starts))
        if len(passed) == 1:
            raise Again

    run = Run(runs._start, is_endless=True, pass_time=pass_time)
    runs.run = run
    run.begin()
    wait_for(lambda: passed[-1:] == [2])
    assert run.failure is None


def test_what_is_asked_for_when_all_has_been_read_is_taken_up_before_the_end() -> None:
    calls = list[str]()
    asked = Asking(take_up_last=lambda has_run: calls.append(f"taken up {has_run}") is None)
    run = Run(Drained, is_endless=False, asked=asked, end=lambda: calls.append("ended"))
    run.begin()
    assert run.wait(20)
    assert calls == ["taken up True", "ended"]


def test_there_is_another_start_before_the_end_where_what_is_asked_for_last_takes_one() -> None:
    calls, queries = list[str](), [Drained(), None]

    def start() -> Any:
        calls.append("started")
        return queries.pop(0)

    def take_up_last(has_run: bool) -> bool:
        calls.append(f"asked {has_run}")
        return not has_run

    asked = Asking(take_up_last=take_up_last)
    run = Run(start, is_endless=False, asked=asked, end=lambda: calls.append("ended"))
    run.begin()
    assert run.wait(20)
    assert calls == ["started", "asked True", "started", "asked False", "ended"]


def test_a_run_that_somebody_stops_takes_up_nothing_at_the_end() -> None:
    calls = list[bool]()
    run = Run(Query, is_endless=True, asked=Asking(take_up_last=lambda has_run: calls.append(has_run) is None))
    run.begin()
    run.stop()
    assert not calls


def test_when_a_run_is_over_what_waits_is_given_up() -> None:
    calls = list[str]()
    run = Run(Drained, is_endless=False, asked=Asking(give_up=lambda: calls.append("given up")))
    run.begin()
    assert run.wait(20)
    assert calls == ["given up"]


def test_what_has_a_plan_is_taken_up_at_once_where_no_batch_is_under_way(runs: Runs) -> None:
    runs.goes_on = True
    run = runs.begin()

    def plan_ahead() -> bool:
        runs.planned = 1
        return True

    runs.plan_ahead = plan_ahead
    run.ask()
    wait_for(lambda: runs.taken == ["between"])
    assert (len(runs.starts), runs.taken_up) == (1, 0)


def test_what_could_be_planned_starts_a_query_where_there_is_none(runs: Runs) -> None:
    runs.query = lambda: Query() if len(runs.starts) > 1 else None
    run = runs.begin()

    def plan_ahead() -> bool:
        runs.planned = 1
        return True

    runs.plan_ahead = plan_ahead
    run.ask()
    wait_for(lambda: len(runs.starts) == 2)
    assert run.failure is None


def test_what_gets_a_plan_while_a_batch_stores_its_rows_is_taken_up_within_that_batch(runs: Runs) -> None:
    runs.goes_on = True
    run = runs.begin()
    order = runs.taken

    def carry_out(frame: Any, number: int, take_up: Callable[[], None]) -> bool:
        runs.planned = 1
        order.append("stored")
        take_up()
        order.append("probed")
        return False

    run.batch(carry_out, None, 0)  # type: ignore[arg-type]
    assert order == ["stored", "within", "probed"]


def test_planning_goes_on_during_a_batch_and_what_it_ends_with_is_not_left_until_somebody_asks_again(
    runs: Runs,
) -> None:
    runs.goes_on = True
    run = runs.begin()
    plans = iter((1, 2))

    def plan_ahead() -> bool:
        runs.planned = runs.planned or next(plans, 0)
        return True

    runs.plan_ahead = plan_ahead

    def carry_out(frame: Any, number: int, take_up: Callable[[], None]) -> bool:
        run.ask()
        wait_for(lambda: runs.planned == 1)
        take_up()
        run.ask()
        wait_for(lambda: runs.planned == 2)
        return False

    run.batch(carry_out, None, 0)  # type: ignore[arg-type]
    wait_for(lambda: runs.taken == ["within", "between"])


def test_what_takes_another_start_is_not_begun_within_a_batch(runs: Runs) -> None:
    run = runs.begin()

    def carry_out(frame: Any, number: int, take_up: Callable[[], None]) -> bool:
        runs.planned = 1
        take_up()
        assert not run._restarting
        runs.planned = 1
        return False

    run.batch(carry_out, None, 0)  # type: ignore[arg-type]
    wait_for(lambda: len(runs.starts) == 2)
    assert runs.taken[0] == "within"


def test_time_passes_while_a_run_waits_and_not_while_a_batch_is_under_way(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "QUIET_S", 0.01)
    passed = list[str]()
    run = Run(Query, is_endless=True, pass_time=lambda: passed.append("time"))
    run.begin()
    wait_for(lambda: bool(passed))

    def batch(frame: object, number: int, take_up: Callable[[], None]) -> bool:
        before = len(passed)
        time.sleep(0.1)
        assert len(passed) == before
        return False

    run.batch(batch, None, 0)  # type: ignore[arg-type]
    assert run.failure is None
    run.stop()
    after = len(passed)
    time.sleep(0.05)
    assert len(passed) == after


def test_what_fails_while_time_passes_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "QUIET_S", 0.01)

    def fail() -> None:
        raise ValueError("no space")

    run = Run(Query, is_endless=True, pass_time=fail)
    run.begin()
    assert run.wait(20)
    assert isinstance(run.failure, ValueError)
