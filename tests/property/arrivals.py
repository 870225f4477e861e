"""Event times and batch boundaries, and the watermark rule that decides which rows are late.

This restates the rule of the design on purpose instead of importing it: the watermark of a batch is the smallest, over
the streams, of (largest τ of earlier batches − delay); there is none while some stream has sent nothing; a row older
than its batch's watermark is late.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class Arrivals:
    """Rows of one stream in order of arrival: `taus` in microseconds (None: a bad record), `batch_of` ascending."""

    delay_us: int
    taus: list[int | None]
    batch_of: list[int]


def watermarks(streams: Sequence[Arrivals], batches: int) -> list[int | None]:
    """Return the watermark of each batch."""
    result: list[int | None] = []
    largest: list[int | None] = [None] * len(streams)
    for batch in range(batches):
        known = [top - stream.delay_us for top, stream in zip(largest, streams, strict=True) if top is not None]
        result.append(min(known) if len(known) == len(streams) else None)
        for number, stream in enumerate(streams):
            seen = [
                tau
                for tau, arrived in zip(stream.taus, stream.batch_of, strict=True)
                if arrived == batch and tau is not None
            ]
            largest[number] = max([*seen, *([] if largest[number] is None else [largest[number]])], default=None)
    return result


def late_rows(streams: Sequence[Arrivals], batches: int) -> list[list[bool]]:
    """Tell for each row of each stream whether it is late."""
    marks = watermarks(streams, batches)
    return [
        [
            tau is not None and (mark := marks[batch]) is not None and tau < mark
            for tau, batch in zip(stream.taus, stream.batch_of, strict=True)
        ]
        for stream in streams
    ]


def make_punctual(rng: random.Random, streams: Sequence[Arrivals], batches: int, step_us: int = 1) -> None:
    """Move every late row just as far into the future as needed, often exactly onto the watermark.

    Batch by batch: the watermark of a batch depends on earlier batches only, which are final by then. `step_us`: τ and
    delays are multiples of it, and stay that.
    """
    for batch in range(batches):
        mark = watermarks(streams, batch + 1)[batch]
        for stream in streams:
            for row, (tau, arrived) in enumerate(zip(stream.taus, stream.batch_of, strict=True)):
                if arrived == batch and tau is not None and mark is not None and tau < mark:
                    stream.taus[row] = mark + step_us * rng.choice(
                        (0, 0, rng.randrange(stream.delay_us // step_us + 2))
                    )


def random_batches(rng: random.Random, rows: int, batches: int) -> list[int]:
    """Spread rows over batches, some of them empty; sometimes the stream starts late or ends early."""
    first = rng.randrange(batches) if rng.random() < 0.25 else 0
    last = rng.randrange(first, batches) if rng.random() < 0.15 else batches - 1
    allowed = [batch for batch in range(first, last + 1) if rng.random() < 0.8] or [first]
    return sorted(rng.choice(allowed) for _ in range(rows))


def random_taus(
    rng: random.Random, batch_of: list[int], base_us: int, unit_us: int, span: int, jitter: int
) -> list[int | None]:
    """Draw τ that advances by about `span` units a batch, off by up to `jitter` units: many ties, out of order."""
    drift = rng.choice((0, 0, span, -span))
    return [
        base_us + unit_us * (batch * span + drift + rng.randrange(span + 1) + rng.randint(-jitter, jitter))
        for batch in batch_of
    ]
