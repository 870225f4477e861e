"""Say what went wrong in a run: errors from Python workers and from Spark as errors of Plait."""

from __future__ import annotations

import re

from plait import errors
from plait.errors import CheckpointError, PlaitError, SourceError
from plait.runtime.unreadable import unreadable

_RAISED_IN_TASK = re.compile(r"plait\.errors\.(\w+): (.+)")
_SPARK_CLASS = re.compile(r"\[([A-Z0-9_.]+)\] (.+)")
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([^']+)'")
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
_OFFSET_TROUBLE = ("STREAMING_CHECKPOINT", "offset log", "OffsetSeq")


def explained(error: BaseException) -> PlaitError:
    """Return `error` as an error of Plait, with the part of its text that tells the user something."""
    if isinstance(error, PlaitError):
        return error
    text = str(error)
    raised = _RAISED_IN_TASK.search(text)
    if raised is not None:
        kind = getattr(errors, raised.group(1), PlaitError)
        message = raised.group(2).strip()
        return kind(message) if issubclass(kind, PlaitError) else PlaitError(message)
    module, program = _NO_MODULE.search(text), _NO_PROGRAM.search(text)
    if module is not None:
        return PlaitError(
            f"the executors' Python has no module '{module.group(1)}'. Install Plait and what it needs there, in the "
            "driver's versions, or ship an environment with the job: docs/deploy.md says how."
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


def _headline(text: str) -> str:
    """Return Spark's own message, without plans and stack traces. The innermost error class comes last."""
    found = [match for match in _SPARK_CLASS.finditer(text) if not match.group(1).startswith("STREAM_FAILED")]
    if found:
        return f"[{found[-1].group(1)}] {found[-1].group(2).rstrip('. ')}."
    return text.strip().split("\n", 1)[0].rstrip(". ") + "."
