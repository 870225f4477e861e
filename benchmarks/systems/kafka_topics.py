"""Streams as topics of Kafka's: every row a record, a JSON object, in the order of the files."""

from __future__ import annotations

from typing import Final

from benchmarks.systems.task import Task
from benchmarks.workloads.joins import JoinStream

DELAY_SLICES: Final = 2
"""A batch ends anywhere in a file, whose rows are in no order, and partitions are read side by side."""


def topic_of(stream: JoinStream) -> str:
    """Return the topic of a stream."""
    return f"benchmark-{stream.name}"


def formats_of(task: Task) -> list[str]:
    """Return the formats that Spark needs a connector for."""
    return [] if task.broker is None else ["kafka"]


def reader_options(broker: str, stream: JoinStream) -> dict[str, str]:
    """Return how Spark is to read the topic of a stream."""
    return {"kafka.bootstrap.servers": broker, "subscribe": topic_of(stream), "startingOffsets": "earliest"}


def decoded(stream: JoinStream) -> str:
    """Return the expression by which Spark decodes a value.

    >>> from benchmarks.workloads.three_way import THREE_WAY
    >>> decoded(THREE_WAY.streams[0])
    "from_json(CAST(value AS STRING), 'ts timestamp, ra bigint, rv bigint') AS decoded"
    """
    return f"from_json(CAST(value AS STRING), '{stream.ddl}') AS decoded"


def script(task: Task, broker: str) -> str:
    """Return the statements of Plait's for the streams."""
    delay = DELAY_SLICES * task.slice_us
    return "".join(
        f"CREATE STREAM {stream.name} USING kafka OPTIONS ("
        + ", ".join(f"{name} '{value}'" for name, value in reader_options(broker, stream).items())
        + f") TIMESTAMP BY {stream.time} DELAY INTERVAL {delay} MICROSECONDS FORMAT json ({stream.ddl});\n"
        for stream in task.questions.streams
    )


__all__ = ["DELAY_SLICES", "decoded", "formats_of", "reader_options", "script", "topic_of"]
