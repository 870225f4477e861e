"""What a run makes of queries that fail: each is set aside alone, and all others go on with exactly their results.

What fails for some row ends the attempt of a batch before anything of it is committed. The queries to blame are taken
out of what is asked, and the batch is carried out again by another start, as after a kill. Several that fail in one
attempt are found together. Where it is Spark that fails on arriving rows, a start in between finds out on which
expressions (`plait.runtime.batch.trial`). A function of the user's that ends the worker it runs in leaves a note of it
(`plait.operators.probe.calling`); where several do, because their workers end with the job, the batch is done again by
one task at a time. What a stream itself computes, its event time, belongs to no query, and ends
the run; so does the last query that is left: nothing would go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from plait.errors import ComputationError, Failure
from plait.operators.failing import blamed, computation_error
from plait.operators.probe.calling import forget_calls, left_behind
from plait.query.model import Query
from plait.runtime.batch.run_errors import is_of_ended_worker
from plait.runtime.batch.stream import Again
from plait.runtime.checkpoint.set_aside import SetAside, definition_of, note_set_aside, read_set_aside
from plait.runtime.notice import Notice
from plait.runtime.outputs.binding import Binding
from plait.state.storage import Storage

Done = TypeVar("Done")


@dataclass(slots=True)
class SettingAside:
    """Knows which queries are set aside on the checkpoint of `storage`. `suspected`: what Spark has failed with on rows
    that arrived, until the expressions are known that it failed for. `is_singly`: one task at a time probes, to find
    out which function ends its worker.
    """

    storage: Callable[[], Storage]
    suspected: Exception | None = None
    is_singly: bool = False
    _known: dict[str, SetAside] = field(default_factory=dict)

    def read(self) -> None:
        """Take up what is noted in the checkpoint, and forget what a run before has not come to."""
        self.suspected, self.is_singly, self._known = None, False, self._noted()
        forget_calls(self.storage())

    def of(self, binding: Binding) -> SetAside | None:
        """Return what is known of a query that is set aside; None if this one is not."""
        known = self._known.get(binding.query.name)
        return known if known is not None and known.definition == definition_of(binding) else None

    def without(self, bindings: Mapping[str, Binding]) -> dict[str, Binding]:
        """Return those of these queries that are not set aside; others may come meanwhile."""
        return {name: binding for name, binding in tuple(bindings.items()) if self.of(binding) is None}

    def among(self, bindings: Mapping[str, Binding]) -> tuple[SetAside, ...]:
        """Return those of these queries that are set aside."""
        found = (self.of(bindings[name]) for name in sorted(bindings.keys() & self._known))
        return tuple(each for each in found if each is not None)

    def add(self, bindings: Iterable[Binding], reasons: Mapping[str, str], batch: int) -> tuple[SetAside, ...]:
        """Set these queries aside, each for its reason, from a batch on."""
        added = tuple(
            SetAside(
                query=binding.query.name,
                definition=definition_of(binding),
                reason=reasons[binding.query.name].rstrip("."),
                batch=batch,
            )
            for binding in bindings
        )
        self._known |= {each.query: each for each in added}
        note_set_aside(self.storage(), self._known.values())
        return added

    def finds_out(self, error: BaseException) -> bool:
        """Tell whether one more attempt, by one task at a time, tells which function has ended its worker."""
        if self.is_singly or not is_of_ended_worker(error) or len(left_behind(self.storage())) < 2:
            return False
        self.is_singly = True
        forget_calls(self.storage())
        return True

    def explained(self, error: BaseException, queries: Iterable[Query]) -> BaseException:
        """Return an error that tells which queries call the functions that have ended their workers, where these are
        known; else the error.
        """
        if not is_of_ended_worker(error):
            return error
        named = left_behind(self.storage())
        forget_calls(self.storage())
        self.is_singly = False
        failures = tuple(
            Failure(query=query.name, reason=_ended_by(residual.sql))
            for query in queries
            for residual in query.residuals
            if residual.is_function and residual.sql in named
        )
        return computation_error(failures) if failures else error

    def forget(self, query: str) -> bool:
        """Let a query be tried again, or another one of its name; tell whether it was set aside."""
        self._known = self._noted()
        was_aside = self._known.pop(query, None) is not None
        if was_aside:
            note_set_aside(self.storage(), self._known.values())
        return was_aside

    def _noted(self) -> dict[str, SetAside]:
        return {each.query: each for each in read_set_aside(self.storage())}


def _ended_by(function: str) -> str:
    return (
        f"predicate '{function}' ended the Python worker that called it: a function that calls os._exit, breaks native "
        "code or takes too much memory does that"
    )


def blamed_for(error: BaseException, queries: Iterable[Query]) -> dict[str, str]:
    """Return which of these queries are to blame for an error, and why."""
    return blamed(error.failures, queries) if isinstance(error, ComputationError) else {}


def is_of_spark(error: BaseException) -> bool:
    """Tell whether Spark has failed, which does not say on what."""
    return isinstance(error, PySparkException | Py4JJavaError)


def done_or_again(work: Callable[[], Done], mends: Callable[[Exception], bool]) -> Done:
    """Carry something out. Raises `Again` if it fails and `mends` says that another attempt does not."""
    try:
        return work()
    except Again:
        raise
    except Exception as error:
        if mends(error):
            raise Again from error
        raise


def told(aside: Iterable[SetAside]) -> tuple[Notice, ...]:
    """Return what the user is told of queries that are set aside."""
    return tuple(Notice(kind="query set aside", of=each.query, text=each.text) for each in aside)


__all__ = ["SettingAside", "blamed_for", "done_or_again", "is_of_spark", "told"]
