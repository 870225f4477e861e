"""How much the service takes on, of everything that somebody outside decides about."""

from __future__ import annotations

from dataclasses import dataclass, field

from plait.server.allowance import Rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """`body_bytes` of one request, and its head of `head_bytes`; `head_seconds` and `body_seconds`: how long they may
    take to arrive; `stalled_seconds`: how long somebody may not read what is sent. `connections` and `listeners` (of
    events) at a time; `queries`: how many there may be for another to be added. `reads`, `writes` and `refusals` (of a
    token): requests of one address. `pending`: requests that wait for the engine.
    """

    body_bytes: int = 256 * 1024
    head_bytes: int = 16 * 1024
    head_seconds: float = 10.0
    body_seconds: float = 10.0
    stalled_seconds: float = 20.0
    connections: int = 600
    listeners: int = 250
    queries: int = 1000
    pending: int = 300
    reads: Rate = field(default_factory=lambda: Rate(a_second=500, at_once=1000))
    writes: Rate = field(default_factory=lambda: Rate(a_second=20, at_once=200))
    refusals: Rate = field(default_factory=lambda: Rate(a_second=1, at_once=20))
    snapshot_seconds: float = 0.5
    plan_seconds: float = 2.0


__all__ = ["Limits"]
