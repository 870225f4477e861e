"""Let the files of a case arrive at a fixed rate, and see how long their results take.

File k of every stream arrives when k files' worth of rows are due at the rate. A result is as old as the file that
brought its newest member: its latency is from that file's arrival to the delivery of the result. Spark and Plait
deliver a batch of results at a time, Flink and Pathway note each as it leaves their joins. The first third of the files
is left out: there code is still being compiled.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from benchmarks.reports.report import Paced
from benchmarks.systems.launch import Run, run_fresh
from benchmarks.systems.streams import let_arrive
from benchmarks.systems.task import Delivery, Outcome, Task
from plait.errors import PlaitError

_RATES = (1.0, 1.25, 1.6, 2.0, 2.5, 3.2, 4.0, 5.0, 6.3, 8.0)
"""Preferred numbers (ISO 3, R10): ten equal steps to ten times as much. All systems are tried at the same rates."""

_POLL_S = 0.02
_STARTING_S = 180.0
GROWTH = 0.1
"""A system keeps up if latency grows by at most so many seconds a second, from the second third to the last. One that
can take a share p of the rate falls behind by 1 - p seconds a second.
"""


def rate(step: int) -> float:
    """Return the rate of a step, in rows a second; step 0 is 1, and ten steps are ten times as much.

    >>> rate(0), rate(43), rate(48)
    (1.0, 20000.0, 63000.0)
    """
    return _RATES[step % len(_RATES)] * 10.0 ** (step // len(_RATES))


def at_least(rows_per_s: float) -> int:
    """Return the lowest step whose rate is no less.

    >>> at_least(20000), at_least(20001), at_least(0.1)
    (43, 44, 0)
    """
    step = 0
    while rate(step) < rows_per_s:
        step += 1
    return step


@dataclass(slots=True)
class Feed:
    """Lets files arrive while a system runs. `arrived_us`: clock when each arrived. `grace_s`: how long the system is
    left to deliver the last results.
    """

    rows_per_file: float
    rows_per_s: float
    grace_s: float
    arrived_us: list[int] = field(default_factory=list)

    @contextmanager
    def beside(self, task: Task) -> Iterator[None]:
        """Feed the task's process from a thread, as soon as it is ready, and let it stop at the end."""
        for stream in task.questions.streams:
            (task.arriving / stream.name).mkdir(parents=True, exist_ok=True)
        ended = threading.Event()
        thread = threading.Thread(target=self._feed, args=(task, ended), name="feed", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _feed(self, task: Task, ended: threading.Event) -> None:
        deadline = time.monotonic() + _STARTING_S
        while not task.ready.exists():
            if ended.wait(_POLL_S) or time.monotonic() > deadline:
                task.stop.touch()
                return
        started = time.monotonic()
        for file in range(task.files):
            due = started + file * self.rows_per_file / self.rows_per_s
            if ended.wait(max(due - time.monotonic(), 0.0)):
                return
            let_arrive(task, range(file, file + 1), task.arriving)
            self.arrived_us.append(time.time_ns() // 1000)
        ended.wait(self.grace_s)
        task.stop.touch()


def run_paced(
    task: Task,
    *,
    rows: int,
    rows_per_s: float,
    expected: int,
    timeout_s: float | None = None,
    run: Callable[..., Run] = run_fresh,
) -> tuple[Feed, Outcome]:
    """Run a system on streams that arrive at this rate. `rows`: of all streams; `expected`: results there are.

    Raises SystemFailedError, also where the system was never ready.
    """
    feed = Feed(rows_per_file=rows / task.files, rows_per_s=rows_per_s, grace_s=max(5.0, 0.5 * rows / rows_per_s))
    live = replace(task, live=True, expected=expected)
    outcome = run(live, timeout_s=timeout_s, beside=feed.beside).outcome
    if outcome.unable is None and len(feed.arrived_us) < task.files:
        raise PlaitError(f"'{task.system}' was not ready for streams within {_STARTING_S:g} seconds")
    return feed, outcome


def latencies(deliveries: Sequence[Delivery], arrived_us: Sequence[int], files: range) -> tuple[float, ...]:
    """Return latencies in seconds of the results that these files completed: the median, the 95th and the 99th
    percentile, or nothing where there are none.
    """
    chosen = [found for found in deliveries if found.file in files]
    if not chosen:
        return ()
    waited = np.array([found.delivered_us - arrived_us[found.file] for found in chosen]) / 1e6
    counts = np.array([found.rows for found in chosen])
    order = np.argsort(waited)
    upto = np.cumsum(counts[order])
    places = np.searchsorted(upto, np.array([0.5, 0.95, 0.99]) * upto[-1])
    return tuple(waited[order][places].tolist())


def judge(case: str, system: str, turn: int, feed: Feed, outcome: Outcome, expected: int) -> Paced:
    """Return what a paced run came to."""
    files = len(feed.arrived_us)
    first, last = files // 3, files - max(files // 3, 1)
    found = latencies(outcome.deliveries, feed.arrived_us, range(first, files))
    early = latencies(outcome.deliveries, feed.arrived_us, range(first, last))
    late = latencies(outcome.deliveries, feed.arrived_us, range(last, files))
    results = sum(delivery.rows for delivery in outcome.deliveries)
    seconds = (feed.arrived_us[-1] - feed.arrived_us[0]) / 1e6
    backlog = late[0] - early[0] if early and late else None
    keeps_up = backlog is not None and backlog <= GROWTH * seconds / 3
    p50, p95, p99 = found or (None, None, None)
    return Paced(
        case=case,
        system=system,
        turn=turn,
        rows_per_s=feed.rows_per_s,
        seconds=seconds,
        results=results,
        p50_s=p50,
        p95_s=p95,
        p99_s=p99,
        backlog_s=backlog,
        is_sustained=keeps_up and results == expected,
    )
