"""How far the streams have come: who is idle, who holds the others back, what the next batch's watermark is."""

from __future__ import annotations

from collections.abc import Iterable

from plait.operators.ingest import highest
from plait.query.model import Stream
from plait.state.model import SourceProgress


def is_idle(stream: Stream, progress: SourceProgress | None, clock_ms: int) -> bool:
    """Tell whether the stream has been silent for its idle timeout and so no longer holds the watermark back."""
    if stream.idle_us is None or progress is None or progress.active_ms is None:
        return False
    return (clock_ms - progress.active_ms) * 1000 >= stream.idle_us


def watermark_after(
    streams: Iterable[Stream], progress: tuple[SourceProgress, ...], before: int | None, clock_ms: int
) -> int | None:
    """Return the watermark of the next batch: the smallest (largest τ seen − delay) over streams that are not idle.

    It never goes back, not even when an idle stream wakes up: what it let go is gone. None: some stream has sent
    nothing yet.
    """
    known = {found.source: found for found in progress}
    marks = []
    for stream in streams:
        found = known.get(stream.name)
        if is_idle(stream, found, clock_ms):
            continue
        if found is None or found.tau_max is None:
            return before
        marks.append(found.tau_max - stream.delay_us)
    return highest(before, min(marks, default=None))


def laggard(streams: Iterable[Stream], progress: tuple[SourceProgress, ...], clock_ms: int) -> str | None:
    """Return the stream that holds the watermark back; None if there is none."""
    known = {found.source: found for found in progress}
    awake = [stream for stream in streams if not is_idle(stream, known.get(stream.name), clock_ms)]

    def mark(stream: Stream) -> tuple[bool, int]:
        found = known.get(stream.name)
        tau = None if found is None else found.tau_max
        return (tau is not None, 0 if tau is None else tau - stream.delay_us)

    return min(awake, key=mark).name if awake else None


__all__ = [
    "is_idle",
    "laggard",
    "watermark_after",
]
