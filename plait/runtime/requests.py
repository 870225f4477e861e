"""What is asked of an engine while it runs: queries to add and to drop, from any thread, each acknowledged."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Request:
    """One query to add or drop, or to try again (`is_retry`). `active_since`: the batch that it takes effect with, None
    while it waits; `refused`: why it does not.
    """

    query: str
    is_drop: bool = False
    is_retry: bool = False
    active_since: int | None = None
    refused: Exception | None = None
    _is_given_up: bool = False
    _told: threading.Condition = field(default_factory=threading.Condition)

    def take_effect(self, batch: int) -> None:
        """Note that it is in force from this batch on."""
        with self._told:
            self.active_since = batch
            self._told.notify_all()

    def refuse(self, reason: Exception) -> None:
        """Note that nothing comes of it."""
        with self._told:
            self.refused = reason
            self._told.notify_all()

    def give_up(self) -> None:
        """Let nobody wait for it any longer, although another run may take it up: this one is over."""
        with self._told:
            self._is_given_up = True
            self._told.notify_all()

    def take_in_hand(self) -> None:
        """Let it be waited for: a run has begun that will take it up."""
        with self._told:
            self._is_given_up = False

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is in force, at most `timeout` seconds and while a run goes on; tell whether it is. Raises why
        it was refused.
        """
        with self._told:
            self._told.wait_for(lambda: self._is_settled or self._is_given_up, timeout)
        if self.refused is not None:
            raise self.refused
        return self.active_since is not None

    @property
    def _is_settled(self) -> bool:
        return self.active_since is not None or self.refused is not None


class Requests:
    """Those that wait, in the order in which they came."""

    def __init__(self) -> None:
        self._waiting: list[Request] = []
        self._is_over = False

    def add(self, request: Request) -> None:
        """Let a request wait; nobody is to wait for it where a run has just ended."""
        if self._is_over:
            request.give_up()
        self._waiting.append(request)

    def take_in_hand(self) -> None:
        """Note that a run begins, which takes up all that waits."""
        self._is_over = False
        for request in self.waiting():
            request.take_in_hand()

    def waiting(self) -> tuple[Request, ...]:
        """Return the requests that wait."""
        return tuple(self._waiting)

    def settle(self, seen: Iterable[Request], queries: Collection[str], batch: int) -> None:
        """Let those of the requests that were `seen`, and wait still, take effect with a batch that answers these
        queries.
        """
        for request in tuple(seen):
            if request in self._waiting and (request.is_drop or request.query in queries):
                request.take_effect(batch)
                self._waiting.remove(request)

    def give_up(self) -> None:
        """Let nobody wait any longer for what a run that is over has not taken up, or is asked for since."""
        self._is_over = True
        for request in self.waiting():
            request.give_up()

    def refuse(self, request: Request, reason: Exception) -> None:
        """Let nothing come of a request."""
        request.refuse(reason)
        self._waiting.remove(request)


__all__ = ["Request", "Requests"]
