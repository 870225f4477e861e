"""Questions of `benchmarks.workloads.closing_questions` in Flink's SQL, as its users write them, a job each.

Outer joins are interval joins over the event time, groups a tumbling window. Flink has no semi join of that kind, so
that is EXISTS over tables without event time, whose state nothing lets go of.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from benchmarks.systems import flink, flink_cluster, flink_live, flink_sources, flink_sql
from benchmarks.systems.closing_noted import by_file, times_of
from benchmarks.systems.flink_sql import EVENT_TIME
from benchmarks.systems.task import Outcome, Task
from benchmarks.workloads.closing_questions import GROUPS, KINDS, Times, outputs_of

_TYPES = {"begin": "TIMESTAMP(6)"}
_MANAGED = ("taskmanager.memory.managed.size", "256m")
"""Flink's windows of groups keep what they add up there; joins do not need it."""


def run(task: Task) -> Outcome:
    """Answer the question of a task. Raises UnableError with Flink's words."""
    task = replace(task, options=(_MANAGED, *task.options))
    flink_cluster.set_up_jvm(task)
    flink_sources.compile_assigner(task)
    with flink_cluster.running_cluster(task) as cluster:
        environment = flink.environment(task, cluster)
        jobs = flink.Jobs(environment=environment, statements=(_statements(environment, task),))
        if not task.live:
            return flink.drain(jobs, cluster, task)
        followed = flink.follow(jobs, cluster, task)
        return replace(followed, deliveries=by_file(followed.deliveries, task))


def _statements(environment: Any, task: Task) -> tuple[str, ...]:
    question, times = task.questions.queries[0].name, times_of(task)
    path = None
    if task.check:
        (task.results / question).mkdir(parents=True)
        path = (task.results / question).as_uri()
    columns = ", ".join(f"`{name}` {_TYPES.get(name, 'BIGINT')}" for name in outputs_of(question))
    environment.execute_sql(flink_sql.results_sink("answered", columns, path))
    text = select(question, times)
    if not task.live:
        return (f"INSERT INTO `answered` {text}",)
    environment.create_temporary_view("answers", environment.sql_query(text))
    environment.execute_sql(flink_sql.delivery_sink("delivered", flink_live.notes(task, 0).as_uri()))
    noted = f"INSERT INTO `delivered` SELECT {_noted(question)}, CURRENT_ROW_TIMESTAMP() FROM `answers`"
    return "INSERT INTO `answered` SELECT * FROM `answers`", noted


def select(question: str, times: Times) -> str:
    """Return a question in Flink's SQL."""
    if question == GROUPS:
        length = flink_sql.interval(times.window_us // 1000)
        return (
            "SELECT CAST(window_start AS TIMESTAMP(6)) AS `begin`, `g`, COUNT(*) AS `n`, SUM(`x`) AS `x` "
            f"FROM TABLE(TUMBLE(TABLE {flink_sql.table('l', timed=True)}, DESCRIPTOR(`{EVENT_TIME}`), {length})) "
            "GROUP BY window_start, window_end, `g`"
        )
    is_semi = question == "semi"
    left, right = (f"{flink_sql.table(name, timed=not is_semi)} AS `{name}`" for name in "lr")
    within, time = flink_sql.interval(times.window_us // 1000), "ts" if is_semi else EVENT_TIME
    on = f"`l`.`k` = `r`.`k` AND `r`.`{time}` BETWEEN `l`.`{time}` - {within} AND `l`.`{time}` + {within}"
    if is_semi:
        return f"SELECT `l`.`id` AS `l_id` FROM {left} WHERE EXISTS (SELECT * FROM {right} WHERE {on})"
    return f"SELECT `l`.`id` AS `l_id`, `r`.`id` AS `r_id` FROM {left} {KINDS[question]} JOIN {right} ON {on}"


def _noted(question: str) -> str:
    """Return what `Decided.file_of` reads of a result."""
    if question == GROUPS:
        return "CAST(EXTRACT(EPOCH FROM `begin`) AS INT)"
    return f"CAST({'`l_id`' if question != 'full' else 'COALESCE(`l_id`, -1 - `r_id`)'} AS INT)"
