"""Events for everybody who listens: each is put into JSON once, and whoever falls behind is let go, never waited
for.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from typing import Final

from plait.server.served import Json

MOST_WAITING: Final = 64
"""Events that somebody who listens may be behind."""

REMEMBERED_BYTES: Final = 256 * 1024
"""Of the last events, for those who begin to listen."""

HEARTBEAT_SECONDS: Final = 15.0
_HEARTBEAT: Final = b": still here\n\n"


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

    @property
    def is_full(self) -> bool:
        """Whether nobody else may listen."""
        return len(self._listeners) >= self._most_listeners

    async def listen(self, after: int = 0, heartbeat_seconds: float = HEARTBEAT_SECONDS) -> AsyncIterator[bytes]:
        """Yield what was told lately, `after` the event of that number, and then each event, as server-sent events,
        until the feed is closed or the one who listens has fallen behind.
        """
        listener: asyncio.Queue[bytes | None] = asyncio.Queue(MOST_WAITING)
        self._listeners.add(listener)
        try:
            yield b"retry: 2000\n\n" + b"".join(frame for number, frame in self._recent if number > after)
            while True:
                try:
                    frame = await asyncio.wait_for(listener.get(), heartbeat_seconds)
                except (TimeoutError, asyncio.TimeoutError):
                    frame = _HEARTBEAT
                if frame is None:
                    return
                yield frame
        finally:
            self._listeners.discard(listener)


__all__ = ["EventFeed"]
