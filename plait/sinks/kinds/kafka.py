"""Results as records of a Kafka topic, written by Spark, each at least once.

A batch that was cut short is written again, and what of it had come through is there twice. So each record says in its
headers what it is: of which ``checkpoint``, ``query`` and ``batch``, and its ``index`` there. The same result has the
same index however often, and in whatever order, the batch is written: a digest of the record, and the how manieth of
its equals it is. A consumer that drops what it has seen under these four has every result once.
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
from plait.spelling import backquoted, did_you_mean, folded

SERVERS: Final = "kafka.bootstrap.servers"
FORMATS: Final = ("json", "csv", "avro")

_VALUES: Final[Mapping[str, str]] = MappingProxyType(
    {"json": "to_json(struct(*))", "csv": "to_csv(struct(*))", "avro": "to_avro(struct(*))"}
)
_TYPE_PROBLEMS: Final[Mapping[str, Callable[[SparkType], str | None]]] = MappingProxyType(
    {"json": json_problem, "csv": csv_problem, "avro": json_problem}
)


class Kafka(SinkKind):
    """A topic. `format` says what a record's value is, `key` which column is its key."""

    name = "kafka"
    options = (*accepting(NAME, "topic", "key"), *accepting(words(*FORMATS), "format"))
    option_prefix = "kafka."
    required = ("topic", SERVERS)
    examples = MappingProxyType({"topic": "topic 'results'", SERVERS: f"{SERVERS} 'host:9092'"})
    by_name = True

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

    def deliver(self, sink: Sink, results: Results) -> tuple[Publication, ...]:
        """Let Spark send the results."""
        options = {name: value for name, value in sink.spec.options if folded(name).startswith(self.option_prefix)}
        topic = option_of(sink.spec.options, "topic") or ""
        records = records_of(sink.spec, results)
        records.write.format("kafka").options(**options).option("topic", topic).mode("append").save()
        return ()


def format_of_values(spec: SinkSpec) -> str:
    """Return what the values of records are."""
    stated = (option_of(spec.options, "format") or "").strip().lower()
    return stated if stated in FORMATS else FORMATS[0]  # of another one the check of options tells


def record_formats(spec: SinkSpec) -> tuple[str, ...]:
    """Return the format of a sink's records, nothing if it has none."""
    return (format_of_values(spec),) if folded(spec.format) == Kafka.name else ()


def records_of(spec: SinkSpec, results: Results) -> Any:
    """Return the results as a DataFrame of records: ``key``, ``value`` and ``headers``."""
    key = option_of(spec.options, "key")
    keyed = "CAST(NULL AS STRING)" if key is None else f"CAST({backquoted(key)} AS STRING)"
    packed = results.rows.selectExpr(
        f"CAST({keyed} AS BINARY) AS key", f"CAST({_VALUES[format_of_values(spec)]} AS BINARY) AS value"
    )
    told = packed.selectExpr("*", "sha2(concat(if(key IS NULL, X'00', concat(X'01', key)), value), 256) AS digest")
    # Partitioned by hand: a window function would shuffle into as many partitions as a whole cluster has.
    spread = told.repartition(results.tasks, "digest")
    numbered = spread.selectExpr("*", "row_number() OVER (PARTITION BY digest ORDER BY digest) AS number")
    headers = {
        "checkpoint": _text(results.checkpoint),
        "query": _text(results.query),
        "batch": _text(str(results.batch)),
        "index": "concat(digest, '-', number)",
    }
    structs = (
        f"named_struct('key', {_text(name)}, 'value', CAST({value} AS BINARY))" for name, value in headers.items()
    )
    return numbered.selectExpr("key", "value", f"array({', '.join(structs)}) AS headers")


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


__all__ = ["FORMATS", "SERVERS", "Kafka", "format_of_values", "record_formats", "records_of"]
