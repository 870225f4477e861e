"""A start is told part by part."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from benchmarks.components.start import PARTS, parts
from benchmarks.components.start_traced import STEPS

STEPS_OF_A_RUN = [
    ("load", 0.0, 0.5),
    ("check", 0.5, 0.25),
    ("jvm", 1.0, 1.5),
    ("session", 1.0, 2.0),
    ("workers", 3.5, 2.0),
    ("sources", 3.5, 0.5),
    ("streaming", 4.0, 0.5),
    ("batch", 4.75, 1.0),
    ("batch", 6.0, 0.25),
    ("batch", 7.0, 0.5),
    ("batch", 8.0, 0.5),
    ("stop", 9.0, 0.25),
    ("end", 9.5, 0.0),
]


@pytest.mark.parametrize("steps", [STEPS_OF_A_RUN, STEPS_OF_A_RUN[::-1]])
def test_each_part_counts_once_in_whatever_order_steps_ended(steps: list[tuple[str, float, float]]) -> None:
    assert parts(steps) == {
        "load": 500,
        "check": 250,
        "jvm": 1500,
        "spark": 500,
        "engine": 500,
        "sources": 500,
        "streaming": 500,
        "waiting": 250,
        "first batch": 1000,
        "later batch": 500,
        "stop": 250,
    }
    assert list(parts(steps)) == list(PARTS)


def test_the_steps_that_are_traced_are_there() -> None:
    """A function that has gone would be missed only when the benchmark is run."""
    root = Path(__file__).parents[3]
    for module, steps in STEPS.items():
        if not module.startswith("plait."):
            continue
        text = (root / f"{module.replace('.', '/')}.py").read_text()
        for holder, function, _ in steps:
            assert f"def {function}(" in text
            assert not holder or f"class {holder}" in text


def test_every_step_that_is_traced_is_there_to_be_traced() -> None:
    for module, steps in STEPS.items():
        loaded = importlib.import_module(module)
        for holder, function, _ in steps:
            assert callable(getattr(getattr(loaded, holder) if holder else loaded, function)), (module, function)
