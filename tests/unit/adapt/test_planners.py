"""Where there are many queries another process plans: what it says is what a thread would say, and whatever becomes of
it, nothing is lost and nothing is left behind.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from plait.adapt.adapter import Adapter, Habits
from plait.adapt.asked_to_plan import Question, answer
from plait.adapt.forecast import NEXT_CYCLE, Outlook
from plait.adapt.planners import Planners
from plait.adapt.planning import PlanRequest
from plait.adapt.reconsidering import Policy, Standing
from plait.errors import OptionError
from plait.optimizer.examples import example_query
from plait.optimizer.incremental.former import Former
from plait.plan.changelog import applied
from plait.plan.model import Plan
from plait.state.model import Manifest
from plait.stats.model import QuerySets
from tests.unit.adapt.test_reconsidering import FEW_R, manifest, request

RUNNING = request("greedy", FEW_R).plan(None)
QUESTION = Question(
    request=request("greedy"),
    manifest=manifest(1),
    standing=Standing(running=RUNNING),
    policy=Policy(is_young=True),
)


@pytest.fixture
def planners() -> Iterator[Planners]:
    made = Planners(many_queries=1)
    yield made
    made.close()


def process_of(planners: Planners) -> int:
    assert planners._process is not None
    return planners._process._process.pid


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_process_says_what_a_thread_says_of_the_very_plans_it_was_asked_about(planners: Planners) -> None:
    told, own = planners.submit(QUESTION).result(), answer(QUESTION)
    assert process_of(planners) != os.getpid()
    assert own.decision.change is not None
    change = replace(own.decision.change, planning_s=0.0)
    assert told.decision.change is not None
    assert replace(told.decision.change, planning_s=0.0) == change
    assert (told.decision.verdict, told.sample) == (own.decision.verdict, own.sample)
    assert told.decision.after.before is RUNNING
    assert told.decision.after.memory == own.decision.after.memory
    assert planners.planned.times == 1
    assert planners.planned.seconds > told.seconds > 0


def test_orders_to_sample_come_from_the_process_as_well(planners: Planners) -> None:
    ring = replace(request("greedy"), queries=(example_query("q", "r.a = s.a", "s.b = t.b", "r.c = t.c"),))
    running = ring.plan(None)
    asked = replace(QUESTION, request=ring, standing=Standing(running=running))
    told, own = planners.submit(asked).result(), answer(asked)
    assert own.sample is not None
    assert (told.decision.change, told.sample) == (None, own.sample)
    assert told.decision.after.running is running


def test_few_queries_take_no_process() -> None:
    planners = Planners(many_queries=2)
    assert planners.submit(QUESTION).result().decision.change is not None
    assert planners._process is None
    planners.close()


def test_one_process_answers_all_questions_and_is_gone_afterwards(planners: Planners) -> None:
    pids = set()
    for _ in range(3):
        planners.submit(QUESTION).result()
        pids.add(process_of(planners))
    (pid,) = pids
    planners.close()
    assert not is_alive(pid)


def test_what_stored_rows_show_is_looked_at_here_and_only_for_strategies_that_ask_for_it() -> None:
    looked_at = list[Manifest | None]()
    sets = (QuerySets(source="r", selections=("1", "2"), sets=((1, 2),)),)

    def sampled(seen: Manifest | None) -> tuple[QuerySets, ...]:
        looked_at.append(seen)
        return sets

    for strategy, seen in (("greedy", []), ("adhoc", [QUESTION.manifest])):
        asked = replace(QUESTION, request=replace(request(strategy), sampled=sampled)).without_files()
        assert looked_at == seen
        assert asked.request.sampled is not None
        assert asked.request.sampled(None) == (sets if seen else ())
        looked_at.clear()


def test_a_thread_plans_where_the_process_has_been_killed_and_from_then_on(planners: Planners) -> None:
    planners.submit(QUESTION).result()
    pid = process_of(planners)
    os.kill(pid, signal.SIGKILL)
    for _ in range(2):
        assert planners.submit(QUESTION).result().decision.change is not None
        assert planners._process is None
    assert not is_alive(pid)
    assert planners.planned.times == 3


def test_a_thread_plans_where_no_process_can_be_started(planners: Planners, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert planners.submit(QUESTION).result().decision.change is not None
    monkeypatch.setattr(sys, "executable", None)  # as where Python is embedded
    planners._is_alone = False
    assert planners.submit(QUESTION).result().decision.change is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfTheProgram(PlanRequest):
    """A request that the process knows nothing of."""

    unknown: Callable[[], None]

    def plan(self, manifest: Manifest | None, outlook: Outlook = NEXT_CYCLE, former: Former | None = None) -> Plan:
        """Return the plan in force."""
        return RUNNING


def test_a_thread_plans_what_cannot_be_told_to_another_process(planners: Planners) -> None:
    own = _OfTheProgram(queries=QUESTION.request.queries, options=QUESTION.request.options, unknown=lambda: None)
    assert planners.submit(replace(QUESTION, request=own)).result().decision.change is None


def test_an_error_of_the_planner_is_met_here_too(planners: Planners) -> None:
    options = replace(QUESTION.request.options, strategy="of another version")
    failing = replace(QUESTION, request=replace(QUESTION.request, options=options))
    with pytest.raises(OptionError, match="of another version"):
        planners.submit(failing).result()


@pytest.mark.parametrize("wait", [True, False])
def test_whoever_closes_waits_for_no_answer(planners: Planners, wait: bool) -> None:
    planners.submit(QUESTION).result()
    pid = process_of(planners)
    os.kill(pid, signal.SIGSTOP)
    asked = planners.submit(QUESTION)
    wait_for(asked.running)
    planners.close(wait=wait)
    assert asked.exception() is not None
    assert not is_alive(pid)


def test_an_adapter_takes_up_what_the_process_says_and_hands_it_on() -> None:
    planners = Planners(many_queries=1)
    adapter = Adapter(request("greedy"), planners=planners)
    adapter.batch_done(manifest(1), RUNNING)
    adapter.wait()
    pid = process_of(planners)
    change = adapter.next_change(RUNNING)
    assert change is not None
    assert change.planning_s > 0
    taken = applied(change.changes, RUNNING)
    kept = {id(store) for store in RUNNING.stores}
    assert any(id(store) in kept for store in taken.stores)
    other = adapter.successor(request("greedy", FEW_R), Habits(), adapter.memory)
    assert (other.planned.times, process_of(other._planners)) == (1, pid)
    other.close()
    assert not is_alive(pid)


PROGRAM = """
import sys, time
from plait.adapt.planners import Planners
from tests.unit.adapt.test_planners import QUESTION, process_of
planners = Planners(many_queries=1)
planners.submit(QUESTION).result()
print(process_of(planners), flush=True)
if sys.argv[1] == "waits":
    time.sleep(60)
"""


@pytest.mark.parametrize("end", ["by itself", signal.SIGKILL, signal.SIGINT])
def test_the_process_ends_with_its_program_which_needs_no_guard(end: signal.Signals | str) -> None:
    command = [sys.executable, "-W", "error", "-c", PROGRAM, "ends" if end == "by itself" else "waits"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        pid = int(program.stdout.readline())
        if isinstance(end, signal.Signals):
            program.send_signal(end)
        _, errors = program.communicate(timeout=60)
    wait_for(lambda: not is_alive(pid))
    assert errors == "" or end is signal.SIGINT


def test_the_process_loads_neither_spark_nor_what_reads_sql() -> None:
    code = "import sys, plait.adapt.planning_process; print({'pyspark', 'sqlglot'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
