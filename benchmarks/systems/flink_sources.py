"""Streams as tables of Flink's: Parquet files that one reader takes in the order of their names.

Files of a stream come in the order of time, but Flink's file source hands out those that wait in no order (its own
assigners say so), and behind a watermark they would be late. The source takes an assigner of the user's; it has to be
a class of Java's, so it is compiled here, by the compiler that Flink itself compiles queries with.

Inside a file rows are shuffled: the watermark is behind by what the oldest straggler needs, found from the data, so
that no row is late and no more state is kept than that.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.systems import flink_cluster, flink_sql, kafka_topics
from benchmarks.systems.task import Task
from benchmarks.workloads.data import file_name
from benchmarks.workloads.joins import JoinStream

if TYPE_CHECKING:
    from pyflink.table import StreamTableEnvironment

DISCOVERY_MS = 100
_IN_ORDER = """
package plait;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.flink.connector.file.src.FileSourceSplit;
import org.apache.flink.connector.file.src.assigners.FileSplitAssigner;

public class InOrder implements FileSplitAssigner.Provider {
    public FileSplitAssigner create(Collection splits) {
        FileSplitAssigner made = new Assigner();
        made.addSplits(splits);
        return made;
    }

    public static class Assigner implements FileSplitAssigner {
        private final TreeMap waiting = new TreeMap();

        public Optional getNext(String host) {
            return waiting.isEmpty() ? Optional.empty() : Optional.of(waiting.pollFirstEntry().getValue());
        }

        public void addSplits(Collection splits) {
            for (Object split : splits) {
                waiting.put(((FileSourceSplit) split).path().toString(), split);
            }
        }

        public Collection remainingSplits() {
            return new ArrayList(waiting.values());
        }
    }
}
"""


def compile_assigner(task: Task) -> None:
    """Put the assigner where the JVM finds it."""
    from pyflink.java_gateway import get_gateway

    compiler = get_gateway().jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(_IN_ORDER)
    found = compiler.getBytecodes()
    for name in found:
        path = flink_cluster.classes(task).joinpath(*name.split(".")).with_suffix(".class")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(found[name]))


def show_streams(environment: StreamTableEnvironment, streaming: Any, task: Task) -> None:
    """Make every stream a table, with event time and without: a regular join must not have one."""
    for stream in task.questions.streams:
        if task.broker is not None:
            for timed in (False, True):
                environment.execute_sql(_topic(stream, task, task.broker, timed=timed))
            continue
        rows = _rows(streaming, stream, task)
        for timed in (False, True):
            schema = _schema(stream, late_ms(stream, task) if timed else None)
            shown = environment.from_data_stream(rows, schema)
            environment.create_temporary_view(flink_sql.table(stream.name, timed=timed), shown)


def _rows(streaming: Any, stream: JoinStream, task: Task) -> Any:
    from pyflink.common import Duration, WatermarkStrategy
    from pyflink.datastream.connectors.file_system import FileEnumeratorProvider, FileSource, FileSplitAssignerProvider
    from pyflink.datastream.formats.parquet import ParquetColumnarRowInputFormat
    from pyflink.java_gateway import get_gateway
    from pyflink.table import DataTypes

    # The class takes its types as objects, and SQL's words are turned into those by Java alone.
    fields = [DataTypes.FIELD(column.name, _data_type(column.type)) for column in stream.columns]
    format = ParquetColumnarRowInputFormat(row_type=DataTypes.ROW(fields), is_utc_timestamp=True)
    folder = (task.arriving if task.live else task.data_path) / stream.name
    paths = [folder] if task.live else [folder / file_name(number) for number in range(task.files)]
    source = FileSource.for_bulk_file_format(format, *(path.as_uri() for path in paths))
    source = source.set_file_enumerator(FileEnumeratorProvider.default_non_splittable_file_enumerator())
    source = source.set_split_assigner(FileSplitAssignerProvider(get_gateway().jvm.plait.InOrder()))
    if task.live:
        folder.mkdir(parents=True, exist_ok=True)
        source = source.monitor_continuously(Duration.of_millis(DISCOVERY_MS))
    # One reader, or two files would be read at a time.
    return streaming.from_source(source.build(), WatermarkStrategy.no_watermarks(), stream.name).set_parallelism(1)


def _schema(stream: JoinStream, late: int | None) -> Any:
    from pyflink.table import Schema

    schema = Schema.new_builder()
    for column in stream.columns:
        schema = schema.column(column.name, flink_sql.flink_type(column.type))
    if late is not None:
        schema = schema.column_by_expression(flink_sql.EVENT_TIME, flink_sql.event_time(stream))
        schema = schema.watermark(flink_sql.EVENT_TIME, flink_sql.watermark(late))
    return schema.build()


def _topic(stream: JoinStream, task: Task, broker: str, *, timed: bool) -> str:
    """Return the DDL of a stream that is a topic, read to the end it has now."""
    columns = [f"`{column.name}` {flink_sql.flink_type(column.type)}" for column in stream.columns]
    if timed:
        watermark = flink_sql.watermark(late_ms(stream, task))
        columns += [f"`{flink_sql.EVENT_TIME}` AS {flink_sql.event_time(stream)}"]
        columns += [f"WATERMARK FOR `{flink_sql.EVENT_TIME}` AS {watermark}"]
    options = {
        "connector": "kafka",
        "topic": kafka_topics.topic_of(stream),
        "properties.bootstrap.servers": broker,
        "scan.startup.mode": "earliest-offset",
        "scan.bounded.mode": "latest-offset",
        "format": "json",
    }
    told = ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
    return f"CREATE TEMPORARY TABLE {flink_sql.table(stream.name, timed=timed)} ({', '.join(columns)}) WITH ({told})"


def _data_type(name: str) -> Any:
    from pyflink.table import DataTypes

    if name.startswith("decimal("):
        precision, scale = map(int, name[len("decimal(") : -1].split(","))
        return DataTypes.DECIMAL(precision, scale)
    if name == "timestamp":
        return DataTypes.TIMESTAMP(6)
    return getattr(DataTypes, flink_sql.flink_type(name))()


def late_ms(stream: JoinStream, task: Task) -> int:
    """Return how many milliseconds the oldest straggler of a stream's files is late."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    newest, late_us = None, 0
    for number in range(task.files):
        path: Path = task.data_path / stream.name / file_name(number)
        found = pq.read_table(path, columns=[stream.time]).column(0).cast(pa.timestamp("us")).cast(pa.int64())
        taus = found.to_numpy()
        if len(taus):
            ahead = np.maximum.accumulate(taus if newest is None else np.maximum(taus, newest))
            late_us, newest = max(late_us, int((ahead - taus).max())), int(ahead[-1])
    # Rounded up, and one more, because the cut to milliseconds may make a row that much later.
    return -(-late_us // 1000) + 1
