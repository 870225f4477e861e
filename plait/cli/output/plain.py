"""One line of text a batch, for logs and pipes."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from plait.cli.output.figures import (
    busiest,
    change_words,
    count,
    duration,
    filling_words,
    latency,
    latency_line,
    outcome_words,
    rate,
    size,
    watermark,
)
from plait.cli.output.interface import RunInfo
from plait.cli.output.lines import LineWriter
from plait.cli.output.losses import bad_reasons, loss_lines, warning_line
from plait.spelling import plural

if TYPE_CHECKING:
    from plait.runtime.batch.events import BatchEvent, Summary


_MOST_NAMED = 12
_MOST_FAILING = 5
_MOST_SUMMED = 100


class PlainOutput:
    """Write lines that need no terminal and are never overwritten; warnings go to standard error as they come."""

    def __init__(self, stream: TextIO, errors: TextIO | None = None) -> None:
        self._lines, self._errors = LineWriter(stream), LineWriter(errors or sys.stderr)
        self._noticed: set[str] = set()

    @property
    def is_abandoned(self) -> bool:
        """Whether nobody reads any more."""
        return self._lines.is_abandoned

    def __enter__(self) -> PlainOutput:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def starting(self, info: RunInfo) -> None:
        """Name the script, the strategy and the checkpoint."""
        self._write(f"{info.script}: {plural(len(info.queries), 'query', 'queries')}, strategy {info.strategy}")
        self._write(f"checkpoint {info.checkpoint}")
        for warning in info.warnings:
            self._noticed.add(warning)
            self._errors.write(f"warning: {warning}")

    def noticed(self, text: str) -> None:
        """Write what the user should know about this start."""
        self._noticed.add(text)
        self._write(f"note: {text}")

    def batch(self, event: BatchEvent) -> None:
        """Write the batch's counts; queries without new results are left out."""
        parts = [f"batch {event.batch}", plural(event.rows_in, "row"), rate(event.rows_in, event.seconds)]
        parts += _found(dict(event.results))
        parts += [f"late {count(event.late)}"] if event.late else []
        parts += [f"bad {count(event.bad)}{bad_reasons(event.sources)}"] if event.bad else []
        parts += [f"{query} FAILS: {reason}" for query, reason in event.failing[:_MOST_FAILING]]
        more = len(event.failing) - _MOST_FAILING
        parts += [f"{plural(more, 'query', 'queries')} more FAIL{'S' if more == 1 else ''}"] if more > 0 else []
        parts += [f"latency {said}"] if (said := latency(event.latency)) else []
        parts += [f"probe tuples {count(event.probe_tuples)}"]
        parts += [f"shuffled {size(event.shuffled_bytes)}"] if event.shuffled_bytes else []
        parts += [f"epoch {event.epoch}{change_words(event.change)}{outcome_words(event.outcome)}"]
        parts += [f"filling {said}"] if (said := filling_words(event.filling)) else []
        parts += [f"watermark {watermark(event.watermark_us, event.laggard)}"]
        self._write("  ".join(parts))
        for notice in event.warnings:
            if notice.text not in self._noticed:
                self._errors.write(warning_line(notice))

    def stopping(self) -> None:
        """Say that the batch at hand is the last one."""
        self._write("stopping after this batch (press Ctrl-C again to give up at once)")

    def finished(self, summary: Summary) -> None:
        """Write the totals."""
        for line in summary_lines(summary):
            self._write(line)

    def _write(self, line: str) -> None:
        self._lines.write(line)


def summary_lines(summary: Summary) -> list[str]:
    """Say in a few lines what a run did."""
    read = (
        f"done: {plural(summary.batches, 'batch', 'batches')}, {plural(summary.rows_in, 'row')} "
        f"in {duration(summary.wall_seconds)} ({rate(summary.rows_in, summary.wall_seconds)}), "
        f"{count(summary.late)} late, {count(summary.bad)} bad"
    )
    shuffled = f"shuffled {size(summary.shuffled_bytes)}, " if summary.shuffled_bytes else ""
    sampled = f" and {count(summary.sampled_tuples)} to try other orders" if summary.sampled_tuples else ""
    sampled += f" and {count(summary.filling_tuples)} to fill stores" if summary.filling_tuples else ""
    kept = (
        f"probe tuples {count(summary.probe_tuples)}{sampled}, {shuffled}stored tuples {count(summary.stored_tuples)} "
        f"({size(summary.stored_bytes)})"
    )
    said = latency_line(summary.latency)
    failing = [f"  {query}: results not delivered: {reason}" for query, reason in summary.failing]
    failing += [f"  {query}: set aside: {reason}" for query, reason in summary.set_aside]
    rows, hints = dict(summary.queries), dict(summary.hints)
    shown = rows if len(rows) <= _MOST_SUMMED else sorted(busiest(rows, rows, _MOST_SUMMED))
    results = [line for query in shown for line in _results(query, rows[query], hints)]
    if len(rows) > len(shown):
        others = rows.keys() - set(shown)
        left = plural(len(others), "other query", "other queries")
        results.append(f"  {left}: {plural(sum(rows[query] for query in others), 'result')}")
    lost = [*loss_lines(summary.sources)]
    titled = ["Rows that came to nothing:", *lost] if lost else []
    return [read, kept, *([said] if said else []), *results, *failing, *titled, *map(warning_line, summary.warnings)]


def _found(rows: Mapping[str, int]) -> list[str]:
    """Return the new results of queries that have any: of many those that have most, and what the others have."""
    found = {query: number for query, number in rows.items() if number}
    shown = found if len(found) <= _MOST_NAMED else sorted(busiest(found, found, _MOST_NAMED))
    others = [number for query, number in found.items() if query not in shown]
    parts = [f"{query} +{count(found[query])}" for query in shown]
    left = plural(len(others), "other query", "other queries")
    return [*parts, f"{left} +{count(sum(others))}"] if others else parts


def _results(query: str, rows: int, hints: Mapping[str, str]) -> list[str]:
    return [f"  {query}: {plural(rows, 'result')}", *([f"    {hints[query]}"] if query in hints else [])]
