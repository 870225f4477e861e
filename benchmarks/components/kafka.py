"""`python -m benchmarks kafka`: the three-way join of topics, on a broker that is started for it.

Each stream is a topic with a JSON object a row, which was written before anything is timed; a run reads what is there
and ends. Two questions: what of the rate from Parquet files is left where rows come from Kafka, until they are decoded
and stored and for the whole join; and how Plait and Flink, whose connector reads the same topics,
fare with one query and with several, which differ in a selection.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from benchmarks.arguments import numbers, parser, positive
from benchmarks.figures import write_json
from benchmarks.surroundings import surroundings
from benchmarks.systems.kafka_topics import topic_of
from benchmarks.systems.launch import run_fresh
from benchmarks.systems.task import Outcome, Task
from benchmarks.workloads.data import Workload, file_name, prepare
from benchmarks.workloads.joins import QuerySet
from benchmarks.workloads.three_way import THREE_WAY

_PARTITIONS: Final = 2
_FLUSH_S: Final = 120.0
_SELECTED: Final = 10
"""A query of several takes one of so many rows of r."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """One run: `source` is ``kafka`` or ``parquet``; rates count each row once, however many queries read it.
    `ingest_seconds`: until rows were decoded and stored, where the system tells that.
    """

    system: str
    source: str
    queries: int
    rows: int
    seconds: float
    ingest_seconds: float | None = None

    @property
    def rate(self) -> float:
        """Rows a second."""
        return self.rows / self.seconds


def questions(count: int) -> QuerySet:
    """Return one query, or several that differ in which tenth of the rows of r they take."""
    (query,) = THREE_WAY.queries
    if count == 1:
        return THREE_WAY
    queries = (
        replace(query, name=f"triples{n}", selections=(("r", f"MOD(r.rv, {_SELECTED}) = {n % _SELECTED}"),))
        for n in range(count)
    )
    return replace(THREE_WAY, queries=tuple(queries))


def main(arguments: list[str]) -> int:
    """Measure what the arguments ask for."""
    options = _parser().parse_args(arguments)
    from tests.kafka.broker import running_broker

    data = Workload(rows=options.rows, seed=options.seed)
    folder = prepare(data, options.dir)
    console = Console()
    with running_broker() as broker, tempfile.TemporaryDirectory(prefix="plait-kafka-") as scratch:
        fill(broker.address, folder, data.files)
        task = Task(
            system="plait",
            questions=THREE_WAY,
            data=str(folder),
            files=data.files,
            scratch=scratch,
            cores=options.cores,
            options=tuple(options.conf),
            slice_us=data.span_s * 1_000_000 // data.files,
        )
        if options.check:
            return _check(task, broker.address, options.queries, console)
        found = []
        for part in [options.part] * options.repeat if options.part else [*_PARTS] * options.repeat:
            for timed in _PARTS[part](task, broker.address, options.queries):
                console.print(f"{timed.system} from {timed.source}, {timed.queries} queries: {timed.seconds:.1f} s")
                found.append(timed)
    console.print(table(found))
    if options.json is not None:
        write_json(options.json, {"surroundings": surroundings(), "runs": [asdict(each) for each in found]})
    return 0


def _parser() -> argparse.ArgumentParser:
    found = parser("kafka", "The three-way join of topics: what Kafka takes, and Flink on the same broker.")
    found.add_argument("--rows", type=positive, default=1_000_000, help="rows of each stream")
    found.add_argument("--queries", type=numbers, default=(1, 5, 20), help="how many queries, beside Flink")
    found.add_argument("--part", choices=sorted(_PARTS), help="only this one")
    found.add_argument("--repeat", type=positive, default=1)
    found.add_argument("--check", action="store_true", help="compare the results of both systems, and time nothing")
    return found


def fill(broker: str, folder: Path, files: int) -> None:
    """Write every row of the streams' files into topics, one partition after the other, in their order."""
    import duckdb
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    made = [NewTopic(topic_of(stream), num_partitions=_PARTITIONS) for stream in THREE_WAY.streams]
    admin = AdminClient({"bootstrap.servers": broker})
    for done in admin.create_topics(made).values():
        done.result(_FLUSH_S)
    producer = Producer({"bootstrap.servers": broker, "linger.ms": 50, "queue.buffering.max.messages": 1_000_000})
    for file in range(files):
        for stream in THREE_WAY.streams:
            columns = ", ".join(
                f"{column.name} := strftime({column.name} AT TIME ZONE 'UTC', '%Y-%m-%d %H:%M:%S.%f')"
                if column.type == "timestamp"
                else f"{column.name} := {column.name}"
                for column in stream.columns
            )
            text = f"SELECT to_json(struct_pack({columns}))::VARCHAR FROM '{folder / stream.name / file_name(file)}'"
            for number, (value,) in enumerate(duckdb.execute(text).fetchall()):
                producer.produce(topic_of(stream), value=value, partition=number % _PARTITIONS)
                if number % 10_000 == 0:
                    producer.poll(0)
            producer.flush(_FLUSH_S)


def _from_files(task: Task, broker: str, _: tuple[int, ...]) -> Iterator[Timed]:
    for address in (None, broker):
        yield _timed(replace(task, broker=address))


def _against_flink(task: Task, broker: str, counts: tuple[int, ...]) -> Iterator[Timed]:
    for count in counts:
        for system, mode in (("plait", None), ("flink", "set")):
            yield _timed(replace(task, system=system, mode=mode, broker=broker, questions=questions(count)))


_PARTS: Final = {"files": _from_files, "flink": _against_flink}


def _timed(task: Task) -> Timed:
    outcome = run_fresh(task).outcome
    return Timed(
        system=task.system,
        source="parquet" if task.broker is None else "kafka",
        queries=len(task.questions.queries),
        rows=outcome.rows_in,
        seconds=outcome.seconds,
        ingest_seconds=outcome.ingest_seconds,
    )


def _check(task: Task, broker: str, counts: tuple[int, ...], console: Console) -> int:
    """Say whether both systems have the results that Plait has of the files; return 1 if not."""
    wrong = 0
    for count in counts:
        asked = replace(task, questions=questions(count), check=True)
        of_files = _answers(run_fresh(asked).outcome)
        for system, mode in (("plait", None), ("flink", "set")):
            found = _answers(run_fresh(replace(asked, system=system, mode=mode, broker=broker)).outcome)
            is_equal = found == of_files
            wrong += not is_equal
            rows = sum(rows for rows, _ in of_files.values())
            console.print(f"{count} queries, {system}: {'equal' if is_equal else 'DIFFERENT'}, {rows:,} results")
    return int(wrong > 0)


def _answers(outcome: Outcome) -> dict[str, tuple[int, Any]]:
    return {answer.query: (answer.rows, json.dumps(asdict(answer)["checksum"])) for answer in outcome.answers}


def table(found: list[Timed]) -> Table:
    """Return the median rate of each kind of run."""
    shown = Table("system", "from", "queries", "rows/s", "s", "to the end of decoding, rows/s", title="three-way join")
    kinds = dict.fromkeys((each.system, each.source, each.queries) for each in found)
    for system, source, count in kinds:
        same = [each for each in found if (each.system, each.source, each.queries) == (system, source, count)]
        rate, seconds = median(each.rate for each in same), median(each.seconds for each in same)
        decoded = [each.rows / each.ingest_seconds for each in same if each.ingest_seconds]
        told = f"{median(decoded):,.0f}" if decoded else ""
        shown.add_row(system, source, str(count), f"{rate:,.0f}", f"{seconds:.1f}", told)
    return shown


__all__ = ["Timed", "fill", "main", "questions", "table"]
