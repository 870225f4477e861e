"""When the driver probes itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from plait.operators.probe.probing import ProbeContext
from plait.operators.reports import ProbeReport
from plait.operators.traversal.driving import Pace, Paces, Work, as_one, is_quicker_here, work_of
from plait.operators.traversal.probe_task import ProbeTask
from plait.optimizer.examples import example_options, example_query, example_statistics
from plait.optimizer.planner import plan
from plait.plan.model import Plan
from plait.query.model import Query
from plait.query.predicates import Residual
from plait.state.storage import Storage
from tests.unit.state.builders import described

OPTIONS = example_options("greedy")
FEW = Work(rows=1000, scanned=0, bytes=1 << 20, calls_functions=False)
SLOTS = 2


def planned(*queries: Query) -> Plan:
    return plan(queries, example_statistics(OPTIONS), OPTIONS)


PLAN = planned(example_query("q", "r.a = s.a", "s.b = t.b"))


def with_residual(*, is_function: bool) -> Plan:
    """Return a plan with a step that looks nothing up by a key."""
    query = example_query("q", "r.a = s.a")
    (equality,) = query.predicates
    assert not isinstance(equality, Residual)
    operands = (equality.left, equality.right)
    residual = Residual(operands=operands, sql='"0" <> "1"', text="(`0` <> `1`)", is_function=is_function)
    return planned(replace(query, predicates=(residual,)))


def tasks_of(plan: Plan, rows: int) -> tuple[ProbeTask, ...]:
    starts = tuple((number, described(store=tree.start.store), 0, rows) for number, tree in enumerate(plan.trees))
    return tuple(ProbeTask(number=number, starts=(start,)) for number, start in enumerate(starts))


def context_of(plan: Plan, directory: Path) -> ProbeContext:
    buckets = {store.id: (described(store=store.id),) for store in plan.stores}
    return ProbeContext(plan=plan, batch=1, storage=Storage.open(str(directory)), buckets=buckets, wanted={})


def test_few_rows_are_probed_here_and_many_in_tasks() -> None:
    assert is_quicker_here(FEW, None, SLOTS)
    assert not is_quicker_here(replace(FEW, rows=1_000_000), None, SLOTS)


def test_rows_compared_one_by_one_with_many_are_probed_in_tasks_from_the_first_batch_on() -> None:
    assert not is_quicker_here(replace(FEW, scanned=1_000_000), None, SLOTS)


def test_what_was_measured_counts_for_more_than_what_was_assumed() -> None:
    many, cheap, dear = replace(FEW, rows=200_000), Pace(rows=100_000, seconds=0.05), Pace(rows=1000, seconds=2.0)
    assert is_quicker_here(many, cheap, SLOTS)
    assert not is_quicker_here(many, None, SLOTS)
    assert not is_quicker_here(FEW, dear, SLOTS)


def test_the_time_for_a_handful_of_rows_says_little_of_a_thousand() -> None:
    assert is_quicker_here(FEW, Pace(rows=1, seconds=0.02), SLOTS)


def test_more_tasks_at_a_time_are_worth_their_job_sooner() -> None:
    pace = Pace(rows=10_000, seconds=0.15)
    assert is_quicker_here(replace(FEW, rows=10_000), pace, 2)
    assert not is_quicker_here(replace(FEW, rows=10_000), pace, 64)


def test_with_one_task_at_a_time_a_job_is_never_worth_it() -> None:
    assert is_quicker_here(replace(FEW, rows=10_000_000), None, 1)


@pytest.mark.parametrize("work", [replace(FEW, calls_functions=True), replace(FEW, bytes=1 << 40)])
def test_functions_of_the_user_and_more_than_the_driver_should_map_are_left_to_tasks(work: Work) -> None:
    assert not is_quicker_here(work, None, SLOTS)


def test_work_counts_starting_rows_and_what_no_key_rules_out(tmp_path: Path) -> None:
    found = work_of(tasks_of(PLAN, 10), context_of(PLAN, tmp_path))
    assert (found.rows, found.scanned, found.calls_functions) == (30, 0, False)
    assert found.bytes == 3 * described().bytes
    scanning = with_residual(is_function=False)
    found = work_of(tasks_of(scanning, 10), context_of(scanning, tmp_path))
    assert (found.rows, found.scanned, found.calls_functions) == (20, 2 * described().rows, False)


def test_a_function_of_the_users_is_seen_in_any_step(tmp_path: Path) -> None:
    calling = with_residual(is_function=True)
    assert work_of(tasks_of(calling, 10), context_of(calling, tmp_path)).calls_functions


def test_all_that_tasks_start_with_is_in_the_one_that_does_it_all() -> None:
    tasks = tasks_of(PLAN, 10)
    assert as_one(tasks).starts == tuple(start for task in tasks for start in task.starts)


def test_a_pace_is_that_of_the_same_trees_and_plan() -> None:
    paces, tasks = Paces(), tasks_of(PLAN, 10)
    assert paces.find(tasks, PLAN) is None
    paces.note(tasks, PLAN, 30, (ProbeReport(seconds=0.2), ProbeReport(seconds=0.1)))
    assert paces.find(tasks, PLAN) == Pace(rows=30, seconds=pytest.approx(0.3))
    assert paces.find(tasks[:1], PLAN) is None
    assert paces.find(tasks, replace(PLAN)) is None
