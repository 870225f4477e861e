"""Flink SQL through PyFlink, on a session cluster in the process's own JVM."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.systems import flink_cluster, flink_live, flink_sources, flink_sql
from benchmarks.systems.duckdb import rows_in
from benchmarks.systems.flink_cluster import Cluster
from benchmarks.systems.system import Mode, Setting, System
from benchmarks.systems.task import Outcome, Task, UnableError

if TYPE_CHECKING:
    from pyflink.table import StreamTableEnvironment

_SET, _MULTIWAY = "set", "multiway"
_MULTI_JOIN = "table.optimizer.multi-join.enabled"

SYSTEM = System(
    name="flink",
    summary="Flink SQL, interval joins, a job each",
    settings=(
        Setting(
            name="pipeline.object-reuse",
            value="true",
            reason="Flink's guide: rows need not be copied between chained operators, and SQL's own are safe with it",
        ),
        Setting(
            name="taskmanager.memory.managed.size",
            value="0",
            reason="Flink's guide for the state backend on the heap, which is the default and the fastest where state "
            "fits into memory",
        ),
        Setting(name="-Xmx", value=flink_cluster.HEAP, reason="state is kept in the heap; as much as Spark has"),
        Setting(
            name="-XX:+UseParallelGC",
            value="on",
            reason="the collector made for throughput, as Spark and Plait have it here: a tenth to a fifth faster",
        ),
        Setting(
            name="execution.checkpointing.interval",
            value=f"{flink_cluster.CHECKPOINT_S} s",
            reason="Flink ships without checkpoints, but Spark and Plait make their state durable after every batch; "
            "examples of Flink's guide have 1 s, managed services 60 s. They go to files, as the guide has it for "
            "production; exactly once and aligned, which are the defaults. A run of less than the interval takes none",
        ),
        Setting(
            name="execution.checkpointing.checkpoints-after-tasks-finish",
            value="false",
            reason="a job ends with its last result. By default it waits for a final checkpoint, usually for 0.2 s or "
            "less; but where many tasks end at a time that one was seen to fail, and the job then waits for the next, "
            "up to the interval. In return no checkpoint is taken once a stream has been read to its end",
        ),
        Setting(
            name="FileSource.setSplitAssigner",
            value="files in the order of their names, one reader a stream",
            reason="Flink's own assigners hand out waiting files in no order, so rows would be late; the guide has "
            "users bring an assigner where order matters",
        ),
        Setting(
            name="FileSource.monitorContinuously",
            value=f"{flink_sources.DISCOVERY_MS} ms",
            reason="of live streams: how often a folder is looked at; results wait half of it on average",
        ),
        Setting(
            name="watermark delay",
            value="the age of the oldest straggler",
            reason="no row is late, and state is as small as it can be then",
        ),
        Setting(
            name="taskmanager.memory.network.max",
            value=f"64 MB and {flink_cluster.NETWORK_MB_A_QUERY} MB a query",
            reason="many jobs at a time need more buffers than the 64 MB of a local cluster",
        ),
    ),
    modes=(
        Mode(name=_SET, summary="the same, all queries in one statement set"),
        Mode(
            name=_MULTIWAY,
            summary="Flink SQL's multi-way join operator, all queries in one statement set, windows as conditions",
            settings=(
                Setting(name=_MULTI_JOIN, value="true", reason="the operator; it takes regular joins alone"),
                Setting(
                    name="table.exec.state.ttl",
                    value="0",
                    reason="state expires by the clock, not by event time, so an expiry would lose results",
                ),
            ),
        ),
    ),
    environment="flink",
    package="apache-flink",
    is_live=True,
)


def run(task: Task) -> Outcome:
    """Join the streams through Flink SQL. Raises UnableError with Flink's words."""
    flink_cluster.set_up_jvm(task)
    flink_sources.compile_assigner(task)
    with flink_cluster.running_cluster(task) as cluster:
        jobs = _plan(environment(task, cluster), task)
        return follow(jobs, cluster, task) if task.live else drain(jobs, cluster, task)


def drain(jobs: Jobs, cluster: Cluster, task: Task) -> Outcome:
    """Carry out jobs to the end of their streams."""
    startup_seconds, started = task.startup_seconds(), time.time()
    names = jobs.submit()
    seconds = cluster.wait_until_ended(names) - started
    return Outcome(
        rows_in=rows_in(task),
        startup_seconds=startup_seconds,
        seconds=seconds,
        shuffled_bytes=cluster.shuffled_bytes(names),
    )


def follow(jobs: Jobs, cluster: Cluster, task: Task) -> Outcome:
    """Carry out jobs on live streams, until told to stop."""
    startup_seconds, started = task.startup_seconds(), time.perf_counter()
    names = jobs.submit()
    flink_live.follow(cluster, names, task)
    seconds = time.perf_counter() - started
    delivered = flink_live.deliveries(task)
    return Outcome(rows_in=rows_in(task), startup_seconds=startup_seconds, seconds=seconds, deliveries=delivered)


def environment(task: Task, cluster: Cluster) -> StreamTableEnvironment:
    """Return an environment that runs jobs on the cluster, with every stream as tables."""
    from pyflink.common import Configuration
    from pyflink.datastream import StreamExecutionEnvironment
    from pyflink.java_gateway import get_gateway
    from pyflink.table import StreamTableEnvironment

    configuration = Configuration()
    settings = {**flink_cluster.settings(task), "execution.target": "remote", "rest.port": str(cluster.port)}
    if task.mode == _MULTIWAY:
        settings[_MULTI_JOIN] = "true"
    for name, value in settings.items():
        configuration.set_string(name, value)
    # The environment that PyFlink makes by itself starts another cluster for each job.
    gateway = get_gateway()
    java = gateway.jvm.org.apache.flink.streaming.api.environment.StreamExecutionEnvironment
    no_jars = gateway.new_array(gateway.jvm.java.lang.String, 0)
    streaming = StreamExecutionEnvironment(
        java.createRemoteEnvironment("localhost", cluster.port, configuration._j_configuration, no_jars)
    )
    streaming.set_parallelism(task.cores)
    environment = StreamTableEnvironment.create(streaming)
    flink_sources.show_streams(environment, streaming, task)
    return environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """Jobs to be, each the statements that it carries out together."""

    environment: Any
    statements: tuple[tuple[str, ...], ...]

    def explain(self) -> str:
        """Let Flink plan them without running them, and return the plans."""
        return "\n".join(self._together(each).explain() for each in self.statements)

    def submit(self) -> list[str]:
        """Start them; return their names."""
        results = [self._together(each).execute() for each in self.statements]
        return [str(result.get_job_client().get_job_id()) for result in results]

    def _together(self, statements: tuple[str, ...]) -> Any:
        together = self.environment.create_statement_set()
        for statement in statements:
            together.add_insert_sql(statement)
        return together


def _plan(environment: Any, task: Task) -> Jobs:
    """Return the jobs that Flink is to run, after it has planned them once. Raises UnableError with Flink's words."""
    from py4j.protocol import Py4JJavaError
    from pyflink.util.exceptions import JavaException

    try:
        each = tuple(_statements(environment, task, number) for number in range(len(task.questions.queries)))
        alone = task.mode is None
        jobs = Jobs(
            environment=environment, statements=each if alone else (tuple(text for one in each for text in one),)
        )
        plan = jobs.explain()
    except (Py4JJavaError, JavaException) as error:
        raise UnableError(_own_words(error)) from error
    if task.mode == _MULTIWAY and "MultiJoin" not in plan:
        raise UnableError("Flink plans no multi-way join here: the operator needs a key that all inputs share")
    return jobs


def _statements(environment: Any, task: Task, number: int) -> tuple[str, ...]:
    """Make the sinks of a query; return the statements that fill them."""
    query, sink, times = task.questions.queries[number], f"sink_{number}", task.questions.times()
    path = None
    if task.check:
        # Flink makes no folder for a query without results.
        (task.results / query.name).mkdir(parents=True)
        path = (task.results / query.name).as_uri()
    environment.execute_sql(flink_sql.sink(query, sink, path))
    text = flink_sql.select(query, times, interval_joins=task.mode != _MULTIWAY)
    if not task.live:
        return (f"INSERT INTO `{sink}` {text}",)
    # Flink joins once for both sinks if they read one view that is no text, but a table already.
    answers, notes = f"answers_{number}", f"delivered_{number}"
    environment.create_temporary_view(answers, environment.sql_query(text))
    environment.execute_sql(flink_sql.delivery_sink(notes, flink_live.notes(task, number).as_uri()))
    noted = flink_sql.delivered(query, times, task.slice_us, answers)
    return f"INSERT INTO `{sink}` SELECT * FROM `{answers}`", f"INSERT INTO `{notes}` {noted}"


def _own_words(error: Any) -> str:
    """Return the message of the innermost exception that has one."""
    cause = getattr(error, "java_exception", None)
    if cause is None:
        # PyFlink kept the stack trace alone, with the innermost cause last.
        return flink_cluster.innermost(str(error))
    found = str(cause.toString())
    while cause is not None:
        found, cause = cause.getMessage() or found, cause.getCause()
    return found
