"""What Spark says when its executors cannot run Plait, in words that help."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError

from plait.errors import CheckpointError, PlaitError, PredicateError, SourceError
from plait.query.model import Query
from plait.query.predicates import Residual
from plait.runtime.batch.run_errors import explained, is_jvm_gone, naming_an_ended_jvm
from tests.unit.sql.reading import bound

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
        (
            "An error occurred while calling o95.start.\n: com.fasterxml.jackson.core.JsonParseException: Unexpected "
            "character ('b'): was expecting a name.\n at [Source: spark/metadata]",
            SourceError,
            r"input: Unexpected character \('b'\): was expecting a name\. The checkpoint",
        ),
        (
            "An error occurred while calling o95.start.\n: com.fasterxml.jackson.core.JsonParseException: Unexpected "
            "end\n\tat org.apache.spark.sql.execution.streaming.checkpointing.StreamMetadata$.read(Stream.scala)",
            CheckpointError,
            r"continue from the checkpoint: Unexpected end\. Restore",
        ),
        (
            "[STREAM_FAILED] Query [id = 0d, runId = 6] terminated with exception: Failed to read log file "
            "file:/data/ck/spark/commits/1. Incomplete log file in the offset commit log SQLSTATE: XXKST",
            CheckpointError,
            r"^the file '/data/ck/spark/commits/1' in the checkpoint is damaged.* Restore the checkpoint from a backup",
        ),
        (
            "[STREAM_FAILED] Query [id = 0d, runId = 6] terminated with exception: [CONCURRENT_STREAM_LOG_UPDATE] "
            "Concurrent update to the log. Multiple streaming jobs detected for 3. SQLSTATE: 40000",
            CheckpointError,
            r"^another run works on this checkpoint at the same time.* Let one of them go on alone",
        ),
        (
            "[STREAM_FAILED] Query [id = 0d, runId = 6] terminated with exception: [INVALID_PARAMETER_VALUE.CHARSET] "
            "The value of `charset` is invalid: expects utf-8, but got klingon. SQLSTATE: 22023 SQLSTATE: XXKST",
            SourceError,
            r"input: \[INVALID_PARAMETER_VALUE\.CHARSET\] The value of `charset` .* but got klingon\. The checkpoint",
        ),
    ],
)
def test_an_executors_trouble_is_named_with_what_to_do(text: str, kind: type[PlaitError], message: str) -> None:
    found = explained(RuntimeError(text))
    assert type(found) is kind
    with pytest.raises(kind, match=message):
        raise found


def raised_by_py4j(error: BaseException) -> BaseException:
    """Return the error as if it had been raised within py4j."""
    code = compile("def call(error):\n    raise error", "/site-packages/py4j/clientserver.py", "exec")
    names: dict[str, Any] = {}
    exec(code, names)
    try:
        names["call"](error)
    except BaseException as caught:
        return caught
    raise AssertionError


def caused(outer: BaseException, inner: BaseException) -> BaseException:
    outer.__cause__ = inner
    return outer


@pytest.mark.parametrize(
    "error",
    [
        Py4JNetworkError("Answer from Java side is empty"),
        raised_by_py4j(ConnectionRefusedError(111, "Connection refused")),
        raised_by_py4j(ConnectionResetError(104, "Connection reset by peer")),
        caused(RuntimeError("in a batch"), Py4JNetworkError("Error while receiving")),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_jvm_that_has_gone_is_named(error: BaseException) -> None:
    found = explained(error)
    assert type(found) is PlaitError
    assert str(found).startswith("Spark's JVM has ended")
    assert "start again" in str(found)


def test_another_connection_that_is_refused_is_not_blamed_on_the_jvm() -> None:
    assert not is_jvm_gone(ConnectionRefusedError(111, "Connection refused"))


def test_a_jvm_that_ends_while_a_script_is_loaded_is_named_too() -> None:
    with pytest.raises(PlaitError, match="Spark's JVM has ended"), naming_an_ended_jvm():
        raise raised_by_py4j(ConnectionRefusedError(111, "Connection refused"))


@pytest.mark.parametrize("error", [SourceError("no such path"), ValueError("of ours"), ConnectionRefusedError(111, "")])
def test_other_errors_pass_as_they_are(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, naming_an_ended_jvm():
        raise error
    assert caught.value is error


EXITED = "[STREAM_FAILED] x\norg.apache.spark.SparkException: Python worker exited unexpectedly (crashed)"
NOT_PICKLED = "_pickle.PicklingError: Could not serialize object: TypeError: cannot pickle '_thread.lock' object"


def calling(name: str) -> Query:
    query = bound("SELECT o.id FROM orders o JOIN items i ON o.id = i.oid")
    (equality,) = query.equalities
    call = Residual(operands=(equality.left, equality.right), sql=name, text=f"{name}(`0`, `1`)", is_function=True)
    return replace(query, predicates=(call,))


@pytest.mark.parametrize(
    ("text", "predicates", "message"),
    [
        (EXITED, {"near"}, r"a Python worker ended .* The predicate 'near' ran in it"),
        (EXITED, {"near", "alike"}, r"The predicates 'alike', 'near' ran in it"),
        (NOT_PICKLED, {"near"}, r"the predicate 'near' cannot be sent to Spark's workers"),
    ],
)
def test_a_registered_predicate_is_named_where_a_worker_ends_or_cannot_be_told(
    text: str, predicates: set[str], message: str
) -> None:
    with pytest.raises(PredicateError, match=message):
        raise explained(RuntimeError(text), [calling(name) for name in sorted(predicates)])


def test_a_worker_that_ends_without_predicates_is_not_blamed_on_one() -> None:
    assert isinstance(explained(RuntimeError(EXITED)), SourceError)
