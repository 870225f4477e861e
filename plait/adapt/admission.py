"""How much of each stream a batch takes, so that all together it is about a given number of rows.

Two things matter while a backlog is drained. The **sum** bounds what a batch holds at once. The **shares** keep the
streams level in event time: a stream that is read ahead of the others only waits in its store, and the watermark stays
with the slowest. So shares are such that all streams reach the same event time, the earliest end of any backlog
(`horizon_us`), after the same number of batches; where event times are not known, that all backlogs end together.

Readers are bounded when they are opened, by bytes or rows, and read whole files: at least one, whatever its size. So a
share is a wish; `plait.adapt.admitting` watches what comes of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Unit: TypeAlias = Literal["bytes", "rows"]
Basis: TypeAlias = Literal["counted", "sampled", "assumed"]
"""How well the rows that wait are known: all of them counted, some of them, or none looked at."""

_LEAST: Final = 4
"""A stream of which nothing waits may take a fourth of an equal share: how much it will send is not known."""
_MOST_OF_ONE: Final = 0.9
_ROUNDING: Final = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What waits of a stream: `files` of `bytes` with `rows`, between two event times where these are known.

    `unit`: in what Plait can bound its reader; None: it cannot. `own`: the option by which the user has bounded it
    himself, `own_rows`: about how many rows a batch that makes. `row_bytes`: what a row takes in its files,
    `file_rows`: the rows of one. `rate`: rows a second of event time, as declared or measured.
    """

    source: str
    unit: Unit | None = None
    own: str | None = None
    own_rows: float | None = None
    files: int = 0
    bytes: int = 0
    rows: float = 0.0
    row_bytes: float | None = None
    file_rows: float | None = None
    basis: Basis = "assumed"
    first_us: int | None = None
    last_us: int | None = None
    rate: float | None = None

    @property
    def is_free(self) -> bool:
        """Whether Plait bounds it."""
        return self.unit is not None and self.own is None

    def rows_until(self, horizon_us: int | None) -> float:
        """Return how many rows wait up to an event time, as if they were spread evenly."""
        if horizon_us is None or self.first_us is None or self.last_us is None or self.last_us <= horizon_us:
            return self.rows
        if horizon_us <= self.first_us:  # also where all rows have one event time
            return 0.0
        return self.rows * (horizon_us - self.first_us) / (self.last_us - self.first_us)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The most a batch takes of a stream: about `rows`, by a bound of `value` `unit`."""

    source: str
    rows: float
    unit: Unit
    value: int
    basis: Basis


def admit(waiting: Sequence[Waiting], batch_rows: int) -> tuple[Share, ...]:
    """Return the shares of the streams that Plait bounds, in the same order.

    Where all that waits fits in one batch it is taken, and the room that is left is divided by the streams' rates: that
    is how a run goes on when its backlog is done.

    >>> streams = [Waiting(source=name, unit="rows", rows=rows) for name, rows in (("r", 3e6), ("s", 1e6))]
    >>> [share.rows for share in admit(streams, 1_000_000)]
    [750000.0, 250000.0]
    """
    free = [stream for stream in waiting if stream.is_free]
    room = max(batch_rows - _taken_by_others(waiting), batch_rows / _LEAST)
    horizon = horizon_us(waiting)
    batches = _batches(waiting, horizon, room)
    if batches <= 1:  # then there is nothing to be level with on the way
        horizon = None
        batches = _batches(waiting, None, room)
    rows = _level(free, horizon, batches, room) if batches > 1 else _all_and_room(free, room)
    return tuple(_share(stream, rows[stream.source]) for stream in free)


def horizon_us(waiting: Sequence[Waiting]) -> int | None:
    """Return the event time up to which all streams with a backlog have rows waiting; None if it is not known of all.

    A stream that ends earlier than the others ends the part in which there is something to be level with.
    """
    ends = [stream.last_us for stream in waiting if stream.rows]
    known = [end for end in ends if end is not None]
    return min(known) if known and len(known) == len(ends) else None


def level_rows(waiting: Sequence[Waiting]) -> float | None:
    """Return after how many rows the streams that Plait bounds have come to the horizon; None if none waits beyond.

    Shares serve to come there together: one whose rows are all later has hardly any, and needs another from there on.
    """
    free, horizon = [stream for stream in waiting if stream.is_free], horizon_us(waiting)
    until = sum(stream.rows_until(horizon) for stream in free)
    return until if sum(stream.rows for stream in free) > until else None


def _taken_by_others(waiting: Sequence[Waiting]) -> float:
    """Return the rows that a batch takes of streams Plait does not bound, as far as that is known."""
    others = (stream for stream in waiting if not stream.is_free)
    return sum(stream.rows if stream.own_rows is None else min(stream.own_rows, stream.rows) for stream in others)


def _batches(waiting: Sequence[Waiting], horizon: int | None, room: float) -> float:
    """Return in how many batches the streams come to the horizon: as many as the rows take, or those of the slowest
    that its user has bounded.
    """
    own = (each.rows_until(horizon) / each.own_rows for each in waiting if each.own is not None and each.own_rows)
    return max((sum(stream.rows_until(horizon) for stream in waiting if stream.is_free) / room, *own))


def _level(free: Sequence[Waiting], horizon: int | None, batches: float, room: float) -> Mapping[str, float]:
    """Divide what waits by a whole number of batches, so that all come to the horizon together and none is left for a
    small batch at the end; streams of which nothing waits get a little of the room.
    """
    least = room / (_LEAST * max(len(free), 1))
    left = 1.0 - least * sum(not stream.rows for stream in free) / room
    whole = math.ceil(batches / left - _ROUNDING)
    return {stream.source: stream.rows_until(horizon) / whole if stream.rows else least for stream in free}


def _all_and_room(free: Sequence[Waiting], room: float) -> Mapping[str, float]:
    """Let all that waits be taken, and divide the rest of the room by rate; equally where a rate is not known."""
    rates = [stream.rate for stream in free if stream.rate]
    left = room - sum(stream.rows for stream in free)
    least = 1.0 / (_LEAST * max(len(free), 1))
    weights = {
        stream.source: max(stream.rate / sum(rates), least) if stream.rate and len(rates) == len(free) else 1.0
        for stream in free
    }
    return {stream.source: stream.rows + left * weights[stream.source] / sum(weights.values()) for stream in free}


def _share(stream: Waiting, rows: float) -> Share:
    assert stream.unit is not None
    value = rows
    if stream.unit == "bytes":
        # Files are taken as long as they fit. With most of a file more the last one of a share fits too; with less,
        # every batch would leave a part of a file for later, and the stream would fall behind the others.
        most_of_one = _MOST_OF_ONE * stream.bytes / stream.files if stream.files else 0.0
        value = rows * (stream.row_bytes or 1.0) + most_of_one
    return Share(source=stream.source, rows=rows, unit=stream.unit, value=max(math.ceil(value), 1), basis=stream.basis)


__all__ = ["Basis", "Share", "Unit", "Waiting", "admit", "horizon_us", "level_rows"]
