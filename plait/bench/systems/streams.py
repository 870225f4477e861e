"""Read streams with Spark, one file of each a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.bench.data import file_name
from plait.bench.systems.task import Task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def open_streams(spark: SparkSession, task: Task, *, named: bool = True) -> dict[str, DataFrame]:
    """Return the streams over the first ``task.files`` files. `named`: as Plait's sources, which Spark calls
    evolvable.
    """
    chosen = "{" + ",".join(file_name(file) for file in range(task.files)) + "}"
    streams = {}
    for stream in task.questions.streams:
        reader = spark.readStream.name(stream.name) if named else spark.readStream
        reader = reader.schema(stream.ddl).option("maxFilesPerTrigger", 1).option("pathGlobFilter", chosen)
        streams[stream.name] = reader.parquet(str(task.data_path / stream.name))
    return streams
