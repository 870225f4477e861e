"""What a run that goes on makes of what is asked for meanwhile: it is planned, taken up together, or refused alone."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from plait.errors import ComputationError, OptionError, PlaitError
from plait.operators.failing import computation_error
from plait.plan.model import Plan
from plait.runtime.batch.asking import Asking
from plait.runtime.batch.stream import Again, Run
from plait.runtime.batch.trial import failures_of_batch
from plait.runtime.checkpoint.asked import Asked
from plait.runtime.checkpoint.recovery import refuse_results_of_others
from plait.runtime.course import Ahead, Course
from plait.runtime.declarations import Declarations
from plait.runtime.outputs.binding import Binding
from plait.runtime.requests import Request
from plait.runtime.setting_aside import blamed_for, is_of_spark, told
from plait.runtime.spark.session import has_named_sources
from plait.runtime.telling import Telling


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """Requests that were `waiting` when a plan was made `ahead` for them, and what was `asked` for in all."""

    asked: Asked
    waiting: tuple[Request, ...]
    ahead: Ahead


class Answering(Declarations):
    """Takes up what is declared while a run goes on. `_planned`: what the next batch can begin with; `_since`: the
    first of Spark's batches that answers a query which came while the run went on.
    """

    _telling: Telling

    def __init__(self, spark: SparkSession, checkpoint: str, clock: Callable[[], float]) -> None:
        super().__init__(spark, checkpoint)
        self._clock = clock
        self._run: Run | None = None
        self._course: Course | None = None
        self._planned: Planned | None = None
        self._since: dict[str, int] = {}

    @abstractmethod
    def _asked(self, plan: Plan | None = None, without: Collection[str] = ()) -> Asked:
        """Return what is registered now; of the queries `without`, what is in force."""

    @abstractmethod
    def _explained(self, error: BaseException) -> PlaitError:
        """Say what was wrong, and which query is to blame."""

    def _bindings(self) -> dict[str, Binding]:
        """Return the queries that batches are to answer: those that are not set aside, nor read the groups of such."""
        left = self._setting_aside.without(self._registry.bindings)
        gone = self._registry.readers_of(self._registry.bindings.keys() - left.keys())
        return {name: binding for name, binding in left.items() if name not in gone}

    def _mends(self, error: Exception) -> bool:
        """Tell whether another attempt at what has failed goes without it: set the queries to blame aside; or, where
        Spark has failed while it took rows in, let the next start find out which these are.
        """
        course = self._course
        if course is None:
            return False
        if is_of_spark(error) and course.batches.processor.is_taking_in and len(course.asked.bindings) > 1:
            self._setting_aside.suspected = error
            return True
        if self._setting_aside.finds_out(error):
            return True
        queries = (each.query for each in course.asked.bindings.values())
        return self._set_aside(self._setting_aside.explained(error, queries), course.asked, course.next_batch)

    def _set_aside(self, error: BaseException, asked: Asked, batch: int) -> bool:
        """Set the queries aside that are to blame for an error; tell whether there are any, and others beside them."""
        reasons = blamed_for(error, (each.query for each in asked.bindings.values()))
        with self._declaring:
            reasons |= self._reasons_of_readers(reasons)
            to_blame = [each for name, each in asked.bindings.items() if name in reasons]
            left = [each for name, each in self._bindings().items() if name not in reasons]
            if not to_blame or not left or not self._may_read_less(asked, left):
                return False
            aside = self._setting_aside.add(to_blame, reasons, batch)
            self._planned = None  # it was made with them
            for each in aside:
                self._refuse_waiting(each.query, ComputationError(each.text))
        self._telling.totals.warn(told(aside))
        if self._course is not None:
            with suppress(Exception):  # else all are planned by the start that follows
                self._course.plan_ahead(self._asked())
        return True

    def _reasons_of_readers(self, aside: Iterable[str]) -> dict[str, str]:
        """Return why those that read the groups of these queries, which are set aside, are so too."""
        readers = self._registry.readers_of(aside).items()
        return {name: f"it reads the groups of query '{read}', which is set aside" for name, read in readers}

    def _set_readers_aside(self, aside: Mapping[str, int]) -> None:
        """Set those aside that read the groups of these queries, which are from these batches on."""
        reasons = self._reasons_of_readers(aside)
        if reasons:
            readers = [self._registry.bindings[name] for name in reasons]
            self._setting_aside.add(readers, reasons, max(aside.values()))

    def _may_read_less(self, asked: Asked, left: Iterable[Binding]) -> bool:
        """Tell whether these queries alone can go on: where streams have no names for Spark, all have to be read."""
        return has_named_sources(self._spark) or _read_by(left) >= _read_by(asked.bindings.values())

    def _refuse_waiting(self, query: str, problem: PlaitError) -> None:
        """Refuse what waits for a query to be answered."""
        for request in self._requests.waiting():
            if request.query == query and not request.is_drop:
                self._requests.refuse(request, problem)

    def _failing(self, frame: DataFrame) -> bool:
        """Find out on which expressions Spark has failed in a batch with these rows. Raises `Again` if queries are set
        aside for it, else what Spark failed with.
        """
        suspected, self._setting_aside.suspected = self._setting_aside.suspected, None
        if self._course is None or suspected is None:
            raise RuntimeError("there is no batch to try again")
        try:
            failures = failures_of_batch(frame, self._course.tried)
        except Exception:  # whatever keeps the rows from being read
            raise suspected from None
        error = computation_error(failures) if failures else suspected
        if self._set_aside(error, self._course.asked, self._course.next_batch):
            raise Again from suspected
        raise suspected

    def _asking(self) -> Asking:
        """Return what the run has to know of this."""
        return Asking(
            waits=lambda: bool(self._requests.waiting()),
            take_up=self._take_up,
            plan_ahead=self._plan_ahead,
            is_planned=self._is_planned,
            take_planned=self._take_planned,
            take_up_last=self._take_up_last,
            give_up=self._give_up,
        )

    def _heard_of(self, request: Request) -> None:
        if self._run is None or not self._run.is_alive():
            return
        if not request.is_drop and self._course is not None:
            storage, manifest = self._course.prepared.storage, self._course.batches.processor.before
            refuse_results_of_others(storage, manifest, [self._registry.bindings[request.query]])
        self._run.ask()

    def _take_up(self) -> bool:
        """Let the next batch begin with what is registered now; tell whether Spark's query can go on for it.

        What cannot be planned is refused alone, and ends nothing.
        """
        course = self._course
        if course is None or not self._bindings():
            return False
        if not self._requests.waiting():  # the call before this one has seen all
            return True
        try:
            return self._taken_up(course)
        except Exception as error:  # whatever a strategy or its solver raises
            added, reason = self._added(course), error
        if not added:
            raise reason
        if len(added) == 1:
            self._refuse(added, reason)
            return self._take_up()
        return self._taken_up_singly(course, added)

    def _take_up_last(self, has_run: bool) -> bool:
        """Let the batches of the end begin with what is registered now; tell whether they can. `has_run`: there was a
        streaming query, so the start before had something to read for some query.
        """
        course = self._course
        if course is None or not self._requests.waiting() or not self._bindings():
            return True
        return self._take_up() if has_run else not self._added(course)

    def _give_up(self) -> None:
        """Let nobody wait for what the run that is over has not taken up. Where the input has ended no other will, so
        queries that came too late are refused.
        """
        course = self._course
        with self._declaring:
            try:
                if course is not None and course.batches.has_ended:
                    for query in reversed(self._added(course)):  # readers before what they read, each for itself
                        self._refuse([query], _too_late(query, course.asked.checkpoint))
            finally:
                self._requests.give_up()

    def _plan_ahead(self) -> bool:
        """Plan for what is registered now while a batch may be under way; tell whether all of it has a plan now. What
        fails here fails when it is taken up.
        """
        course = self._course
        if course is None or not self._bindings():
            return False
        waiting = self._requests.waiting()
        if not waiting or (self._is_planned() and self._planned is not None and self._planned.waiting == waiting):
            return True
        try:
            with self._declaring:
                waiting, asked = self._requests.waiting(), self._asked()
            ahead = course.plan_ahead(asked)
        except Exception:  # whatever a strategy or its solver raises, or an option that does not fit the others
            return False
        if ahead is not None:
            with self._declaring:
                self._planned = Planned(asked=asked, waiting=waiting, ahead=ahead)
        return ahead is not None

    def _is_planned(self) -> bool:
        """Tell whether something waits that has a plan, beside the one that is in force."""
        planned, course = self._planned, self._course
        if planned is None or course is None or not planned.ahead.goes_on_from(course.epoch.heading):
            return False
        return set(self._requests.waiting()).issuperset(planned.waiting)

    def _take_planned(self, within: bool) -> bool:
        """Let a batch begin with what has a plan, or go on with it; tell whether Spark's query can go on for it.

        Of queries that were dropped by name, and of which nothing is left by now, nothing is discarded once more.
        """
        planned, course = self._planned, self._course
        if planned is None or course is None or not self._is_planned():
            return True
        with self._declaring:
            self._forget_dropped(course)
        gone = course.dropped - {each.query for each in planned.waiting}
        now_ms = int(self._clock() * 1000)
        asked = replace(planned.asked, dropped=planned.asked.dropped - gone, clock_ms=now_ms)
        try:
            is_taken = course.take_up(asked, self._registry.predicates, planned.ahead, within=within)
        except Exception:  # as above; taking up all of it tells what is to blame
            self._planned = None
            return within or self._take_up()
        if is_taken:
            self._settled(course, planned.waiting)
            with self._declaring:
                self._planned = None if self._planned is planned else self._planned
        return is_taken or within

    def _settled(self, course: Course, waiting: Iterable[Request]) -> None:
        """Tell those who wait which batch answers them, and the user what these go without."""
        with self._declaring:
            self._requests.settle(waiting, course.asked.bindings, course.next_batch)
        self._note_since(course, waiting)
        self._telling.totals.warn(course.notices)

    def _note_since(self, course: Course, waiting: Iterable[Request]) -> None:
        """Remember which of Spark's batches is the first that answers queries which came while the run went on."""
        before = course.batches.processor.before
        batch = course.next_batch - (0 if before is None else before.unfed)
        self._since |= {each.query: batch for each in waiting if each.active_since is not None and not each.is_drop}

    def _added(self, course: Course) -> list[str]:
        """Return the queries that wait to be answered for the first time, or otherwise than before."""
        unknown = course.unknown(self._bindings())
        return list(dict.fromkeys(each.query for each in self._requests.waiting() if each.query in unknown))

    def _taken_up(self, course: Course, without: Collection[str] = ()) -> bool:
        """Do that for all but the queries `without`, which stay as they are."""
        with self._declaring:
            self._forget_dropped(course)
            asked = self._asked(without=without)
            waiting = [each for each in self._requests.waiting() if each.query not in without]
        if not course.take_up(asked, self._registry.predicates):
            return False
        self._settled(course, waiting)
        return True

    def _taken_up_singly(self, course: Course, added: list[str]) -> bool:
        """Do that for one query after the other, and refuse those for which it fails."""
        can_go_on, left = True, list(added)
        for query in added:
            left.remove(query)
            try:
                can_go_on = self._taken_up(course, left)
            except Exception as error:  # as above
                self._refuse([query], error)
        return can_go_on

    def _refuse(self, queries: Iterable[str], reason: Exception) -> None:
        """Refuse these queries; one that was to be replaced stays, and one that was to be tried again stays aside."""
        problem = reason if isinstance(reason, PlaitError) else self._explained(reason)
        with self._declaring:
            refused = list(queries)
            for query in (*refused, *self._registry.readers_of(refused)):
                waiting = [each for each in self._requests.waiting() if each.query == query]
                former = None if any(each.is_drop for each in waiting) else self._in_force(query)
                if any(each.is_retry for each in waiting):
                    self._leave_aside(query, problem)
                elif query in self._registry.bindings:
                    self._registry.drop_query(query)
                if former is not None:
                    self._registry.restore_query(former)
                    self._dropped.discard(query)
                for request in waiting:
                    if not request.is_drop:
                        self._requests.refuse(request, problem)

    def _leave_aside(self, query: str, problem: PlaitError) -> None:
        """Set a query aside again that was to be tried once more."""
        batch = 0 if self._course is None else self._course.next_batch
        aside = self._setting_aside.add([self._registry.bindings[query]], {query: str(problem)}, batch)
        self._telling.totals.warn(told(aside))

    def _in_force(self, query: str) -> Binding | None:
        """Return the query of this name that batches answer, None if there is none."""
        return None if self._course is None else self._course.asked.bindings.get(query)

    def _forget_dropped(self, course: Course) -> None:
        """Let go of the queries of which nothing is left, but for those that have been dropped once more since."""
        self._dropped -= course.dropped - {each.query for each in self._requests.waiting()}


def _too_late(query: str, checkpoint: str) -> OptionError:
    return OptionError(
        f"the input of checkpoint '{checkpoint}' had ended before query '{query}' could take part, so it has no "
        "results; ask for it earlier, or run it on another checkpoint"
    )


def _read_by(bindings: Iterable[Binding]) -> set[str]:
    return {relation.source for each in bindings for relation in each.query.relations if not relation.is_table}


__all__ = ["Answering"]
