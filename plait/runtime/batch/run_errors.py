"""Say what went wrong in a run: errors from Python workers and from Spark as errors of Plait."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Collection

from py4j.protocol import Py4JNetworkError

from plait import errors
from plait.errors import CheckpointError, PlaitError, PredicateError, SourceError
from plait.query.model import Query
from plait.runtime.batch.blame import blamed_condition
from plait.runtime.inputs.unreadable import unreadable

_RAISED_IN_TASK = re.compile(r"plait\.errors\.(\w+): (.+)")
_SPARK_CLASS = re.compile(r"\[([A-Z0-9_.]+)\] (.+)")
_STREAM_FAILED = re.compile(r"\[STREAM_FAILED\] Query \[[^\]]*\] terminated with exception: ")
_SQL_STATE = re.compile(r"\s*SQLSTATE: \w{5}\b")
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([^']+)'")
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
_WORKER_ENDED = ("Python worker exited unexpectedly", "PYTHON_WORKER_EXITED", "Python worker has exited")
_NOT_PICKLED = ("PicklingError", "PICKLING_ERROR", "Could not serialize object", "cannot pickle")
_OFFSET_TROUBLE = ("STREAMING_CHECKPOINT", "offset log", "OffsetSeq")


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


def explained(error: BaseException, queries: Collection[Query] = ()) -> PlaitError:
    """Return `error` as an error of Plait, with the part of its text that tells the user something. `queries`: those
    that ran; of the user's functions only those that one of them calls can be to blame.
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
        return CheckpointError(
            "no space left on the device. Free some space, then start again: nothing committed is lost."
        )
    problem = unreadable(text)
    if problem is not None:
        return SourceError(f"{problem}. The checkpoint is intact: mend the cause and start again.")
    if any(sign in text for sign in _OFFSET_TROUBLE):
        return CheckpointError(
            f"Spark cannot continue from the checkpoint: {_headline(text)} Restore the old definition "
            "or use another checkpoint."
        )
    return SourceError(
        f"the run failed while Spark read or evaluated the input: {_headline(text)} "
        "The checkpoint is intact: mend the cause and start again."
    )


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
            f"the {named} cannot be sent to Spark's workers: {_headline(text)} Use nothing in it that belongs to this "
            "process (locks, files, connections, the Spark session)."
        )
    return None


def _headline(text: str) -> str:
    """Return Spark's own message, without plans and stack traces. The innermost error class comes last."""
    text = _SQL_STATE.sub("", _STREAM_FAILED.sub("", text))
    found = [match for match in _SPARK_CLASS.finditer(text) if not match.group(1).startswith("STREAM_FAILED")]
    if found:
        return f"[{found[-1].group(1)}] {found[-1].group(2).rstrip('. ')}."
    return text.strip().split("\n", 1)[0].rstrip(". ") + "."
