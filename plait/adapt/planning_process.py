"""A process that reconsiders plans, so that the interpreter of the program is left to its batches and requests.

With 500 queries that takes ten seconds of a core, in which a thread would hold the interpreter again and again.
Questions and answers are pickled through two pipes, which takes the program a tenth of that. The process is a new
interpreter with the path of the program, not a copy of it: nothing of the program is imported or runs there, so its
main module needs no guard, and a notebook will do. It ends when its pipe is closed, which the end of the program does
too.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from contextlib import suppress
from typing import IO, Any, Final
from weakref import finalize

from plait.adapt.asked_to_plan import Answer, Question, answer

_COMMAND: Final = "import sys; sys.path[:] = sys.argv[1:]; from plait.adapt.planning_process import main; main()"
_NICENESS: Final = 5
"""Batches come first where there are too few cores for both."""


class NoAnswer(Exception):
    """The process could not be started, has ended, or the answer is an error, which whoever plans here meets too."""


class PlanningProcess:
    """Answers questions one at a time."""

    def __init__(self) -> None:
        command = [sys.executable or "", "-I", "-c", _COMMAND, *sys.path]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C in a terminal is for the program
            )
        except OSError as error:
            raise NoAnswer(f"the process for planning could not be started: {error}") from error
        self._end = finalize(self, _end, self._process)  # also by the end of the program

    def ask(self, question: Question) -> Answer:
        """Return the answer; plans of the question are the same objects in it. Raises NoAnswer."""
        sending, receiving = self._process.stdin, self._process.stdout
        if sending is None or receiving is None:
            raise NoAnswer("the process for planning has no pipes")
        try:
            pickle.dump(question.without_files(), sending, pickle.HIGHEST_PROTOCOL)
            sending.flush()
            told: Answer | None = _Receiving(receiving, question).load()
        except Exception as error:  # it has ended, or something of the question is of the program's own making
            raise NoAnswer(f"the process for planning has given no answer: {error!r}") from error
        if told is None:
            raise NoAnswer("the process for planning has met an error")
        return told

    def close(self) -> None:
        """End it. Nobody may wait for an answer any more."""
        self._end()

    def interrupt(self) -> None:
        """Let it answer nothing any more, also where somebody waits for an answer."""
        self._process.kill()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    for pipe in (process.stdin, process.stdout):
        with suppress(OSError):  # a part of a question may be left in it
            if pipe is not None:
                pipe.close()
    process.wait()


class _Sending(pickle.Pickler):
    """Names plans of the question instead of sending them back."""

    def __init__(self, file: IO[bytes], question: Question) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._places = {id(plan): place for place, plan in enumerate(question.plans) if plan is not None}

    def persistent_id(self, found: Any) -> int | None:
        """Return the place of a plan among those of the question."""
        return self._places.get(id(found))


class _Receiving(pickle.Unpickler):
    """Takes plans of the question for those that are named."""

    def __init__(self, file: IO[bytes], question: Question) -> None:
        super().__init__(file)
        self._plans = question.plans

    def persistent_load(self, place: Any) -> Any:
        """Return the plan at a place among those of the question."""
        return self._plans[place]


def main() -> None:
    """Be the process: answer what is asked until nobody can ask any more."""
    os.nice(_NICENESS)
    asked, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a solver prints is no answer
    while True:
        try:
            question: Question = pickle.load(asked)
        except EOFError:
            return
        found = None
        with suppress(Exception):  # told where the same is tried again
            found = answer(question)
        _Sending(answers, question).dump(found)
        answers.flush()


__all__ = ["NoAnswer", "PlanningProcess", "main"]
