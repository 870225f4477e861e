"""Every error Plait raises on purpose.

A message says what failed, on which object, what was expected and found, and what to do next;
the same facts are attributes, so that a program can act on them.
"""

from __future__ import annotations

from dataclasses import dataclass


class PlaitError(Exception):
    """Base of every error raised by Plait."""


class PlacedError(PlaitError):
    """An error that may point into the user's text. `line` and `column` count from 1; None where no text is at
    fault.
    """

    def __init__(
        self,
        message: str,
        *,
        line: int | None = None,
        column: int | None = None,
        file: str | None = None,
    ) -> None:
        self.message, self.line, self.column, self.file = message, line, column, file
        place = ":".join(str(part) for part in (file, line, column) if part is not None)
        super().__init__(f"{place}: {message}" if place else message)


class UserError(PlacedError):
    """The user's script, arguments or call is wrong: exit status 2."""


class SqlError(UserError):
    """A script or query is malformed."""


class UnsupportedQueryError(SqlError):
    """The query is valid SQL that Plait does not run. The message names the construct and what to do instead."""


class NotAllowedError(SqlError):
    """A query that comes over the network says what only the script may say."""


class OptionError(UserError):
    """An option has an unknown name or an impossible value."""


class SourceError(PlacedError):
    """A stream or table cannot be read."""


class SinkError(PlacedError):
    """A query's results cannot be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What cannot be computed for some row, and why: something of a `query` alone; or the predicate `sql` over
    `operands`, (source, column) each; or a `column` that is computed of the rows of a `source`, a selection under its
    text. `spared`: queries with this predicate that take only some of the rows for which it was computed.
    """

    reason: str
    query: str | None = None
    sql: str = ""
    operands: tuple[tuple[str, str], ...] = ()
    source: str = ""
    column: str = ""
    spared: frozenset[str] = frozenset()


class ComputationError(PlaitError):
    """What queries compute fails for some row; each of `failures` says what, and whose it is."""

    def __init__(self, message: str, *, failures: tuple[Failure, ...] = ()) -> None:
        self.failures = failures
        super().__init__(message)


class PredicateError(ComputationError):
    """A join predicate failed for some pair of rows, or a registered one returned something else than truth values.
    `predicate`: which one, where it is not known yet whose it is.
    """

    def __init__(self, message: str, *, failures: tuple[Failure, ...] = (), predicate: object = None) -> None:
        self.predicate = predicate
        super().__init__(message, failures=failures)


def reason_of(error: Exception) -> str:
    """Return in one line what went wrong, for what waits until it can be tried again."""
    text = str(error)
    if "No space left on device" in text or "no space left on the device" in text:
        return "no space left on the device. Free some space: the results wait in the checkpoint until then"
    return f"{type(error).__name__}: {next(iter(text.splitlines()), '')}"


class CheckpointError(PlaitError):
    """A checkpoint is foreign, of another version, damaged, or does not fit the script."""


class InvalidPlanError(PlaitError):
    """A plan breaks an invariant of `plait.plan.validate`: a defect of Plait, not of the user's query.

    `invariant` is its number there, `plan` the broken plan; None where the plan could not even be read.
    """

    def __init__(self, message: str, *, invariant: int | None = None, plan: object = None) -> None:
        self.invariant, self.plan = invariant, plan
        super().__init__(message)
