"""Examples in docstrings, found and run."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path


def modules_with_examples(package: Path) -> list[str]:
    """Return the modules of a package whose docstrings have examples."""
    files = (file for file in sorted(package.rglob("*.py")) if ">>> " in file.read_text(encoding="utf-8"))
    return [".".join((package.name, *file.relative_to(package).with_suffix("").parts)) for file in files]


def run_examples(module: str) -> doctest.TestResults:
    """Return how many examples of a module failed, and how many there are."""
    return doctest.testmod(importlib.import_module(module))
