"""Events for everybody who listens: each is put into JSON once, and whoever falls behind is let go, never waited
for.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Final

from plait.errors import PlaitError
from plait.server.served import Json

MOST_WAITING: Final = 64
"""Events that somebody who listens may be behind."""

REMEMBERED_BYTES: Final = 256 * 1024
"""Of the last events, for those who begin to listen."""

HEARTBEAT_SECONDS: Final = 15.0
_HEARTBEAT: Final = b": still here\n\n"


class CrowdedError(PlaitError):
    """As many listen as may."""


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """The place of one who listens: taken from the moment it is given out until it is left, whether or not anything is
    ever read. `_begin`: what was told lately; `_leave` gives it back, and may be called again.
    """

    _queue: asyncio.Queue[bytes | None]
    _begin: bytes
    _leave: Callable[[], None]

    async def frames(self, heartbeat_seconds: float = HEARTBEAT_SECONDS) -> AsyncIterator[bytes]:
        """Yield what was told lately and then each event, as server-sent events, until the feed is closed or the one
        who listens has fallen behind.
        """
        yield self._begin
        while True:
            try:
                frame = await asyncio.wait_for(self._queue.get(), heartbeat_seconds)
            except (TimeoutError, asyncio.TimeoutError):
                frame = _HEARTBEAT
            if frame is None:
                return
            yield frame

    def leave(self) -> None:
        """Let somebody else have it."""
        self._leave()


class EventFeed:
    """The events of one run. `hear` may be called from any thread; all else belongs to the loop it was opened on."""

    def __init__(self, most_listeners: int) -> None:
        self._most_listeners = most_listeners
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listeners: set[asyncio.Queue[bytes | None]] = set()
        self._recent: deque[tuple[int, bytes]] = deque()
        self._recent_bytes = self._number = 0

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to hand events on."""
        self._loop = loop

    def hear(self, event: Json) -> None:
        """Hand an event on. Costs the one who tells it no more than to put it into JSON."""
        loop = self._loop
        if loop is None or loop.is_closed():
            return
        text = json.dumps(event, separators=(",", ":"), default=str)
        try:
            loop.call_soon_threadsafe(self._spread, str(event.get("event", "message")), text)
        except RuntimeError:  # the loop has been closed meanwhile
            return

    def _spread(self, kind: str, text: str) -> None:
        self._number += 1
        frame = f"id: {self._number}\nevent: {kind}\ndata: {text}\n\n".encode()
        self._remember(frame)
        for listener in tuple(self._listeners):
            try:
                listener.put_nowait(frame)
            except asyncio.QueueFull:
                self._let_go(listener)

    def _remember(self, frame: bytes) -> None:
        self._recent.append((self._number, frame))
        self._recent_bytes += len(frame)
        while self._recent_bytes > REMEMBERED_BYTES and len(self._recent) > 1:
            self._recent_bytes -= len(self._recent.popleft()[1])

    def _let_go(self, listener: asyncio.Queue[bytes | None]) -> None:
        self._listeners.discard(listener)
        while not listener.empty():
            listener.get_nowait()
        listener.put_nowait(None)

    def close(self) -> None:
        """Let everybody go. Called on the loop."""
        for listener in tuple(self._listeners):
            self._let_go(listener)

    def place(self, after: int = 0) -> Place:
        """Return a place to listen from, to hear what was told lately, `after` the event of that number, and what comes
        from now on. It is to be left. Raises CrowdedError where as many listen as may.
        """
        if len(self._listeners) >= self._most_listeners:
            raise CrowdedError("too many listen already; ask again later, or for /status")
        listener: asyncio.Queue[bytes | None] = asyncio.Queue(MOST_WAITING)
        self._listeners.add(listener)
        begin = b"retry: 2000\n\n" + b"".join(frame for number, frame in self._recent if number > after)
        return Place(listener, begin, lambda: self._listeners.discard(listener))


__all__ = ["CrowdedError", "EventFeed", "Place"]
