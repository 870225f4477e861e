"""A table in the terminal that is redrawn while the run goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from plait.cli.output.figures import (
    busiest,
    count,
    duration,
    epoch_words,
    filling_words,
    latency,
    rate,
    size,
    watermark,
)
from plait.cli.output.interface import RunInfo
from plait.cli.output.losses import bad_reasons, warning_line
from plait.cli.output.plain import summary_lines
from plait.spelling import plural

if TYPE_CHECKING:
    from plait.runtime.batch.events import BatchEvent, Summary
    from plait.runtime.losses.counts import SourceCounts
    from plait.runtime.notice import Notice

_REFRESH_PER_SECOND = 4
_MOST_QUERIES = 15
_MOST_FAILING = 5


class LiveOutput:
    """Show the run's totals and its last batch in place."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._info: RunInfo | None = None
        self._last: BatchEvent | None = None
        self._totals: dict[str, int] = {}
        self._batches = self._rows = self._late = self._bad = self._probe_tuples = self._shuffled_bytes = 0
        self._sampled_tuples = 0
        self._sources: dict[str, SourceCounts] = {}
        self._warnings: list[Notice] = []
        self._noticed: set[str] = set()
        self._stopping = False
        self._began = time.monotonic()
        # Live puts above the table what others print meanwhile: a console sink, a foreach function.
        self._live = Live(console=console, get_renderable=self._render, refresh_per_second=_REFRESH_PER_SECOND)

    @property
    def is_abandoned(self) -> bool:
        """Whether nobody reads any more: a terminal that closes sends a signal instead."""
        return False

    def __enter__(self) -> LiveOutput:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def starting(self, info: RunInfo) -> None:
        """Show the script's queries with nothing counted yet."""
        self._began = time.monotonic()
        self._totals = dict.fromkeys(info.queries, 0)
        self._noticed |= set(info.warnings)
        self._info = info

    def noticed(self, text: str) -> None:
        """Write above the table what the user should know about this start."""
        self._noticed.add(text)
        self._console.print(Text(f"note: {text}"))

    def batch(self, event: BatchEvent) -> None:
        """Add one batch to the totals."""
        for query, rows in event.results:
            self._totals[query] = self._totals.get(query, 0) + rows
        self._batches += 1
        self._rows += event.rows_in
        self._late += event.late
        self._bad += event.bad
        self._probe_tuples += event.probe_tuples
        self._sampled_tuples += event.sampled_tuples
        self._shuffled_bytes += event.shuffled_bytes
        for counts in event.sources:
            known = self._sources.get(counts.source)
            self._sources[counts.source] = counts if known is None else known.plus(counts)
        self._warnings += [notice for notice in event.warnings if notice.text not in self._noticed]
        self._last = event

    def stopping(self) -> None:
        """Show that the batch at hand is the last one."""
        self._stopping = True

    def finished(self, summary: Summary) -> None:
        """Leave the table as it is and write the totals below."""
        self._live.stop()
        for line in summary_lines(summary):
            self._console.print(line, highlight=False, markup=False)

    def _render(self) -> RenderableType:
        """Draw everything from what was counted so far; called by the refresh thread."""
        if self._info is None:
            return Text("Starting Spark ...", style="dim")
        elapsed = time.monotonic() - self._began
        return Group(self._head(self._info, elapsed), self._queries(), self._foot(), *self._notice())

    def _head(self, info: RunInfo, elapsed: float) -> RenderableType:
        head = Text(no_wrap=True, overflow="ellipsis")
        head.append(info.script, style="bold")
        head.append(f"  strategy {info.strategy}  {plural(self._batches, 'batch', 'batches')}")
        head.append(f"  {plural(self._rows, 'row')} in {duration(elapsed)}")
        return head

    def _queries(self) -> RenderableType:
        table = Table(expand=False)
        table.add_column("query")
        table.add_column("last batch", justify="right")
        table.add_column("results", justify="right")
        fresh, totals = dict(self._last.results) if self._last else {}, dict(self._totals)
        shown = busiest(fresh, totals, _MOST_QUERIES)
        for query in shown:
            table.add_row(Text(query), f"+{count(fresh.get(query, 0))}", count(totals[query]))
        if len(totals) > len(shown):
            others = totals.keys() - set(shown)
            more = sum(fresh.get(query, 0) for query in others), sum(totals[query] for query in others)
            table.add_row(Text(plural(len(others), "other"), style="dim"), f"+{count(more[0])}", count(more[1]))
            table.add_section()
            table.add_row("all", f"+{count(sum(fresh.values()))}", count(sum(totals.values())))
        return table

    def _foot(self) -> RenderableType:
        last = self._last
        if last is None:
            return Text("waiting for the first batch", style="dim")
        grid = Table.grid(padding=(0, 2))
        reasons = bad_reasons(tuple(self._sources.values()))
        for label, value in (
            ("last batch", f"{last.batch}: {plural(last.rows_in, 'row')}, {rate(last.rows_in, last.seconds)}"),
            ("epoch", epoch_words(last)),
            *([("filling", said)] if (said := filling_words(last.filling)) else []),
            ("watermark", watermark(last.watermark_us, last.laggard)),
            ("late, bad", f"{count(self._late)}, {count(self._bad)}{reasons}"),
            ("probe tuples", f"{count(self._probe_tuples)} (last batch {count(last.probe_tuples)})"),
            *([("latency", said)] if (said := latency(last.latency)) else []),
            ("stored", f"{plural(last.stored_tuples, 'tuple')}, {size(last.stored_bytes)}"),
        ):
            grid.add_row(Text(label, style="dim"), Text(value))
        if self._sampled_tuples:
            grid.add_row(Text("sampled", style="dim"), f"{count(self._sampled_tuples)} to try other orders")
        if self._shuffled_bytes:
            shuffled = f"{size(self._shuffled_bytes)} (last batch {size(last.shuffled_bytes)})"
            grid.add_row(Text("shuffled", style="dim"), shuffled)
        for name, rows in self._kept_out():
            grid.add_row(Text(name, style="dim"), Text(rows))
        for query, reason in last.failing[:_MOST_FAILING]:
            grid.add_row(Text("not delivered", style="red"), Text(f"{query}: {reason}"))
        if (more := len(last.failing) - _MOST_FAILING) > 0:
            grid.add_row(Text("not delivered", style="red"), f"{plural(more, 'query', 'queries')} more")
        return grid

    def _kept_out(self) -> Iterator[tuple[str, str]]:
        """Yield why rows in time cannot be joined, and how many of which stream."""
        counted = tuple(self._sources.values())
        outside = ", ".join(f"{each.source} {count(each.outside)}" for each in counted if each.outside)
        nulls = ", ".join(f"{each.source} {count(each.null_keys)}" for each in counted if each.null_keys)
        yield from (("outside selections", outside),) if outside else ()
        yield from (("NULL keys", nulls),) if nulls else ()

    def _notice(self) -> list[RenderableType]:
        lines = [f"warning: {told}" for told in self._info.warnings] if self._info is not None else []
        lines += [warning_line(notice) for notice in self._warnings]
        shown: list[RenderableType] = [Text(line, style="yellow") for line in lines]
        if self._stopping:
            shown.append(Text("stopping after this batch (Ctrl-C again: at once)", style="yellow"))
        return shown
