"""Run one task in this process: ``python -m benchmarks.systems TASK OUTCOME``, both files of JSON."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from benchmarks.systems.task import Outcome, Task, UnableError


def main() -> int:
    """Carry out the task."""
    source, target = map(Path, sys.argv[1:])
    task = Task.from_json(source.read_text())
    try:
        outcome = import_module(f"benchmarks.systems.{task.system}").run(task)
    except UnableError as error:
        outcome = Outcome(rows_in=0, startup_seconds=0.0, seconds=0.0, unable=str(error))
    target.write_text(outcome.as_json())
    return 0


if __name__ == "__main__":
    sys.exit(main())
