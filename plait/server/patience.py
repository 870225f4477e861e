"""Connections that do not get on: whoever does not say what he wants, or does not read what he asked for, is let go.

uvicorn itself waits for ever for the rest of a request's head, and for a reader that has stopped reading.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class ImpatientProtocol(H11Protocol):
    """Ends a connection on which a head takes longer than `head_seconds` to arrive, counted from when it was opened or
    the last request was answered and something came; or that takes nothing for `stalled_seconds`.
    """

    head_seconds = 10.0
    stalled_seconds = 20.0
    _heading: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a head."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        for timer in (self._heading, self._stalled):
            _cancel(timer)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came; wait on if it is only a piece of a head."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            _cancel(self._heading)
            self._heading = None
        elif self._heading is None:
            self._await_head()

    def pause_writing(self) -> None:
        """Begin to wait for a reader."""
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(self.stalled_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on with a reader that reads."""
        super().resume_writing()
        _cancel(self._stalled)
        self._stalled = None

    def _await_head(self) -> None:
        self._heading = self.loop.call_later(self.head_seconds, self._give_up)

    def _give_up(self) -> None:
        self._heading = None
        if self.conn.their_state is h11.IDLE:
            self.transport.abort()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


def impatient(head_seconds: float, stalled_seconds: float) -> type[ImpatientProtocol]:
    """Return the protocol with this much patience."""
    waits = {"head_seconds": head_seconds, "stalled_seconds": stalled_seconds}
    return type("ImpatientProtocol", (ImpatientProtocol,), waits)


__all__ = ["ImpatientProtocol", "impatient"]
