"""Turn an error into a message on standard error and an exit status."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import TextIO

from plait.cli.script import ScriptError
from plait.errors import InvalidPlanError, PlacedError, PlaitError, UserError
from plait.spelling import plural

DONE, FAILED, WRONG_INPUT, INTERRUPTED = 0, 1, 2, 130
DEBUG = "PLAIT_DEBUG"


def report(error: BaseException, stream: TextIO | None = None) -> int:
    """Write what went wrong; return exit status 2 if the user can mend it in the script or arguments, else 1."""
    out = stream or sys.stderr
    if is_debugging():
        traceback.print_exception(error, file=out)
    match error:
        case ScriptError():
            print("\n".join(describe(mistake) for mistake in error.mistakes), file=out)
            print(f"plait: {plural(len(error.mistakes), 'mistake')}", file=out)
            return WRONG_INPUT
        case KeyboardInterrupt():
            print("plait: interrupted", file=out)
            return INTERRUPTED
        case PlacedError():
            print(f"plait: {describe(error)}", file=out)
            return WRONG_INPUT if isinstance(error, UserError) else FAILED
        case InvalidPlanError():
            print(f"plait: {error}\nThis is a defect of Plait. {_advice()}", file=out)
            return FAILED
        case PlaitError():
            print(f"plait: {error}", file=out)
            return FAILED
        case _:
            print(f"plait: unexpected {type(error).__name__}: {first_line(str(error))}. {_advice()}", file=out)
            return FAILED


def is_debugging() -> bool:
    """Tell whether the user wants tracebacks and Spark's log."""
    return os.environ.get(DEBUG, "0") not in ("", "0")


def describe(error: PlacedError) -> str:
    """Return the message; where it points into a file, with the line in question and a caret below the column."""
    excerpt = excerpt_of(error)
    return f"{error}\n{excerpt}" if excerpt else str(error)


def excerpt_of(error: PlacedError) -> str | None:
    """Return the line in question with a caret; None where the error names no place or the file cannot be read."""
    if error.file is None or error.line is None:
        return None
    try:
        lines = Path(error.file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    if not 1 <= error.line <= len(lines):
        return None
    text = lines[error.line - 1]
    margin = f"{error.line:>5} | "
    shown = f"{margin}{text}"
    if error.column is None:
        return shown
    # Tabs before the column are kept, so that the caret stands below its character whatever a tab's width is.
    lead = "".join("\t" if character == "\t" else " " for character in text[: error.column - 1])
    return f"{shown}\n{' ' * (len(margin) - 2)}| {lead}^"


def first_line(text: str) -> str:
    """Return the first line that says something; Spark's messages go on with plans and stack traces."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "no message").rstrip(".")


def _advice() -> str:
    return f"Run again with {DEBUG}=1 to see where it came from."
