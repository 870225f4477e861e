"""The settings that all programs on Spark have in the suite, and those that Plait's own session adds."""

from __future__ import annotations

from benchmarks.systems.system import Setting

ON_SPARK = (
    Setting(
        name="spark.hadoop.fs.file.impl, spark.sql.streaming.checkpointFileManagerClass",
        value="RawLocalFileSystem, FileSystemBasedCheckpointFileManager",
        reason="without Hadoop's native library Spark else starts a process for every permission it sets on a local "
        "disk; Plait's own session has it so, and so has Spark here",
    ),
    Setting(
        name="spark.driver.extraJavaOptions",
        value="-XX:+UseParallelGC -XX:TieredStopAtLevel=1",
        reason="the collector made for throughput and the quick compiler alone, which take less processor time; as "
        "Plait's own session has it",
    ),
)

OF_PLAIT = (
    *ON_SPARK,
    Setting(name="spark.sql.adaptive.enabled", value="false", reason="Plait's own session: micro-batch jobs are small"),
    Setting(
        name="spark.sql.execution.arrow.maxRecordsPerBatch",
        value="100000",
        reason="Plait's own session: fewer, larger batches on the way to Python",
    ),
    Setting(
        name="spark.python.unix.domain.socket.enabled, spark.python.daemon.module",
        value="true, plait.runtime.spark.daemon",
        reason="Plait's own session: how it talks to Python workers, and that they are forked with the kernels loaded",
    ),
    Setting(name="spark.driver.memory", value="1g, Spark's default", reason="Plait's state lies outside the heap"),
)
