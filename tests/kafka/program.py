"""A program that reads topics while they change; what came of it is its last line."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import plait
from plait.errors import PlaitError
from plait.runtime.run_handle import RunHandle
from plait.runtime.spark.session import open_session
from plait.sql import load_script
from tests.kafka.topics import Record, Topics

_PATIENCE_S = 120
_STREAM = """
CREATE STREAM {topic} USING kafka
  OPTIONS (kafka.bootstrap.servers '{broker}', subscribe '{topic}', startingOffsets 'earliest', {more})
  TIMESTAMP BY timestamp WINDOW INTERVAL 1 HOUR DELAY INTERVAL 1 HOUR
  FORMAT json (id BIGINT) AS SELECT id, timestamp FROM source;
CREATE QUERY of_{topic} INTO {sink} AS SELECT id FROM {topic};
"""


def numbered(ids: range, partitions: int = 1) -> list[Record]:
    """Return a record for each number."""
    return [Record(value=json.dumps({"id": n}), partition=n % partitions, at_ms=1767261600000 + n) for n in ids]


def main(broker: str, place: Path) -> None:
    """Run all of it in one session."""
    spark = open_session("local[2]", {"spark.sql.shuffle.partitions": "2"}, formats=["kafka", "avro"])
    topics = Topics(broker)
    topics.create("grown", 2)
    for topic in ("shrunk", "numbers", "results", "results-avro"):
        topics.create(topic)
    told = grow(spark, broker, place / "growing", topics) | shrink(spark, broker, place / "shrinking", topics)
    told |= repeat(spark, broker, place / "repeating", topics)
    print(json.dumps(told | {"nobody": refusal(spark, "127.0.0.1:1", place / "nobody")}))
    spark.stop()


def engine_of(
    spark: Any, broker: str, place: Path, topic: str, more: str = "failOnDataLoss true", sink: str = "memory"
) -> plait.Engine:
    """Return an engine over one topic."""
    engine = plait.Engine(spark, checkpoint=str(place))
    engine.load(load_script(_STREAM.format(topic=topic, broker=broker, more=more, sink=sink)))
    return engine


def found(engine: plait.Engine, topic: str) -> list[int]:
    """Return the numbers that have come."""
    return sorted(engine.results(f"of_{topic}")["id"].to_pylist())


def wait(run: RunHandle, holds: Callable[[], bool]) -> None:
    """Wait until something holds that comes of a run; if the run fails, with its error."""
    until = time.monotonic() + _PATIENCE_S
    while not holds():
        if run.await_termination(0.1) or time.monotonic() > until:
            raise TimeoutError(f"it did not come to that: {run.status()}")


def grow(spark: Any, broker: str, place: Path, topics: Topics) -> dict[str, Any]:
    """Add a partition, of which another stays idle, while a run goes on."""
    topics.send("grown", numbered(range(10), 2))
    engine = engine_of(spark, broker, place, "grown", "kafka.metadata.max.age.ms '500'")
    run = engine.start("0 seconds")
    wait(run, lambda: len(found(engine, "grown")) == 10)
    first = found(engine, "grown")
    topics.grow("grown", 3)
    topics.send("grown", [Record(value=json.dumps({"id": n}), partition=2, at_ms=1767261600000) for n in range(10, 40)])
    wait(run, lambda: len(found(engine, "grown")) == 40)
    lags: list[dict[str, int]] = [{}]

    def has_caught_up() -> bool:
        lags.append(engine.status()["lag"].get("grown", {}))
        return lags[-1].get("grown-2") == 0

    wait(run, has_caught_up)
    run.stop()
    topics.send("grown", numbered(range(40, 41), 2))
    why = [lines_of(engine, "grown", n) for n in (3, 30, 40, 41)]
    return {"first": first, "lag": lags[-1], "results": found(engine, "grown"), "why": why}


def lines_of(engine: plait.Engine, topic: str, number: int) -> list[str]:
    """Return what has become of a record."""
    return engine.why(f"of_{topic}", f"{topic}.id = {number}").as_text().splitlines()[1:]


def shrink(spark: Any, broker: str, place: Path, topics: Topics) -> dict[str, Any]:
    """Delete records that were not read, for a stream that may go on and for one that may not."""
    topics.send("shrunk", numbered(range(100, 104)))
    strict, tolerant = (
        engine_of(spark, broker, place / more, "shrunk", f"failOnDataLoss {more}") for more in ("true", "false")
    )
    for engine in (strict, tolerant):
        engine.run_available()
    topics.send("shrunk", numbered(range(104, 120)))
    topics.expire("shrunk", 0, 10)
    try:
        strict.run_available()
        refused = ""
    except PlaitError as error:
        refused = str(error)
    summary = tolerant.run_available()
    lost = lines_of(tolerant, "shrunk", 112)
    return {"refused": refused, "gone": summary.sources[0].gone, "shrunk": found(tolerant, "shrunk"), "lost": lost}


def repeat(spark: Any, broker: str, place: Path, topics: Topics) -> dict[str, Any]:
    """Send a batch, and then again from the checkpoint as it was before, as a run does that was killed meanwhile."""
    sink = f"kafka OPTIONS (kafka.bootstrap.servers '{broker}', topic 'results', key 'id')"

    def run(checkpoint: str) -> None:
        engine = engine_of(spark, broker, place / checkpoint, "numbers", sink=sink)
        avro = plait.sinks.kafka(broker, "results-avro", format="avro")
        engine.query("in_avro", "SELECT id FROM numbers", sink=avro)
        engine.run_available()

    topics.send("numbers", numbered(range(5)))
    run("now")
    shutil.copytree(place / "now", place / "before")
    topics.send("numbers", [*numbered(range(5, 8)), *numbered(range(5, 8))])
    run("now")
    run("before")
    sent = [(key, value.decode(), headers) for key, value, headers in topics.read("results")]
    return {"sent": sent, "avro": [value.hex() for _, value, _ in topics.read("results-avro")]}


def refusal(spark: Any, broker: str, place: Path) -> str:
    """Return what is said where nobody answers."""
    more = "kafka.request.timeout.ms '1000', kafka.default.api.timeout.ms '1500'"
    try:
        engine_of(spark, broker, place, "unseen", more).run_available()
    except PlaitError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
