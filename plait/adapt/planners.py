"""Who plans beside the stream: a thread, which has a process do it where there are many queries."""

from __future__ import annotations

import logging
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from plait.adapt.asked_to_plan import Answer, Question, answer
from plait.adapt.planning_process import NoAnswer, PlanningProcess

_LOG = logging.getLogger(__name__)

MANY_QUERIES: Final = 64
"""From so many queries on a process plans: about where planning takes longer than to start one."""


@dataclass(slots=True, kw_only=True)
class Planned:
    """How often the plan was reconsidered, and the seconds of a core that took."""

    times: int = 0
    seconds: float = 0.0


class Planners:
    """Answers questions one after the other. `planned` says what that has taken so far."""

    def __init__(self, many_queries: int = MANY_QUERIES) -> None:
        self.planned = Planned()
        self._many_queries = many_queries
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="plait-planning")
        self._process: PlanningProcess | None = None
        self._is_closed, self._is_alone = False, False

    def submit(self, question: Question) -> Future[Answer]:
        """Have a question answered."""
        return self._pool.submit(self._answer, question)

    def _answer(self, question: Question) -> Answer:
        began = time.thread_time()
        try:
            found = self._by_process(question)
            self.planned.seconds += 0.0 if found is None else found.seconds
            return answer(question) if found is None else found
        finally:
            self.planned.times += 1
            self.planned.seconds += time.thread_time() - began

    def _by_process(self, question: Question) -> Answer | None:
        """Return the answer of the process; None if a thread is to find it: there are few queries, or the process could
        not tell once, as memory may not suffice for two.
        """
        if self._is_alone or len(question.request.queries) < self._many_queries:
            return None
        try:
            return self._started().ask(question)
        except NoAnswer as error:
            if self._is_closed:
                raise
            _LOG.debug("%s; from now on a thread plans", error)
            self._is_alone = True
            self._end_process()
            return None

    def _started(self) -> PlanningProcess:
        if self._process is None:
            self._process = PlanningProcess()
        if self._is_closed:  # meanwhile
            self._process.interrupt()
        return self._process

    def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.close()

    def close(self, *, wait: bool = True) -> None:
        """Answer nothing any more. A process is ended at once; `wait`: for a solver in the thread, which cannot be
        interrupted.
        """
        self._is_closed = True
        process = self._process
        if process is not None:
            process.interrupt()
        self._pool.shutdown(wait=wait or process is not None, cancel_futures=True)
        self._end_process()


__all__ = ["MANY_QUERIES", "Planned", "Planners"]
