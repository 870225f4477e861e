"""Results as records of a Kafka topic: written by Spark, each at least once, or in transactions, each exactly once.

Each record says in its headers what it is: of which ``checkpoint``, ``query`` and ``batch``, and its ``index`` there.

**At least once**: a batch that was cut short is written again, and what of it had come through is there twice. The same
result has the same index however often, and in whatever order, the batch is written: a digest of the record, and the
how manieth of its equals it is. A consumer that drops what it has seen under these four has every result once.

**Exactly once**: this process sends the records of a batch in one transaction, after the batch is committed
(`plait.sinks.transactions`). Their index is their place. A consumer with ``isolation.level=read_committed`` has every
result once. Here alone does each row of results become a Python object, two strings of bytes that Spark has made:
Kafka's client takes records no other way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from plait.option_values import NAME, words
from plait.query.model import SinkSpec
from plait.sinks.kind import ResultColumn, Results, Sink, SinkKind
from plait.sinks.options import SinkProblem, accepting, option_of
from plait.sinks.staging import Publication
from plait.sinks.storable import SparkType, csv_problem, json_problem
from plait.sinks.transactions import OWN, send_once, was_sent
from plait.spelling import backquoted, did_you_mean, folded, quoted

SERVERS: Final = "kafka.bootstrap.servers"
FORMATS: Final = ("json", "csv", "avro")
DELIVERIES: Final = ("at least once", "exactly once")

_VALUES: Final[Mapping[str, str]] = MappingProxyType(
    {"json": "to_json(struct(*))", "csv": "to_csv(struct(*))", "avro": "to_avro(struct(*))"}
)
_TYPE_PROBLEMS: Final[Mapping[str, Callable[[SparkType], str | None]]] = MappingProxyType(
    {"json": json_problem, "csv": csv_problem, "avro": json_problem}
)


class Kafka(SinkKind):
    """A topic. `format` says what a record's value is, `key` which column is its key."""

    name = "kafka"
    options = (
        *accepting(NAME, "topic", "key"),
        *accepting(words(*FORMATS), "format"),
        *accepting(words(*DELIVERIES), "delivery"),
    )
    option_prefix = "kafka."
    required = ("topic", SERVERS)
    examples = MappingProxyType({"topic": "topic 'results'", SERVERS: f"{SERVERS} 'host:9092'"})
    by_name = True

    def problems(self, spec: SinkSpec) -> list[SinkProblem]:
        """Refuse options that transactions depend on."""
        problems, own = super().problems(spec), {f"{self.option_prefix}{name}" for name in OWN}
        for name in (name for name, _ in spec.options if self.remembers(spec) and folded(name) in own):
            message = f"{name}: Plait sets it itself with delivery 'exactly once'; leave it out"
            problems.append(SinkProblem(message=message, option=name))
        return problems

    def column_problems(self, spec: SinkSpec, columns: Sequence[ResultColumn]) -> list[SinkProblem]:
        """Look at types, and at the column that is to be the key."""
        format_, problems = format_of_values(spec), []
        for place, (name, type_) in enumerate(columns):
            advice = None if type_ is None else _TYPE_PROBLEMS[format_](type_)
            if advice is not None:
                shown = f"column '{name}'" if name is not None else f"column {place + 1}"
                message = f"{shown} has type {type_}, which a record in {format_} cannot hold; {advice}"
                problems.append(SinkProblem(message=message, column=place))
        key, known = option_of(spec.options, "key"), [name for name, _ in columns if name is not None]
        if key is not None and len(known) == len(columns) and folded(key) not in map(folded, known):
            message = f"key names '{key}', which is no column of the results{did_you_mean(key, known)}"
            problems.append(SinkProblem(message=message, option="key"))
        return problems

    def connectors(self, spec: SinkSpec) -> tuple[str, ...]:
        """Return Kafka's name and that of the format of records."""
        return (self.name, format_of_values(spec))

    def remembers(self, spec: SinkSpec) -> bool:
        """Tell whether batches are sent in transactions."""
        return (option_of(spec.options, "delivery") or "").strip().lower() == DELIVERIES[1]

    def deliver(self, sink: Sink, results: Results) -> tuple[Publication, ...]:
        """Send the results in a transaction, or let Spark send them."""
        topic = self.place(sink.spec)
        if self.remembers(sink.spec):
            parts = (_packed(sink.spec, part).toArrow() for part in results.parts)
            send_once(results, topic, self._settings(sink.spec), parts)
            return ()
        records = records_of(sink.spec, results)
        options = {f"{self.option_prefix}{name}": value for name, value in self._settings(sink.spec).items()}
        records.write.format("kafka").options(**options).option("topic", topic).mode("append").save()
        return ()

    def has(self, sink: Sink, results: Results) -> bool:
        """Ask the broker."""
        return was_sent(results, self.place(sink.spec), self._settings(sink.spec))

    def place(self, spec: SinkSpec) -> str:
        """Return the topic."""
        return option_of(spec.options, "topic") or ""

    def _settings(self, spec: SinkSpec) -> dict[str, str]:
        """Return what the user says to Kafka's client."""
        start = len(self.option_prefix)
        return {name[start:]: value for name, value in spec.options if folded(name).startswith(self.option_prefix)}


def format_of_values(spec: SinkSpec) -> str:
    """Return what the values of records are."""
    stated = (option_of(spec.options, "format") or "").strip().lower()
    return stated if stated in FORMATS else FORMATS[0]  # of another one the check of options tells


def records_of(spec: SinkSpec, results: Results) -> Any:
    """Return the results as a DataFrame of records: ``key``, ``value`` and ``headers``."""
    packed = _packed(spec, results.rows)
    told = packed.selectExpr("*", "sha2(concat(if(key IS NULL, X'00', concat(X'01', key)), value), 256) AS digest")
    # Partitioned by hand: a window function would shuffle into as many partitions as a whole cluster has.
    spread = told.repartition(results.tasks, "digest")
    numbered = spread.selectExpr("*", "row_number() OVER (PARTITION BY digest ORDER BY digest) AS number")
    headers = {
        "checkpoint": quoted(results.checkpoint),
        "query": quoted(results.query),
        "batch": quoted(str(results.batch)),
        "index": "concat(digest, '-', number)",
    }
    structs = (
        f"named_struct('key', {quoted(name)}, 'value', CAST({value} AS BINARY))" for name, value in headers.items()
    )
    return numbered.selectExpr("key", "value", f"array({', '.join(structs)}) AS headers")


def _packed(spec: SinkSpec, rows: Any) -> Any:
    """Return the key and the value of each record."""
    key = option_of(spec.options, "key")
    keyed = "CAST(NULL AS STRING)" if key is None else f"CAST({backquoted(key)} AS STRING)"
    return rows.selectExpr(
        f"CAST({keyed} AS BINARY) AS key", f"CAST({_VALUES[format_of_values(spec)]} AS BINARY) AS value"
    )


__all__ = ["DELIVERIES", "FORMATS", "SERVERS", "Kafka", "format_of_values", "records_of"]
