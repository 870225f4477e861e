"""`plait` with a note of when each step of its start begins and how long it takes, written to PLAIT_TRACE as JSON.

Nothing is loaded for it that `plait` would not load, nor sooner: a step is wrapped when its module has been loaded.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

STEPS = {
    "plait.cli.script": (("", "read_sound_script", "check"),),
    "plait.runtime.spark.session": (("", "open_session", "session"),),
    "pyspark.java_gateway": (("", "launch_gateway", "jvm"),),
    "plait.runtime.declarations": (("Declarations", "load", "sources"),),
    "plait.runtime.engine": (("Engine", "_start_streaming", "streaming"),),
    "plait.runtime.batch.stream": (("Run", "batch", "batch"),),
    "plait.runtime.spark.warming": (("Warming", "_run", "workers"),),
    "pyspark.sql.session": (("SparkSession", "stop", "stop"),),
}
"""By module: class or nothing, function, and the name of the step."""


class Trace:
    """Steps in the order they ended: name, seconds since the process began, seconds it took."""

    def __init__(self) -> None:
        self._began = time.time() - _age()
        self.steps: list[tuple[str, float, float]] = []

    def note(self, name: str, begin: float) -> None:
        """Note a step that has ended now. `begin`: from `now`."""
        self.steps.append((name, begin, self.now() - begin))

    def now(self) -> float:
        """Return the seconds since the process began."""
        return time.time() - self._began

    def wrap(self, holder: Any, function: str, name: str) -> None:
        """Have the function noted each time it is called."""
        inner = getattr(holder, function)

        @functools.wraps(inner)
        def outer(*arguments: Any, **named: Any) -> Any:
            begin = self.now()
            try:
                return inner(*arguments, **named)
            finally:
                self.note(name, begin)

        setattr(holder, function, outer)


class _Wrapping:
    """Finds modules as Python does, and wraps their steps once they are loaded."""

    def __init__(self, trace: Trace) -> None:
        self._trace, self._waiting = trace, dict(STEPS)

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        steps = self._waiting.pop(name, ())
        found = importlib.util.find_spec(name) if steps else None
        if found is None or found.loader is None:
            return None
        found.loader.exec_module = self._after(found.loader.exec_module, steps)  # type: ignore[method-assign, assignment]
        return found

    def _after(
        self, load: Callable[[ModuleType], None], steps: tuple[tuple[str, str, str], ...]
    ) -> Callable[[ModuleType], None]:
        def loaded(module: ModuleType) -> None:
            load(module)
            for holder, function, name in steps:
                self._trace.wrap(getattr(module, holder) if holder else module, function, name)

        return loaded


def _age() -> float:
    """Return for how long this process has been there, in seconds."""
    started = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    return float(Path("/proc/uptime").read_text().split()[0]) - started


def main() -> None:
    """Run `plait` with this process's arguments."""
    trace = Trace()
    sys.meta_path.insert(0, _Wrapping(trace))
    atexit.register(
        lambda: Path(os.environ["PLAIT_TRACE"]).write_text(json.dumps([*trace.steps, ("end", trace.now(), 0)]))
    )
    sys.argv[0] = "plait"
    from plait.cli.main import main as plait

    trace.note("load", 0.0)
    plait()


if __name__ == "__main__":
    main()
