"""How far the streams have come: who is idle, who holds the others back, what may be forgotten, who is late.

Two bounds are kept apart. The **watermark** is the smallest progress of the streams that take part, and bounds what is
forgotten. A stream's **bar** is the highest watermark it was ever held to, and decides which of its rows are late.
While the set of streams stays the same the two are equal. When a stream joins, the watermark falls to that stream's
own progress, or vanishes until it has sent something: otherwise all it sends could be late by what others had sent
before it came. The bars of the others stay: what their rows could have met is partly forgotten already, so letting
the watermark go back for them too would join some late rows with whatever happens to be left.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from plait.operators.ingest.report_sums import highest
from plait.query.model import Stream
from plait.state.model import Manifest, SourceProgress


def is_idle(stream: Stream, progress: SourceProgress | None, clock_ms: int) -> bool:
    """Tell whether the stream has been silent for its idle timeout and so no longer holds the watermark back."""
    if stream.idle_us is None or progress is None or progress.active_ms is None:
        return False
    return (clock_ms - progress.active_ms) * 1000 >= stream.idle_us


def mark_of(stream: Stream, progress: SourceProgress | None) -> int | None:
    """Return below what no row of the stream can still be in time: (largest τ seen − delay), and never below its bar.

    None: the stream has sent nothing yet.
    """
    if progress is None or progress.tau_max is None:
        return None
    return highest(progress.tau_max - stream.delay_us, progress.late_before_us)


def watermark_after(streams: Iterable[Stream], progress: tuple[SourceProgress, ...], clock_ms: int) -> int | None:
    """Return the watermark of the next batch: the smallest mark of the streams that are not idle. None: some stream
    that is not idle has sent nothing yet.

    If all streams are idle it stays where it was: at the highest bar of theirs.
    """
    known = {each.source: each for each in progress}
    taking_part = tuple(streams)
    awake = [stream for stream in taking_part if not is_idle(stream, known.get(stream.name), clock_ms)]
    if not awake:
        bars = (known[stream.name].late_before_us for stream in taking_part if stream.name in known)
        return max((bar for bar in bars if bar is not None), default=None)
    marks = [mark_of(stream, known.get(stream.name)) for stream in awake]
    sent = [mark for mark in marks if mark is not None]
    return min(sent) if len(sent) == len(marks) else None


def fallen_back(watermark_us: int | None, after_us: int | None) -> int | None:
    """Return the watermark once other streams take part, under which it would be `after_us`: it never rises for that.

    >>> fallen_back(70, 20), fallen_back(70, 90), fallen_back(70, None)
    (20, 70, None)
    """
    return None if watermark_us is None or after_us is None else min(watermark_us, after_us)


def with_bars(
    streams: Iterable[Stream], progress: tuple[SourceProgress, ...], watermark_us: int | None
) -> tuple[SourceProgress, ...]:
    """Return the progress with the bars of the streams that take part raised to the watermark, idle ones included:
    what the watermark lets go is gone for them too.
    """
    names = {stream.name for stream in streams}
    return tuple(
        replace(each, late_before_us=highest(each.late_before_us, watermark_us)) if each.source in names else each
        for each in progress
    )


def late_before(manifest: Manifest | None, source: str) -> int | None:
    """Return the event time before which rows of the next batch are late; None: none of them is."""
    known = () if manifest is None else manifest.sources
    return next((each.late_before_us for each in known if each.source == source), None)


def laggard(streams: Iterable[Stream], progress: tuple[SourceProgress, ...], clock_ms: int) -> str | None:
    """Return the stream that holds the watermark back; None if there is none."""
    known = {each.source: each for each in progress}
    awake = [stream for stream in streams if not is_idle(stream, known.get(stream.name), clock_ms)]

    def place(stream: Stream) -> tuple[bool, int]:
        mark = mark_of(stream, known.get(stream.name))
        return (mark is not None, mark or 0)

    return min(awake, key=place).name if awake else None


__all__ = ["fallen_back", "is_idle", "laggard", "late_before", "mark_of", "watermark_after", "with_bars"]
