"""The engine's numbers as Prometheus reads them (text format 0.0.4): names by its conventions, with units and help.

Counters are of the run under way: they begin at nothing with each, which Prometheus takes for what it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from plait.server.served import Json
from plait.version import __version__

Kind: TypeAlias = Literal["counter", "gauge"]
Sample: TypeAlias = tuple[Mapping[str, str], float | None]
"""Labels and a value; None: there is none yet, so nothing is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric with all its samples."""

    name: str
    kind: Kind
    help: str
    samples: tuple[Sample, ...]

    def lines(self) -> Iterator[str]:
        """Yield it in the text format; nothing if it has no value."""
        known = [(labels, value) for labels, value in self.samples if value is not None]
        if not known:
            return
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} {self.kind}"
        for labels, value in known:
            shown = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
            yield f"{self.name}{f'{{{shown}}}' if shown else ''} {_number(value)}"


def metrics_text(status: Json, queries: Sequence[Json]) -> str:
    """Return all metrics of a status, and of what is told of queries."""
    return "".join(f"{line}\n" for metric in _metrics(status, queries) for line in metric.lines())


def _metrics(status: Json, queries: Sequence[Json]) -> Iterator[Metric]:
    last, totals = status["last_batch"] or {}, status["totals"]
    yield _gauge("plait_info", "Version of Plait.", 1, version=__version__)
    yield _gauge("plait_running", "Whether the run goes on (1) or has ended (0).", float(bool(status["running"])))
    yield from _of_batches(last, totals)
    yield from _of_streams(status, totals)
    yield from _of_queries(queries)


def _of_batches(last: Mapping[str, Any], totals: Mapping[str, Any]) -> Iterator[Metric]:
    yield _counter("plait_batches_total", "Micro-batches done.", totals["batches"])
    yield _counter("plait_rows_read_total", "Rows read, of all streams.", totals["rows_in"])
    yield _counter("plait_probe_tuples_total", "Tuples sent along the edges of the plan.", totals["probe_tuples"])
    yield _counter(
        "plait_sampled_tuples_total",
        "Tuples sent along orders that are not in force, to learn of them.",
        totals["sampled_tuples"],
    )
    yield _counter("plait_filling_tuples_total", "Tuples sent to fill intermediate stores.", totals["filling_tuples"])
    yield _counter("plait_shuffled_bytes_total", "Partial results carried between tasks.", totals["shuffled_bytes"])
    yield _gauge("plait_last_batch", "Number of the last batch.", last.get("batch"))
    yield _gauge("plait_last_batch_seconds", "How long the last batch took.", last.get("seconds"))
    phases = last.get("phases", {})
    yield _each(
        "plait_last_batch_phase_seconds",
        "gauge",
        "How long each phase of the last batch took.",
        (({"phase": phase}, seconds) for phase, seconds in phases.items()),
    )
    yield _gauge("plait_stored_rows", "Rows that stores keep.", last.get("stored_tuples"))
    yield _gauge("plait_stored_bytes", "Bytes that stores keep.", last.get("stored_bytes"))
    latency = last.get("latency") or {}
    yield _each(
        "plait_result_latency_seconds",
        "gauge",
        "How long rows of the last batches waited from their arrival until what they complete could be seen.",
        (({"quantile": text}, latency.get(f"p{key}_seconds")) for text, key in (("0.5", "50"), ("0.99", "99"))),
    )
    yield _gauge("plait_epoch", "Number of the plan in force.", last.get("epoch"))
    epoch_ms = last.get("epoch_ms")
    yield _gauge(
        "plait_epoch_age_seconds",
        "For how long the plan has been in force.",
        None if epoch_ms is None else epoch_ms / 1000,
    )
    watermark = last.get("watermark_us")
    yield _gauge(
        "plait_watermark_timestamp_seconds",
        "Event time up to which all streams that are not idle have come.",
        None if watermark is None else watermark / 1_000_000,
    )


def _of_streams(status: Json, totals: Mapping[str, Any]) -> Iterator[Metric]:
    sources, last = totals["sources"], status["last_batch"] or {}

    def each(name: str, help: str, key: str) -> Metric:
        return _each(name, "counter", help, (({"stream": stream}, of[key]) for stream, of in sources.items()))

    yield each("plait_stream_rows_total", "Rows read of a stream.", "rows")
    yield each("plait_stream_late_rows_total", "Rows older than the watermark of their batch, not joined.", "late")
    yield each("plait_stream_null_key_rows_total", "Rows kept out by NULL in a key alone.", "null_keys")
    yield each("plait_stream_unselected_rows_total", "Rows that no query selects.", "outside_selections")
    yield _each(
        "plait_stream_bad_rows_total",
        "counter",
        "Rows that could not be read, or without a usable event time.",
        (
            ({"stream": stream, "reason": bad["reason"]}, bad["rows"])
            for stream, of in sources.items()
            for bad in of["bad"]
        ),
    )
    yield _each(
        "plait_stream_lag_records",
        "gauge",
        "Records of a topic that wait to be read.",
        (
            ({"stream": stream, "partition": partition}, behind)
            for stream, partitions in status["lag"].items()
            for partition, behind in partitions.items()
        ),
    )
    yield _each(
        "plait_stream_holds_watermark",
        "gauge",
        "Whether a stream holds the watermark back (1).",
        (({"stream": stream}, float(stream == last.get("laggard"))) for stream in status["streams"]),
    )


def _of_queries(queries: Sequence[Json]) -> Iterator[Metric]:
    yield _each(
        "plait_query_results_total",
        "counter",
        "Results of a query.",
        (({"query": query["name"]}, query["rows_out"]) for query in queries),
    )
    states = ("waiting", "active", "failing", "set aside")
    yield _each(
        "plait_queries",
        "gauge",
        "Queries by state: failing ones whose sink takes nothing, set aside those that cannot be computed.",
        (({"state": state.replace(" ", "_")}, sum(query["state"] == state for query in queries)) for state in states),
    )


def _counter(name: str, help: str, value: float) -> Metric:
    return Metric(name=name, kind="counter", help=help, samples=(({}, value),))


def _gauge(name: str, help: str, value: float | None, **labels: str) -> Metric:
    return Metric(name=name, kind="gauge", help=help, samples=((labels, value),))


def _each(name: str, kind: Kind, help: str, samples: Iterable[Sample]) -> Metric:
    return Metric(name=name, kind=kind, help=help, samples=tuple(samples))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


__all__ = ["metrics_text"]
