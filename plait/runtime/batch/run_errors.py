"""Say what went wrong in a run: errors from Python workers and from Spark as errors of Plait, and which condition of
which query Spark could not evaluate, by the piece of SQL that its message shows.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JNetworkError
from typing_extensions import assert_never

from plait import errors
from plait.errors import CheckpointError, PlaitError, PredicateError, SourceError
from plait.operators.ingest.projection import value_sql
from plait.plan.model import ValueColumn
from plait.query.model import Operand, Query
from plait.query.places import TextPlace
from plait.query.predicates import Band, Equality, Predicate, Residual, operands_of
from plait.runtime.batch.full_places import full_places
from plait.runtime.checkpoint.spark_logs import damage_of, damaged_log
from plait.runtime.inputs.unreadable import unreadable
from plait.runtime.spark.headline import headline
from plait.sql.predicates.evaluation import operand_text, residual_text

_RAISED_IN_TASK = re.compile(r"plait\.errors\.(\w+): (.+)")
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([^']+)'")
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
_DAMAGED_LOG = re.compile(r"Failed to read log file (?:file:/*(?=/))?(\S+?)\. ")
_WORKER_ENDED = ("Python worker exited unexpectedly", "PYTHON_WORKER_EXITED", "Python worker has exited")
_NOT_PICKLED = ("PicklingError", "PICKLING_ERROR", "Could not serialize object", "cannot pickle")
_OTHER_RUN = ("CONCURRENT_STREAM_LOG_UPDATE", "CONCURRENT_QUERY", "Multiple streaming jobs detected")
_OFFSET_TROUBLE = ("STREAMING_CHECKPOINT", "offset log", "OffsetSeq", "StreamMetadata$.read")


def is_jvm_gone(error: BaseException | None) -> bool:
    """Tell whether this, or what caused it, is that Spark's JVM does not answer any more."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, Py4JNetworkError):
            return True
        if isinstance(error, ConnectionError | EOFError) and any(
            "py4j" in frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)
        ):
            return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def naming_an_ended_jvm() -> Iterator[None]:
    """While entered, whatever fails because Spark's JVM has ended is an error of Plait that says so."""
    try:
        yield
    except Exception as error:
        if isinstance(error, PlaitError) or not is_jvm_gone(error):
            raise
        raise explained(error) from error


def explained(
    error: BaseException, queries: Collection[Query] = (), checkpoint: str | None = None, places: Collection[str] = ()
) -> PlaitError:
    """Return `error` as an error of Plait, with the part of its text that tells the user something. `queries`: those
    that ran; of the user's functions only those that one of them calls can be to blame. `checkpoint`: whose logs are
    looked at where the text blames nothing. `places`: where else is written to, in case a disk is full.
    """
    if isinstance(error, PlaitError):
        return error
    if is_jvm_gone(error):
        return PlaitError(
            "Spark's JVM has ended: somebody or something killed it (the system does so when memory runs out; "
            "spark.driver.memory says how much it may take). The checkpoint is intact: start again."
        )
    text = str(error)
    called = {residual.sql for query in queries for residual in query.residuals if residual.is_function}
    blamed = _blamed_predicates(text, called) or blamed_condition(text, queries)
    if blamed is not None:
        return blamed
    raised = _RAISED_IN_TASK.search(text)
    if raised is not None:
        kind = getattr(errors, raised.group(1), PlaitError)
        message = raised.group(2).strip()
        return kind(message) if issubclass(kind, PlaitError) else PlaitError(message)
    module, program = _NO_MODULE.search(text), _NO_PROGRAM.search(text)
    if module is not None:
        return PlaitError(
            f"the executors' Python has no module '{module.group(1)}'. Install Plait and what it needs there, in the "
            "driver's versions, and set PYSPARK_PYTHON to that Python before the Spark session is made (the driver's "
            f"is {sys.executable}), or ship an environment with the job: docs/deploy.md says how."
        )
    if program is not None:
        return PlaitError(
            f"an executor cannot run '{program.group(1)}', the Python it was told to. Set spark.pyspark.python (or "
            "PYSPARK_PYTHON) to an interpreter that every executor has: docs/deploy.md says how."
        )
    if "No space left on device" in text:
        full = full_places((*places, *([checkpoint] if checkpoint else [])))
        named = f" of {', '.join(full)}" if full else ""
        return CheckpointError(
            f"no space left on the device{named}. Free some space, then start again: nothing committed is lost."
        )
    if any(sign in text for sign in _OTHER_RUN):
        return CheckpointError(
            f"another run works on this checkpoint{'' if checkpoint is None else f' ({checkpoint})'} at the same time, "
            "and was ahead with a batch. Let one of them go on alone, or give each its own checkpoint and sinks; what "
            "is committed is intact."
        )
    problem = unreadable(text)
    if problem is not None:
        return SourceError(f"{problem}. The checkpoint is intact: mend the cause and start again.")
    damaged = _DAMAGED_LOG.search(text)
    if damaged is not None:
        return CheckpointError(damage_of(damaged[1]))
    log = None if checkpoint is None else _damaged_log(checkpoint)
    if log is not None:
        return CheckpointError(damage_of(log))
    if any(sign in text for sign in _OFFSET_TROUBLE):
        return CheckpointError(
            f"Spark cannot continue from the checkpoint: {headline(text)} Restore the old definition "
            "or use another checkpoint."
        )
    return SourceError(
        f"the run failed while Spark read or evaluated the input: {headline(text)} "
        "The checkpoint is intact: mend the cause and start again."
    )


def _damaged_log(checkpoint: str) -> str | None:
    try:
        return damaged_log(checkpoint)
    except (OSError, PlaitError):  # what cannot be read now blames nothing
        return None


def is_of_ended_worker(error: BaseException) -> bool:
    """Tell whether a Python worker has ended in the middle of its task."""
    return any(sign in str(error) for sign in _WORKER_ENDED)


def _blamed_predicates(text: str, predicates: Collection[str]) -> PredicateError | None:
    """Return the error if a Python worker has ended, or could not be told what to do, and the user's functions are the
    only thing in it that is not Plait's.
    """
    if not predicates:
        return None
    listed = ", ".join(f"'{name}'" for name in sorted(predicates))
    named = f"{'predicate' if len(predicates) == 1 else 'predicates'} {listed}"
    if any(sign in text for sign in _WORKER_ENDED):
        return PredicateError(
            f"a Python worker ended in the middle of a batch. The {named} ran in it: a function that calls os._exit, "
            "breaks native code or takes too much memory ends the worker it runs in. The checkpoint is intact: mend it "
            "and start again."
        )
    if any(sign in text for sign in _NOT_PICKLED):
        return PredicateError(
            f"the {named} cannot be sent to Spark's workers: {headline(text)} Use nothing in it that belongs to this "
            "process (locks, files, connections, the Spark session)."
        )
    return None


_SHOWN_SQL = re.compile(r"== SQL[^\n]*==\n(.*)", re.DOTALL)
_UNREADABLE = re.compile(r"\[CAST_INVALID_INPUT\] (The value .* cannot be cast to \"(.+?)\" because it is malformed)")


def blamed_condition(text: str, queries: Iterable[Query]) -> SourceError | None:
    """Return the error of a value that could not be cast where a query compares it; None if Spark tells of another
    error, or of a cast in no query's condition.
    """
    cast, shown_sql = _UNREADABLE.search(text), _SHOWN_SQL.search(text)
    if cast is None or shown_sql is None:
        return None
    blamed = [each for query in queries for each in _conditions(query, shown_sql[1], cast[2])]
    if not blamed:
        return None
    place, condition, advice = blamed[0]
    others = f" ({len(blamed) - 1} more conditions read the same)" if len(blamed) > 1 else ""
    reason = cast[1][0].lower() + cast[1][1:]
    return SourceError(
        f"{condition}{others}, which Spark cannot do for some row: {reason}. {advice}, or mend the data. The "
        "checkpoint is intact: start again then.",
        line=place.line,
        column=place.column,
        file=place.file,
    )


def _conditions(query: Query, sql: str, type_: str) -> Iterator[tuple[TextPlace, str, str]]:
    """Yield (where, what is done, what to do) for the conditions of a query that the SQL is made for."""
    for predicate in query.predicates:
        for operand in operands_of(predicate):
            if _computed(operand) in sql:
                yield (
                    _place(predicate) or query.place,
                    f"query '{query.name}' {_done(predicate)}",
                    _advice(operand, type_),
                )
    for relation in query.relations:
        for selection in relation.selections:
            if selection.sql in sql:
                operand = Operand(relation=relation.alias, expression=selection)
                yield query.place, f"query '{query.name}' selects {operand_text(operand)}", _advice(None, type_)


def _computed(operand: Operand) -> str:
    """Return what Spark computes for an operand, without a doubt of its type: it has run."""
    return value_sql(ValueColumn(expression=operand.expression, type=operand.type or ""))


def _place(predicate: Predicate[Operand]) -> TextPlace | None:
    match predicate:
        case Equality() | Residual():
            return predicate.place
        case Band():
            return None
        case _:
            assert_never(predicate)


def _done(predicate: Predicate[Operand]) -> str:
    match predicate:
        case Residual():
            return f"checks {residual_text(predicate)}"
        case Equality() | Band():
            return (
                f"compares {operand_text(predicate.left)} with {operand_text(predicate.right)} as {predicate.left.type}"
            )
        case _:
            assert_never(predicate)


def _advice(operand: Operand | None, type_: str) -> str:
    text = "the text" if operand is None else operand_text(operand)
    return f"Write try_cast({text} AS {type_}), which is NULL, and so in no result, where it cannot be read"
