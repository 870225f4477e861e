"""Where requests wait for the engine, in threads of their own: the loop that serves everybody waits for nothing.

One thread looks, one changes, one answers questions that read sources again: so nobody who looks waits for a query that
Spark takes a while to confirm, changes happen in the order in which they came, and questions one at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Literal, TypeAlias, TypeVar

from plait.errors import PlaitError

Answer = TypeVar("Answer")
Counter: TypeAlias = Literal["look", "change", "question"]


MOST_QUESTIONS: Final = 8


class BusyError(PlaitError):
    """Too many requests wait for the engine."""


class Desk:
    """Takes requests, at most `pending` of each kind at a time."""

    def __init__(self, pending: int) -> None:
        self._pending = pending
        self._waiting: dict[Counter, int] = {"look": 0, "change": 0, "question": 0}
        self._threads = {name: ThreadPoolExecutor(1, thread_name_prefix=f"plait-{name}") for name in self._waiting}

    async def ask(self, counter: Counter, work: Callable[[], Answer]) -> Answer:
        """Have something done and return what comes of it. Raises BusyError where too many wait already."""
        if self._waiting[counter] >= (MOST_QUESTIONS if counter == "question" else self._pending):
            raise BusyError("too many requests wait for the engine; ask again in a while")
        self._waiting[counter] += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads[counter], work)
        finally:
            self._waiting[counter] -= 1

    def close(self) -> None:
        """Begin nothing that waits."""
        for pool in self._threads.values():
            pool.shutdown(wait=False, cancel_futures=True)


__all__ = ["BusyError", "Counter", "Desk"]
