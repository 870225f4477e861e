"""Read streams with Spark: one file of each a batch, or of live streams whatever has arrived."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.systems.task import Task
from benchmarks.workloads.data import file_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def open_streams(
    spark: SparkSession, task: Task, *, named: bool = True, root: Path | None = None
) -> dict[str, DataFrame]:
    """Return the streams over the first ``task.files`` files. `named`: as Plait's sources, which Spark calls
    evolvable. `root`: where the files are, if not where the task says.
    """
    streams = {}
    for stream in task.questions.streams:
        reader = spark.readStream.name(stream.name) if named else spark.readStream
        options = read_options(task, stream.name, root=root, is_small=not task.live)
        streams[stream.name] = reader.schema(stream.ddl).format("parquet").options(**options).load()
    return streams


def read_options(task: Task, stream: str, *, root: Path | None = None, is_small: bool) -> dict[str, str]:
    """Return how Spark is to read a stream. `is_small`: one file a batch; else the reader's own way."""
    folder = task.arriving if task.live else root or task.data_path
    chosen = "{" + ",".join(file_name(file) for file in range(task.files)) + "}"
    bound = {"maxFilesPerTrigger": "1"} if is_small else {}
    return {"path": str(folder / stream), "pathGlobFilter": chosen, **bound}


def let_arrive(task: Task, files: range, root: Path) -> None:
    """Let these files of every stream appear below `root`, each at once: nobody reads hidden files."""
    for stream in task.questions.streams:
        (root / stream.name).mkdir(parents=True, exist_ok=True)
        for name in map(file_name, files):
            source, target = task.data_path / stream.name / name, root / stream.name / name
            try:
                os.link(source, target)
            except OSError:
                hidden = target.with_name(f".{name}")
                shutil.copy2(source, hidden)
                hidden.rename(target)
