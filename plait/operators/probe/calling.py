"""In which registered predicates a process was when it ended.

A function of the user's can end the process that calls it (os._exit, a fault in native code, too much memory), and then
nobody is left to tell which it was. So each call leaves a note beside the state for as long as it lasts: an empty file,
which takes some hundredths of a millisecond. Where the state is on no disk of this machine nothing is noted.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

from plait.operators.probe.residuals import Predicates
from plait.state.storage import Storage

FOLDER: Final = "calls"


@dataclass(frozen=True, slots=True)
class _Noted:
    """Calls a function while its note lies there."""

    function: Callable[..., Any]
    note: str

    def __call__(self, *operands: Any) -> Any:
        with suppress(OSError):
            os.close(os.open(self.note, os.O_CREAT | os.O_WRONLY, 0o600))
        try:
            answer = self.function(*operands)
        except (Exception, SystemExit, KeyboardInterrupt):
            self._forget()
            raise
        self._forget()
        return answer

    def _forget(self) -> None:
        with suppress(OSError):
            os.unlink(self.note)


def noted(predicates: Predicates, storage: Storage) -> Predicates:
    """Return predicates that leave a note while this process calls them."""
    folder = storage.local_path(FOLDER)
    if folder is None or not predicates:
        return predicates
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return {
        name: _Noted(function, str(folder / f"{quote(name, safe='')}.{os.getpid()}"))
        for name, function in predicates.items()
    }


def left_behind(storage: Storage) -> tuple[str, ...]:
    """Return the predicates that processes were in when they ended, each once."""
    return tuple(sorted({unquote(note.stem) for note in _notes(storage)}))


def forget_calls(storage: Storage) -> None:
    """Delete all notes."""
    for note in _notes(storage):
        with suppress(OSError):
            note.unlink()


def _notes(storage: Storage) -> tuple[Path, ...]:
    folder = storage.local_path(FOLDER)
    if folder is None:
        return ()
    try:
        return tuple(folder.iterdir())
    except OSError:
        return ()


__all__ = ["forget_calls", "left_behind", "noted"]
