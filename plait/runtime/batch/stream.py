"""A run: batches of one streaming query after another, and what is asked for between them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from plait.errors import PlaitError
from plait.runtime.batch.asking import NOTHING_ASKED, Asking
from plait.runtime.batch.run_errors import explained
from plait.runtime.spark.circles import seldom_collected


class Stopping(Exception):
    """Raised in the streaming query's call to keep a batch from beginning while the query is being stopped.

    Returning would make Spark take the batch for done. So the call has to fail, but quietly: with these words Spark
    takes the failure for what an interrupted call of its own would be, if it happens after the query was told to stop;
    anything else it writes to the log with a stack trace, and py4j does so too.
    """

    def __init__(self) -> None:
        super().__init__(
            "py4j.protocol.Py4JJavaError: An error occurred while calling a batch: java.lang.InterruptedException"
        )


class Again(Exception):
    """Raised by what a run carries out, where that has failed and has to be done again with another start."""


def _is_failure(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], Stopping))


for _logger in ("py4j.clientserver", "py4j.java_gateway"):
    logging.getLogger(_logger).addFilter(_is_failure)

CarryOut: TypeAlias = Callable[[DataFrame, int, Callable[[], None]], bool]
"""Carries out a batch, and calls what it is given where more may be taken up; tells whether to start anew after it."""

_POLL_SECONDS = 0.01

PATIENCE_S = 0.1
"""So long a batch waits for what is being planned to begin with it; what takes longer begins with a later one."""

QUIET_S = 0.5
"""So often a run looks whether time alone has decided something."""

RESTART_EVERY_S = 1.0
"""While it goes on, a run starts the streaming query anew at most this often for what it is asked."""


class Run:
    """A running engine: a thread that keeps a streaming query going, across re-starts when the plan's input changes.

    `start` returns None while there is nothing to run. What is carried out, `end` and `pass_time` raise `Again` where
    there has to be another start before it is done. `is_endless`: it goes on until somebody stops it. `asked` knows
    what is asked for meanwhile. `end` is called once a run has done all there was to do, without failing and without
    being stopped; `pass_time` every `QUIET_S` while an endless one waits for something to read. `explain` says what
    ended it. `alone` is entered for as long as it lasts.
    """

    def __init__(
        self,
        start: Callable[[], StreamingQuery | None],
        *,
        is_endless: bool,
        asked: Asking = NOTHING_ASKED,
        end: Callable[[], None] = lambda: None,
        pass_time: Callable[[], None] = lambda: None,
        explain: Callable[[BaseException], PlaitError] = explained,
        alone: AbstractContextManager[None] | None = None,
    ) -> None:
        self._start, self._is_endless, self._explain = start, is_endless, explain
        self._asking, self._alone = asked, alone or nullcontext()
        self._end, self._pass_time = end, pass_time
        self._planning = threading.Lock()
        self._query: StreamingQuery | None = None
        self._between = threading.RLock()
        self._ending = self._restarting = False
        self._begun, self._asked, self._requested = threading.Event(), threading.Event(), threading.Event()
        self._over = threading.Event()
        self._restart_at: float | None = None
        self._started_at = 0.0
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._supervise, name="plait-run", daemon=True)
        self._attendant = threading.Thread(target=self._attend, name="plait-requests", daemon=True)

    def begin(self) -> None:
        """Start, and return once Spark runs the query or has refused to."""
        self._thread.start()
        self._begun.wait()
        self._attendant.start()

    @property
    def has_started(self) -> bool:
        """Whether a streaming query has been started before."""
        return self._started_at > 0

    @property
    def query(self) -> StreamingQuery | None:
        """The streaming query there is now."""
        return self._query

    def ask(self) -> None:
        """Let what has been asked for be taken up between this batch and the next. Returns at once."""
        self._requested.set()

    def _attend(self) -> None:
        """Plan for requests as they come. Batches take up what has a plan; between two of them it is taken up here.
        While there are none, let time pass.
        """
        while not self._over.is_set():
            is_asked = self._requested.wait(QUIET_S if self._is_endless else None)
            if self._over.is_set():
                return
            try:
                if not is_asked:
                    self._let_time_pass()
                    continue
                with self._planning:  # who finds nothing planned and has to plan would plan the same
                    self._requested.clear()  # first: what is asked for from here on is planned by the next round
                    can_go_on = self._query is not None and self._restart_at is None
                    is_planned = can_go_on and self._asking.plan_ahead()
                    if not is_planned:
                        self._requested.set()
                rest_s = self._offer() if is_planned else self.settle()
            except BaseException as error:  # whatever ends this thread ends the run, and must be said
                self.failure = self.failure or error
                self._stop(self._query)
                return
            self._over.wait(rest_s)

    def _offer(self) -> float:
        """Take up what has a plan if no batch is under way; else that will. Return how long it has to wait, 0 if it has
        not.
        """
        if not self._between.acquire(blocking=False):
            return 0.0
        try:
            rest_s = self._take_planned()
            query = self._query if self._restarting else None
        finally:
            self._between.release()
        self._stop(query)
        return rest_s

    def _take_planned(self) -> float:
        """Take up what has a plan; return how many seconds another start for it has to wait, 0 if there is nothing to
        wait for.
        """
        if self._is_to_end or self._query is None or not self._asking.is_planned():
            return 0.0
        if self._restart_at is None and self._asking.take_planned(False):
            return 0.0
        self._requested.set()
        return self._settle()

    def _let_time_pass(self) -> None:
        """Do what only takes time, unless a batch is under way."""
        is_again = False
        if not self._between.acquire(blocking=False):
            return
        try:
            if self._query is not None and not self._is_to_end:
                self._pass_time()
        except Again:
            is_again = self._restarting = True
        finally:
            self._between.release()
        if is_again:
            self.restart()

    def settle(self) -> float:
        """Take up what has been asked for while no batch is under way, or start the streaming query anew for it.
        Return how many seconds that has to wait, 0 if it is done.
        """
        with self._between:
            rest_s = self._settle()
            query = self._query if self._restarting else None
        self._stop(query)
        return rest_s

    def _settle(self) -> float:
        was_asked = self._requested.is_set()
        self._requested.clear()  # first: what is asked for from here on is seen by the next call
        if not was_asked or self._is_to_end:
            return 0.0
        if self._restart_at is None:
            if self._query is not None and self._asking.take_up():
                return 0.0
            pause_s = RESTART_EVERY_S if self._is_endless and self._query is not None else 0.0
            self._restart_at = self._started_at + pause_s
        rest_s = self._restart_at - time.monotonic()
        if rest_s > 0:
            self._requested.set()
            return rest_s
        self._restarting = True
        self._asked.set()
        return 0.0

    def batches(self, carry_out: CarryOut) -> Callable[[DataFrame, int], None]:
        """Return what runs the batches of a streaming query."""

        def run(frame: DataFrame, number: int) -> None:
            self.batch(carry_out, frame, number)

        return run

    def batch(self, carry_out: CarryOut, frame: DataFrame, number: int) -> None:
        """Run a batch so that `stop` and `restart` fall between batches; it begins with what was asked for before.
        `carry_out` tells whether there should be another start after it; in between it lets more be taken up.
        """
        try:
            self._batch(carry_out, frame, number)
        finally:
            if self._asking.waits():  # what got its plan during the batch, or lost it
                self._requested.set()

    def _batch(self, carry_out: CarryOut, frame: DataFrame, number: int) -> None:
        with self._between:
            query = self._query
            if not self._is_to_end:
                try:
                    self._begin_with_what_is_asked()
                    is_to_restart = not self._restarting and carry_out(frame, number, self._take_up_within)
                except Again:
                    is_to_restart = self._restarting = True
                except BaseException as error:
                    self.failure = error
                    raise
                if is_to_restart or self._restarting:  # this call has to return, or wait, for its query to be stopped
                    threading.Thread(target=self.restart, name="plait-restart", daemon=True).start()
                if not self._restarting:
                    return
        # Whoever asked for the end stops the query, or `_supervise` does once it has it in hand.
        while query is None or query.isActive:
            time.sleep(_POLL_SECONDS)
            query = query or self._query
        raise Stopping

    def _begin_with_what_is_asked(self) -> None:
        """Take up what has a plan, what came since then being left for later; or, if nothing has, all there is."""
        if self._asking.is_planned():
            self._take_planned()
        elif self._planning.acquire(timeout=PATIENCE_S):
            try:
                if self._asking.is_planned():
                    self._take_planned()
                else:
                    self._settle()
            finally:
                self._planning.release()

    def _take_up_within(self) -> None:
        if not self._is_to_end and self._restart_at is None and self._asking.is_planned():
            self._asking.take_planned(True)

    @property
    def _is_to_end(self) -> bool:
        return self._ending or self._restarting

    def _supervise(self) -> None:
        try:
            with self._alone, seldom_collected():
                self._keep_going()
        except BaseException as error:  # whatever ends this thread ends the run, and must be said
            self.failure = self.failure or error
        finally:
            self._ending = True
            self._over.set()
            self._begun.set()
            self._requested.set()  # lets the attendant go home
            self._asking.give_up()

    def _keep_going(self) -> None:
        while True:
            with self._between:
                self._query, self._restart_at = None, None
                query = self._query = self._start()
                self._started_at = time.monotonic()
            self._begun.set()
            if query is not None:
                self._go_on_with(query)
            elif self._is_endless:
                self._asked.wait()
            with self._between:
                if self._is_over():
                    self._ending = True  # nothing is taken up any more, also by who waits for this lock
                    return
                self._restarting = False
                self._asked.clear()

    def _is_over(self) -> bool:
        """Tell whether nothing is left to do; what there is to do at the end has been done then, for the queries that
        were asked for before it.
        """
        if self._restarting and not self._ending and self.failure is None:
            return False
        try:
            if not self._ending and self.failure is None:
                if not self._asking.take_up_last(self._query is not None):
                    return False
                self._end()
        except Again:
            return False
        return True

    def _go_on_with(self, query: StreamingQuery) -> None:
        with self._between:
            is_late = self._is_to_end
        if is_late:  # asked for while there was no query to stop
            query.stop()
        self._await(query)

    def _await(self, query: StreamingQuery) -> None:
        try:
            query.awaitTermination()
        except PySparkException as error:
            if not self._is_to_end and self.failure is None:
                self.failure = error
        if self._is_endless and not self._is_to_end and self.failure is None:
            self.failure = PlaitError(
                "Spark has ended the streaming query although nobody asked Plait to: another part of the program has "
                "stopped it, or the session. The checkpoint is intact: start again."
            )

    def stop(self) -> None:
        """Finish the batch under way, then end. Returns when everything has, also what was being planned ahead."""
        with self._between:
            self._ending = True
            self._asked.set()
            query = self._query
        self._stop(query)
        self.wait()

    def restart(self) -> None:
        """Finish the batch under way, then start the streaming query anew on its own offset log."""
        with self._between:
            self._restarting = True
            self._asked.set()
            query = self._query
        self._stop(query)

    def _stop(self, query: StreamingQuery | None) -> None:
        """Stop the query there was when that was decided: by now there may be another."""
        if query is None:
            return
        try:
            query.stop()
        except Exception as error:  # Spark's JVM is gone, say
            self.failure = self.failure or error

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the run has ended, by itself or by `stop`; tell whether it has."""
        began = time.monotonic()
        self._thread.join(timeout)
        if not self._thread.is_alive() and self._attendant.ident:
            self._attendant.join(None if timeout is None else max(timeout - (time.monotonic() - began), 0.0))
        return not (self._thread.is_alive() or self._attendant.is_alive())

    def is_alive(self) -> bool:
        """Tell whether the run goes on."""
        return self._thread.is_alive()

    def raise_failure(self) -> None:
        """Raise what ended the run, if something did."""
        if self.failure is not None:
            raise self._explain(self.failure) from self.failure
