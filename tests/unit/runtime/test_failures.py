"""What Spark says when its executors cannot run Plait, in words that help."""

from __future__ import annotations

import pytest

from plait.errors import CheckpointError, PlaitError, SourceError
from plait.runtime.failures import explained

IN_TASK = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "tasks.py", line 70, in enter
{error}
"""


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (
            IN_TASK.format(error="ModuleNotFoundError: No module named 'plait'"),
            PlaitError,
            r"the executors' Python has no module 'plait'\. Install .* docs/deploy\.md",
        ),
        (
            'Caused by: java.io.IOException: Cannot run program "./env/bin/python": error=2, No such file or directory',
            PlaitError,
            r"cannot run '\./env/bin/python'.* Set spark\.pyspark\.python",
        ),
        (
            IN_TASK.format(
                error="plait.errors.CheckpointError: checkpoint /data/c is not shared: the worker on w1 ..."
            ),
            CheckpointError,
            r"^checkpoint /data/c is not shared: the worker on w1 \.\.\.$",
        ),
        (
            "[STREAM_FAILED] x\n[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.10 than 3.11.",
            SourceError,
            "PYTHON_VERSION_MISMATCH",
        ),
    ],
)
def test_an_executors_trouble_is_named_with_what_to_do(text: str, kind: type[PlaitError], message: str) -> None:
    found = explained(RuntimeError(text))
    assert type(found) is kind
    with pytest.raises(kind, match=message):
        raise found
