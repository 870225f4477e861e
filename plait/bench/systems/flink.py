"""Flink SQL through PyFlink, on a session cluster in the process's own JVM.

Files of a stream come in the order of time, but Flink's file source hands them out in no order, and a watermark over
that would have to wait for everything. So the files of a stream are put together into one, which one reader reads; that
counts as start-up. Inside, rows are as shuffled as before: the watermark is behind by what the oldest straggler needs,
found from the data, so that no row is late and no more state is kept than that.
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plait.bench.data import file_name
from plait.bench.systems import flink_sql
from plait.bench.systems.model import Mode, Setting, System
from plait.bench.systems.task import Outcome, Task, UnableError
from plait.errors import PlaitError
from plait.workloads.joins import JoinStream

if TYPE_CHECKING:
    from pyflink.table import StreamTableEnvironment

_HEAP = "8g"
_SET, _MULTIWAY = "set", "multiway"
_MULTI_JOIN = "table.optimizer.multi-join.enabled"
_NETWORK_MB_A_QUERY = 32

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
        Setting(name="-Xmx", value=_HEAP, reason="state is kept in the heap; as much as Spark has"),
        Setting(
            name="watermark delay",
            value="the age of the oldest straggler",
            reason="no row is late, and state is as small as it can be then",
        ),
        Setting(
            name="taskmanager.memory.network.max",
            value=f"64 MB and {_NETWORK_MB_A_QUERY} MB a query",
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
)


def run(task: Task) -> Outcome:
    """Drain the streams through Flink SQL. Raises UnableError with Flink's words."""
    _set_up_jvm(task)
    rows, delays = 0, {}
    for stream in task.questions.streams:
        rows_of, delays[stream.name] = _put_together(stream, task)
        rows += rows_of
    cluster, port = _start_cluster(task)
    try:
        environment = _environment(task, port, delays)
        statements = [_insert(environment, task, number) for number in range(len(task.questions.queries))]
        _let_plan(environment, statements, task)
        startup_seconds, started, clock = task.startup_seconds(), time.perf_counter(), time.time()
        jobs = _submit(environment, statements, task)
        seconds = _wait(jobs, port, clock) or time.perf_counter() - started
    finally:
        cluster.close()
    return Outcome(rows_in=rows, startup_seconds=startup_seconds, seconds=seconds)


def _set_up_jvm(task: Task) -> None:
    """Say how PyFlink is to start its JVM; the jars are where ``make peers`` put them, beside the interpreter."""
    jars = sorted((Path(sys.prefix) / "jars").glob("*.jar"))
    if not jars:
        raise PlaitError(f"no jars for Parquet in {Path(sys.prefix) / 'jars'}: run `make peers`")
    os.environ["HADOOP_CLASSPATH"] = os.pathsep.join(map(str, jars))
    os.environ["JVM_ARGS"] = f"-Xmx{task.memory or _HEAP} -Duser.timezone=UTC"
    os.environ["FLINK_LOG_DIR"] = task.scratch
    os.environ["ROOT_LOG_LEVEL"] = "WARN"


def _merged(stream: str, task: Task) -> Path:
    return Path(task.scratch) / "streams" / f"{stream}.parquet"


def _put_together(stream: JoinStream, task: Task) -> tuple[int, int]:
    """Write a stream's files into one; return its rows, and how many milliseconds its oldest straggler is late."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    target = _merged(stream.name, task)
    target.parent.mkdir(parents=True, exist_ok=True)
    writer, newest, late_us, rows = None, None, 0, 0
    for number in range(task.files):
        found = pq.read_table(task.data_path / stream.name / file_name(number))
        columns = [_plain(found.column(column.name)) for column in stream.columns]
        merged = pa.table(dict(zip((column.name for column in stream.columns), columns, strict=True)))
        writer = writer or pq.ParquetWriter(target, merged.schema)
        writer.write_table(merged)
        rows += merged.num_rows
        if merged.num_rows:
            taus = merged.column(stream.time).cast(pa.int64()).to_numpy()
            ahead = np.maximum.accumulate(taus if newest is None else np.maximum(taus, newest))
            late_us, newest = max(late_us, int((ahead - taus).max())), int(ahead[-1])
    if writer is not None:
        writer.close()
    # Rounded up, and one more, because the cut to milliseconds may make a row that much later.
    return rows, -(-late_us // 1000) + 1


def _plain(column: Any) -> Any:
    """Return a column as Flink reads it: times in microseconds without a zone."""
    import pyarrow as pa

    return column.cast(pa.timestamp("us")) if pa.types.is_timestamp(column.type) else column


def _configuration(task: Task) -> dict[str, str]:
    network = f"{64 + _NETWORK_MB_A_QUERY * len(task.questions.queries)}mb"
    return {
        "pipeline.object-reuse": "true",
        "taskmanager.memory.managed.size": "0",
        "taskmanager.memory.network.min": network,
        "taskmanager.memory.network.max": network,
        "rest.address": "localhost",
        "rest.bind-address": "localhost",
        "execution.runtime-mode": "STREAMING",
        "table.local-time-zone": "UTC",
        "restart-strategy.type": "none",
        "io.tmp.dirs": task.scratch,
        **dict(task.options),
    }


def _start_cluster(task: Task) -> tuple[Any, int]:
    """Start a session cluster with room for all queries at a time; return it and the port it listens at."""
    from pyflink.common import Configuration
    from pyflink.java_gateway import get_gateway

    configuration = Configuration()
    for name, value in {**_configuration(task), "rest.bind-port": "0", "rest.port": "0"}.items():
        configuration.set_string(name, value)
    package = get_gateway().jvm.org.apache.flink.runtime.minicluster
    described = package.MiniClusterConfiguration.Builder().setConfiguration(configuration._j_configuration)
    described = described.setNumTaskManagers(1).setNumSlotsPerTaskManager(task.cores * len(task.questions.queries))
    cluster = package.MiniCluster(described.build())
    cluster.start()
    return cluster, int(cluster.getRestAddress().get().getPort())


def _environment(task: Task, port: int, delays: dict[str, int]) -> StreamTableEnvironment:
    """Return an environment with every stream as a table, with event time and without."""
    from pyflink.common import Configuration
    from pyflink.datastream import StreamExecutionEnvironment
    from pyflink.java_gateway import get_gateway
    from pyflink.table import StreamTableEnvironment

    configuration = Configuration()
    settings = {**_configuration(task), "execution.target": "remote", "rest.port": str(port)}
    if task.mode == _MULTIWAY:
        settings[_MULTI_JOIN] = "true"
    for name, value in settings.items():
        configuration.set_string(name, value)
    # The environment that PyFlink makes by itself starts another cluster for each job.
    gateway = get_gateway()
    java = gateway.jvm.org.apache.flink.streaming.api.environment.StreamExecutionEnvironment
    no_jars = gateway.new_array(gateway.jvm.java.lang.String, 0)
    streaming = StreamExecutionEnvironment(
        java.createRemoteEnvironment("localhost", port, configuration._j_configuration, no_jars)
    )
    streaming.set_parallelism(task.cores)
    environment = StreamTableEnvironment.create(streaming)
    for stream in task.questions.streams:
        _show(environment, streaming, stream, task, delays[stream.name])
    return environment


def _show(environment: Any, streaming: Any, stream: JoinStream, task: Task, delay_ms: int) -> None:
    from pyflink.common import WatermarkStrategy
    from pyflink.datastream.connectors.file_system import FileEnumeratorProvider, FileSource
    from pyflink.datastream.formats.parquet import ParquetColumnarRowInputFormat
    from pyflink.table import DataTypes, Schema

    # The class takes its types as objects, and SQL's words are turned into those by Java alone.
    fields = [DataTypes.FIELD(column.name, _data_type(column.type)) for column in stream.columns]
    format = ParquetColumnarRowInputFormat(row_type=DataTypes.ROW(fields), is_utc_timestamp=True)
    source = FileSource.for_bulk_file_format(format, str(_merged(stream.name, task)))
    source = source.set_file_enumerator(FileEnumeratorProvider.default_non_splittable_file_enumerator()).build()
    rows = streaming.from_source(source, WatermarkStrategy.no_watermarks(), stream.name).set_parallelism(1)
    for timed in (False, True):
        schema = Schema.new_builder()
        for column in stream.columns:
            schema = schema.column(column.name, flink_sql.flink_type(column.type))
        if timed:
            schema = schema.column_by_expression(flink_sql.EVENT_TIME, flink_sql.event_time(stream))
            schema = schema.watermark(flink_sql.EVENT_TIME, flink_sql.watermark(delay_ms))
        shown = environment.from_data_stream(rows, schema.build())
        environment.create_temporary_view(flink_sql.table(stream.name, timed=timed), shown)


def _data_type(name: str) -> Any:
    from pyflink.table import DataTypes

    if name.startswith("decimal("):
        precision, scale = map(int, name[len("decimal(") : -1].split(","))
        return DataTypes.DECIMAL(precision, scale)
    if name == "timestamp":
        return DataTypes.TIMESTAMP(6)
    return getattr(DataTypes, flink_sql.flink_type(name))()


def _insert(environment: Any, task: Task, number: int) -> str:
    """Make the sink of a query; return the statement that fills it."""
    query, sink = task.questions.queries[number], f"sink_{number}"
    path = (task.results / query.name).as_uri() if task.check else None
    environment.execute_sql(flink_sql.sink(query, sink, path))
    text = flink_sql.select(query, task.questions.times(), interval_joins=task.mode != _MULTIWAY, as_numbers=task.check)
    return f"INSERT INTO `{sink}` {text}"


def _let_plan(environment: Any, statements: list[str], task: Task) -> None:
    """Let Flink plan the queries without running them. Raises UnableError with Flink's words."""
    from py4j.protocol import Py4JJavaError
    from pyflink.util.exceptions import JavaException

    try:
        if task.mode is None:
            for statement in statements:
                environment.explain_sql(statement)
            return
        plan = _together(environment, statements).explain()
    except (Py4JJavaError, JavaException) as error:
        raise UnableError(_own_words(error)) from error
    if task.mode == _MULTIWAY and "MultiJoin" not in plan:
        raise UnableError("Flink plans no multi-way join here: the operator needs a key that all inputs share")


def _submit(environment: Any, statements: list[str], task: Task) -> list[str]:
    """Start the queries; return the jobs' names."""
    if task.mode is None:
        results = [environment.execute_sql(statement) for statement in statements]
    else:
        results = [_together(environment, statements).execute()]
    return [str(result.get_job_client().get_job_id()) for result in results]


def _together(environment: Any, statements: list[str]) -> Any:
    together = environment.create_statement_set()
    for statement in statements:
        together.add_insert_sql(statement)
    return together


def _own_words(error: Any) -> str:
    """Return the message of the innermost exception that has one."""
    cause = getattr(error, "java_exception", None)
    if cause is None:
        # PyFlink kept the stack trace alone, with the innermost cause last.
        return str(error).rpartition("Caused by: ")[2].partition("\n\tat ")[0]
    found = str(cause.toString())
    while cause is not None:
        found, cause = cause.getMessage() or found, cause.getCause()
    return found


def _wait(jobs: list[str], port: int, started: float) -> float:
    """Wait for the jobs; return how long after `started` the last was done, by Flink's clock. Raises PlaitError."""
    ends = []
    for job in jobs:
        while True:
            found = _ask(port, f"jobs/{job}")
            if found["end-time"] > 0 and found["state"] not in ("FAILING", "CANCELLING"):
                break
            time.sleep(0.1)
        if found["state"] != "FINISHED":
            cause = _ask(port, f"jobs/{job}/exceptions").get("exceptionHistory", {}).get("entries", [])
            raise PlaitError(f"Flink's job ended {found['state']}: {cause[0]['stacktrace'] if cause else 'no cause'}")
        ends.append(float(found["end-time"]) / 1000)
    return max(ends) - started


def _ask(port: int, path: str) -> Any:
    with urllib.request.urlopen(f"http://localhost:{port}/{path}") as answer:
        return json.load(answer)
