"""Time the functions that keep statistics and plan, in the driver and in the Python workers of one run.

Run as a module it is the process that Spark forks its workers from: Plait's, with these functions timed.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any, Final

DIRECTORY: Final = "PLAIT_OVERHEAD"
"""The environment variable that says where each process writes down what it has counted."""

TIMED: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "sketches of keys": (
        ("plait.operators.ingest.ingest", "_sketch"),
        ("plait.operators.close.closing", "union_sketches"),
    ),
    "counts of a batch": (
        ("plait.operators.close.closing", "counted_keys"),
        ("plait.operators.close.closing", "_cycles_after"),
    ),
    "tuples that matched": (
        ("plait.operators.probe.probing", "Matched.none_of"),
        ("plait.operators.probe.probing", "Counts.add"),
    ),
    "samples of other orders": (("plait.operators.traversal.sampler", "Sampler.take"),),
    "reconsidering": (
        ("plait.adapt.planners", "Planners._answer"),
        ("plait.adapt.adapter", "Adapter.batch_done"),
        ("plait.adapt.adapter", "Adapter.next_change"),
        ("plait.adapt.adapter", "Adapter.next_sample"),
    ),
}
"""By what it is for: module and name, as it is called from there. Of those that call each other the outer one counts.
"""

_EVERY_S = 0.2


class _Clock:
    """Seconds of a processor by what they were for, written down now and then."""

    def __init__(self, directory: Path) -> None:
        self._directory, self._spent = directory, dict.fromkeys(TIMED, 0.0)
        self._inside, self._lock, self._written = threading.local(), threading.Lock(), 0.0

    def timed(self, what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            if getattr(self._inside, "depth", 0):
                return function(*arguments, **named)
            self._inside.depth, began = 1, time.thread_time()
            try:
                return function(*arguments, **named)
            finally:
                self._inside.depth = 0
                self._add(what, time.thread_time() - began)

        return call

    def _add(self, what: str, seconds: float) -> None:
        with self._lock:
            self._spent[what] += seconds
            now = time.monotonic()
            if now - self._written > _EVERY_S:
                self._written = now
                self.write()

    def write(self) -> None:
        """Write down what this process has counted."""
        (self._directory / f"{os.getpid()}.json").write_text(json.dumps(self._spent))


def owner_of(module: str, name: str) -> tuple[Any, str]:
    """Return the module or class that a function is looked up in, and its name there."""
    owner: Any = import_module(module)
    *outer, last = name.split(".")
    for part in outer:
        owner = getattr(owner, part)
    return owner, last


def time_functions() -> Callable[[], None]:
    """Time all of them from now on in this process and those forked from it; return what writes the last of it down."""
    clock = _Clock(Path(os.environ[DIRECTORY]))
    for what, functions in TIMED.items():
        for module, name in functions:
            owner, last = owner_of(module, name)
            found = vars(owner)[last]
            is_static = isinstance(found, staticmethod | classmethod)
            timed = clock.timed(what, found.__func__ if is_static else found)
            setattr(owner, last, type(found)(timed) if is_static else timed)
    return clock.write


if __name__ == "__main__":
    from pyspark.daemon import manager

    from plait.runtime.spark.daemon import load

    load()
    time_functions()
    manager()
