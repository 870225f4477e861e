"""Tables of live batches: what each part takes, and what the slowest batches lost to which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import mean, median

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.components.live_trace import PARTS, LiveBatch, Trace

_WARM_UP = 3
_SLOWEST = 0.05


def show(console: Console, found: Mapping[str, Trace]) -> None:
    """Print the tables."""
    later = {way: trace.batches[len(trace.batches) // _WARM_UP :] for way, trace in found.items()}
    table = Table(title="Milliseconds: median, 99th percentile, and how much more in the slowest twentieth")
    table.add_column("part")
    for way, batches in later.items():
        table.add_column(f"{way} ({len(batches)})", justify="right")
        table.add_column("p99", justify="right")
        table.add_column("lost", justify="right")
    for part, meaning in PARTS.items():
        table.add_row(meaning, *_row(later, part))
    table.add_row("the whole batch", *(text for batches in later.values() for text in _cells(_whole(batches), None)))
    table.add_section()
    for name, meaning in (("pause_ms", "JVM pauses to collect garbage"), ("beside_ms", "another job runs beside it")):
        values = [[getattr(batch, name) for batch in batches] for batches in later.values()]
        table.add_row(meaning, *(text for each in values for text in _cells(each, None)))
    latencies = [trace.latency_ms[len(trace.latency_ms) // _WARM_UP :] for trace in found.values()]
    table.add_row("from arrival to done", *(text for each in latencies for text in _cells(each, None)))
    splits = (f"{trace.split} of {len(trace.latency_ms)}" for trace in found.values())
    table.add_row("files taken in several batches", *(text for split in splits for text in (split, "", "")))
    console.print(table)


def _whole(batches: Iterable[LiveBatch]) -> list[float]:
    return [batch.end_ms - batch.begin_ms for batch in batches]


def _row(later: Mapping[str, list[LiveBatch]], part: str) -> list[str]:
    return [
        text for batches in later.values() for text in _cells([b.parts_ms[part] for b in batches], lost(batches, part))
    ]


def _cells(values: list[float], lost_ms: float | None) -> tuple[str, str, str]:
    if not values:
        return "", "", ""
    return f"{median(values):,.0f}", f"{np.quantile(values, 0.99):,.0f}", "" if lost_ms is None else f"{lost_ms:,.0f}"


def lost(batches: list[LiveBatch], part: str) -> float | None:
    """Return how much more than the median this part took in the slowest batches, on average."""
    if not batches:
        return None
    slowest = sorted(batches, key=lambda batch: batch.begin_ms - batch.end_ms)[: max(round(_SLOWEST * len(batches)), 1)]
    return mean(batch.parts_ms[part] for batch in slowest) - median(batch.parts_ms[part] for batch in batches)
