"""Count how often a reader who follows a query into a plan, or a plan into a batch, goes back to a module already left.

    python -m tools.returns FILE [STRATEGY]      from the text of FILE to its plan
    python -m tools.returns                      from a plan to the end of its first batch, in the driver

The rule: the reader follows one run, and reads every function once, where the run first comes to it. A *stop* is a
module that is opened for functions not yet read; a *return* is a stop at a module that was opened before and left, so
that returns are stops less modules. Followed are functions that hand on to another module in which something is done.
Others are known by their names and not opened: those that hand on to none; records, and what can be asked of them
(`_WORDS`); checks, which do not change what becomes of the query (`_CHECKS`).

From plan to batch the reader begins where the plan is given, with the functions that then wait for it, and does not
follow what becomes of a row (`_OF_ROWS`): it is the tasks', even where the driver does their work.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from plait.adapt.planning import PlanRequest
from plait.cli.plan_options import plan_options
from plait.cli.script import read_sound_script
from plait.optimizer.planner import plan
from plait.plan.strategy_names import DEFAULT_STRATEGY
from tools.one_batch import carry_out

_WORDS = (
    "plait.query",
    "plait.stats",
    "plait.plan.columns",
    "plait.plan.conditions",
    "plait.plan.model",
    "plait.plan.relations",
    "plait.plan.traversals",
    "plait.sql.lexis",
    "plait.sql.expressions.bound",
    "plait.state.model",
    "plait.spelling",
    "plait.filesystems",
    "plait.faults",
    "plait.errors",
)
_CHECKS = ("plait.plan.validate", "plait.plan.coverage", "plait.plan.intermediates", "plait.sources")
_CHECKS_OF_TEXT = (*_CHECKS, "plait.sinks")
_OF_ROWS = "plait.operators.traversal.traverse"
_CHECK = re.compile(r"_?(refuse|check|require|misplaced|complain|raise|report).*|.*(problems?|mistakes?)")


@dataclass(slots=True)
class Reader:
    """Notes the functions of a run in the order in which they are first called, and whom each hands on to, up to the
    end of function `last`. `after`: the function after whose end the reader begins, None for at once.
    """

    last: str
    after: CodeType | None = None
    checks: tuple[str, ...] = _CHECKS
    read: dict[CodeType, str] = field(default_factory=dict)
    hands_on: set[CodeType] = field(default_factory=set)
    is_done: bool = False
    _under_way: list[tuple[CodeType, str]] = field(default_factory=list)
    _beyond: int = 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Take note of a call or a return; made for `sys.setprofile`."""
        code, module = frame.f_code, str(frame.f_globals.get("__name__", ""))
        if self.is_done or event not in ("call", "return") or not _is_opened(frame, module):
            return
        is_beyond = code is self.after or module == _OF_ROWS
        if event == "return":
            self._leave(code, is_beyond)
        elif self._beyond:
            self._beyond += is_beyond
        else:
            self._enter(code, module, is_beyond)

    def _enter(self, code: CodeType, module: str, is_beyond: bool) -> None:
        if self._under_way and self._under_way[-1][1] != module and not module.startswith(_WORDS):
            self.hands_on.add(self._under_way[-1][0])
        if is_beyond:
            self._beyond = 1
            return
        self._under_way.append((code, module))
        if self.after is None:
            self.read.setdefault(code, module)

    def _leave(self, code: CodeType, is_beyond: bool) -> None:
        if self._beyond:
            self._beyond -= is_beyond
            if code is self.after:
                self.after = None
                self.hands_on.clear()
                self.read.update(self._under_way)
            return
        if self._under_way and self._under_way[-1][0] is code:
            self._under_way.pop()
        self.is_done = code.co_qualname == self.last and code in self.read

    def stops(self) -> list[tuple[str, list[str]]]:
        """Return the modules in the order they are opened, and the functions that are read there."""
        followed = [
            (module, code.co_qualname)
            for code, module in self.read.items()
            if code in self.hands_on
            and not module.startswith((*_WORDS, *self.checks))
            and not _CHECK.fullmatch(code.co_name)
        ]
        return [(module, [name for _, name in names]) for module, names in groupby(followed, lambda each: each[0])]


def _is_opened(frame: FrameType, module: str) -> bool:
    """Tell whether a function of Plait runs that has a name of its own and is no property."""
    name = frame.f_code.co_name
    own = type(frame.f_locals.get("self"))
    return module.startswith("plait.") and name[0] != "<" and name[:2] != "__" and not _is_property(own, name)


def _is_property(of: type, name: str) -> bool:
    return isinstance(getattr(of, name, None), property)


def follow(file: Path, strategy: str) -> list[tuple[str, list[str]]]:
    """Return the stops from the text of a script to its plan."""

    def planned() -> None:
        script = read_sound_script(file).load()
        options = plan_options(script.settings, script.sources, strategy, None)
        PlanRequest(queries=script.queries, options=options).plan(None)

    planned()  # so that nothing is loaded, compiled or cached for the first time where it is counted
    reader = Reader(last=plan.__qualname__, checks=_CHECKS_OF_TEXT)
    _followed(reader, planned)
    return reader.stops()


def follow_batch() -> list[tuple[str, list[str]]]:
    """Return the stops from a plan to the end of its first batch."""
    carry_out()
    reader = Reader(last="Run.batches.<locals>.run", after=PlanRequest.plan.__code__)
    carry_out(lambda run: _followed(reader, run))
    if not reader.is_done:
        raise RuntimeError("the batch was not followed to its end")
    return reader.stops()


def _followed(reader: Reader, run: Callable[[], None]) -> None:
    sys.setprofile(reader)
    try:
        run()
    finally:
        sys.setprofile(None)


def main() -> None:
    """Print the stops, those that are returns with an arrow, and how many there are."""
    match sys.argv[1:]:
        case []:
            stops = follow_batch()
        case [file, *strategy]:
            stops = follow(Path(file), strategy[0] if strategy else DEFAULT_STRATEGY)
    opened = set[str]()
    for module, names in stops:
        print("<-" if module in opened else "  ", module.removeprefix("plait."), ", ".join(names))
        opened.add(module)
    print(f"{len(stops)} stops, {len(opened)} modules, {len(stops) - len(opened)} returns")


if __name__ == "__main__":
    main()
