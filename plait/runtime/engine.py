"""The engine: what a Python program talks to. It runs what is declared (`declarations`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from plait.adapt.planning import PlanRequest
from plait.arguments import path, shown
from plait.errors import ComputationError, OptionError, PlaitError
from plait.plan.model import Plan
from plait.plan.strategy_names import DEFAULT_STRATEGY, StrategyName
from plait.query.model import Query, Source, Stream
from plait.runtime.batch.events import BatchEvent, Summary
from plait.runtime.batch.run_errors import explained
from plait.runtime.batch.stream import Run
from plait.runtime.checkpoint.arrivals import Arrivals
from plait.runtime.checkpoint.asked import Asked
from plait.runtime.course import Carried, Course
from plait.runtime.declarations import QueryHandle
from plait.runtime.engine_options import RoutingChoice, written
from plait.runtime.looking import Looking
from plait.runtime.losses.malformed import Explainer
from plait.runtime.losses.skipped import skipped_files
from plait.runtime.run_handle import RunHandle
from plait.runtime.setting_aside import blamed_for, done_or_again, told
from plait.runtime.spark.session import take_running_interpreter
from plait.runtime.spark.warming import Warming
from plait.runtime.telling import Telling
from plait.sinks.kinds import kind_of
from plait.sql.script.set_options import checked_option
from plait.sql.script.spark_settings import TIME_ZONE, spark_setting_problem
from plait.state.place import STATE
from plait.state.sole_run import sole_run
from plait.stats.latency import LatencyWindow


class Engine(Looking):
    """Runs continuous join queries over streams as one plan. `checkpoint`: directory or URI of all state.

    `strategy` names the optimizer's strategy, `parallelism` the partitions per store (default: tasks at a time),
    `routing` is ``auto``, ``local`` or ``shuffle``. `listener` hears of every batch.
    """

    def __init__(
        self,
        spark: SparkSession,
        *,
        checkpoint: str,
        strategy: StrategyName = DEFAULT_STRATEGY,
        parallelism: int | None = None,
        routing: RoutingChoice = "auto",
        listener: Callable[[BatchEvent], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not hasattr(spark, "readStream"):
            raise OptionError(
                f"expected a Spark session, found {type(spark).__name__}; Engine(spark, checkpoint='directory') takes "
                "one, such as SparkSession.builder.getOrCreate()"
            )
        self._checkpoint = path("Engine", "checkpoint", checkpoint)
        if listener is not None and not callable(listener):
            raise OptionError(f"Engine: listener is {shown(listener)}; expected a function of a batch's event")
        if not callable(clock):
            raise OptionError(f"Engine: clock is {shown(clock)}; expected a function such as time.time")
        zone = str(spark.conf.get(TIME_ZONE, "UTC"))
        problem = spark_setting_problem(TIME_ZONE, zone)
        if problem is not None:
            raise OptionError(f"{problem}. Set it first: spark.conf.set('{TIME_ZONE}', 'UTC')")
        super().__init__(spark, self._checkpoint, clock)
        self.set_option("plait.strategy", strategy)
        self.set_option("plait.routing", routing)
        if parallelism is not None:
            self.set_option("plait.parallelism", parallelism)
        take_running_interpreter(spark)
        self._warming = Warming(spark)
        self._listeners = [] if listener is None else [listener]
        self._explainer = Explainer(spark)
        self._telling = self._of_run(0)
        self._started = 0.0

    def listen(self, listener: Callable[[BatchEvent], None]) -> None:
        """Let another hear of every batch from now on."""
        self._listeners.append(listener)

    def _hear(self, event: BatchEvent) -> None:
        for listener in self._listeners:
            listener(event)

    # -- running -----------------------------------------------------------------------------------------------------

    def run_available(self, *, close: bool = False) -> Summary:
        """Process everything that is available now, then return a summary. Raises what ended the run, if it failed.
        `close`: nothing more will come. All that waits is decided, and the checkpoint cannot be run again.
        """
        run = self._begin(None, close=close)
        run.wait()
        return self._finish(run)

    def start(self, trigger: str | None = "default", *, close: bool = False) -> RunHandle:
        """Keep running: a batch every `trigger` as long as there is input. Returns a handle.

        ``default`` is what option ``plait.trigger`` says, else one second. None: end once everything that is available
        now is processed; with `close` the input has ended then, as in `run_available`.
        """
        if trigger == "default":
            trigger = self._options.trigger
        elif trigger is not None:
            checked_option(*written("plait.trigger", trigger))
        if close and trigger is not None:
            raise OptionError("close=True says that nothing more will come, so it takes trigger=None")
        run = self._begin(trigger, close=close)
        if not run.is_alive():
            run.raise_failure()
        return RunHandle(run, self._finish, self.status)

    def _begin(self, trigger: str | None, *, close: bool = False) -> Run:
        if self._run is not None and self._run.is_alive():
            raise OptionError("the engine is running already; stop it first")
        if not self._registry.bindings:
            raise OptionError("there is no query to run; add one with Engine.query or CREATE QUERY")
        self._telling, self._started = self._of_run(int(self._clock() * 1000)), time.perf_counter()
        self._telling.totals.warn(self._of_script)
        self._look_for_set_aside()
        run = Run(
            lambda: self._start_streaming(run, trigger),
            is_endless=trigger is not None,
            asked=self._asking(),
            end=lambda: done_or_again(lambda: self._end(close), self._mends),
            pass_time=lambda: done_or_again(self._pass_time, self._mends),
            explain=self._explained,
            alone=sole_run(self._checkpoint, STATE),
        )
        self._run = run
        with self._declaring:
            self._requests.take_in_hand()
        run.begin()
        return run

    def _look_for_set_aside(self) -> None:
        """Take up which queries earlier runs have set aside. Raises OptionError if no other is left."""
        with self._declaring:
            self._setting_aside.read()
            aside = self._setting_aside.among(self._registry.bindings)
            self._set_readers_aside({each.query: each.batch for each in aside})
            aside = self._setting_aside.among(self._registry.bindings)
            if not self._bindings():
                raise OptionError(f"no query is left to run; {aside[0].text}")
            for each in aside:
                self._refuse_waiting(each.query, ComputationError(each.text))
        self._telling.totals.warn(told(aside))

    def _end(self, close: bool) -> None:
        """Carry out what is left when all there is has been read; with `close` nothing more will come, as after a run
        that was cut short while it said so. For queries that have been dropped on the way nothing is decided.
        """
        if self._course is None or not self._bindings():
            return
        batches = self._course.batches
        if close or batches.is_ending:
            batches.end()
        else:
            batches.settle()

    def _pass_time(self) -> None:
        if self._course is not None and self._setting_aside.suspected is None:
            self._course.batches.pass_time()

    def _of_run(self, since_ms: int) -> Telling:
        """Return what tells of a run that begins at this time."""
        return Telling(
            explainer=self._explainer,
            sources=self._registry.opened,
            arrivals=Arrivals(self._checkpoint),
            latencies=LatencyWindow(since_ms=since_ms),
            listener=self._hear,
        )

    def _start_streaming(self, run: Run, trigger: str | None) -> StreamingQuery | None:
        """Bring the checkpoint up to date with what is registered and start the streaming query. None: all queries have
        been dropped.
        """
        suspected = self._setting_aside.suspected
        if self._course is not None and suspected is not None:
            try:
                return self._course.start_trial(trigger, run.batches(lambda frame, *_: self._failing(frame)))
            except Exception:  # what there was before tells more
                raise self._explained(suspected) from suspected
        if self._course is not None:
            self._course.close(is_replaced=True)
            with self._declaring:
                self._forget_dropped(self._course)
        if not self._bindings():
            return None
        with self._declaring:
            request, waiting = self._request(), self._requests.waiting()
            carried = Carried() if self._course is None else self._course.carried(request)
            asked = replace(self._asked(carried.plan), former=carried.former)
        try:
            self._course = Course.begin(
                asked,
                batch_rows=self._options.batch_rows,
                listener=self._telling.hear,
                clock=self._clock,
                predicates=self._registry.predicates,
                explainer=self._explainer,
                carried=carried,
                is_endless=trigger is not None,
            )
        except PlaitError as error:
            if not self._goes_on_without(error, asked, run):
                raise
            return self._start_streaming(run, trigger)
        with self._declaring:
            self._requests.settle(waiting, asked.bindings, self._course.next_batch)
        if run.has_started:
            self._note_since(self._course, waiting)
        self._telling.totals.begin_with(self._course.stored, self._course.failing)
        self._telling.totals.warn((*self._course.notices, *self._course.warnings))
        carry_out = self._course.batches.carry_out
        try:
            return self._course.start(
                trigger, run.batches(lambda *batch: done_or_again(partial(carry_out, *batch), self._mends))
            )
        except Exception as error:
            raise self._explained(error) from error

    def _goes_on_without(self, error: PlaitError, asked: Asked, run: Run) -> bool:
        """Tell whether a start that has failed is to be tried again: without the queries that are to blame for it, or
        those that were added for it.
        """
        added = [] if self._course is None or not run.has_started else self._added(self._course)
        blamed = blamed_for(error, (each.query for each in asked.bindings.values()))
        refused = [query for query in added if query in blamed] or ([] if blamed else added)
        if refused:
            self._refuse(refused, error)  # all others go on
        batch = 0 if self._course is None else self._course.next_batch
        return bool(refused) or self._set_aside(error, asked, batch)

    def _asked(self, plan: Plan | None = None, without: Collection[str] = ()) -> Asked:
        """Return what is registered now; of the queries `without`, what is in force."""
        found = {name: self._in_force(name) if name in without else each for name, each in self._bindings().items()}
        bindings = {name: each for name, each in found.items() if each is not None}
        return Asked(
            spark=self._spark,
            checkpoint=self._checkpoint,
            settings=self._options.settings(self._spark, 1 if self._setting_aside.is_singly else self._warming.slots),
            request=self._request(tuple(each.query for each in bindings.values())),
            sources=self._registry.read_by(bindings.values()),
            bindings=bindings,
            clock_ms=int(self._clock() * 1000),
            dropped=frozenset(self._dropped.difference(without)),
            plan=plan,
        )

    def _explained(self, error: BaseException) -> PlaitError:
        """Say what ended a run, and which query is to blame."""
        specs = (binding.sink.spec for binding in self._bindings().values())
        directories = (kind_of(spec).directory(spec) for spec in specs)
        letters = (stream.dead_letter for stream in self._streams())
        return explained(error, self._queries(), self._checkpoint, tuple(filter(None, (*directories, *letters))))

    def _finish(self, run: Run) -> Summary:
        if self._course is not None:
            self._course.close()
        run.raise_failure()
        self._telling.totals.warn(skipped_files(self._checkpoint, self._streams()))
        return self.summary()

    def _streams(self) -> tuple[Stream, ...]:
        return tuple(source for source in self.sources().values() if isinstance(source, Stream))

    def _queries(self) -> tuple[Query, ...]:
        return tuple(binding.query for binding in self._bindings().values())

    def _request(
        self, queries: tuple[Query, ...] | None = None, sources: dict[str, Source] | None = None
    ) -> PlanRequest:
        asked = self._queries() if queries is None else queries
        return self._options.request(self._warming.slots, asked, self.sources() if sources is None else sources)


__all__ = ["Engine", "QueryHandle", "RunHandle"]
