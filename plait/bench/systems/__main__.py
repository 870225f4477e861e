"""Run one task in this process: ``python -m plait.bench.systems TASK OUTCOME``, both files of JSON."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from plait.bench.systems.task import Task


def main() -> int:
    """Carry out the task."""
    source, target = map(Path, sys.argv[1:])
    task = Task.from_json(source.read_text())
    outcome = import_module("plait.bench.systems." + task.system.replace("-", "_")).run(task)
    target.write_text(outcome.as_json())
    return 0


if __name__ == "__main__":
    sys.exit(main())
