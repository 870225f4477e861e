"""A fault at every step between reading offsets and Spark's own commit: after a restart the sinks hold exactly the
oracle's results.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plait.errors import PlaitError
from plait.runtime.batch import handing_over as handover
from plait.runtime.batch import microbatch
from plait.sinks import claims, files, staging
from plait.sinks.kinds import parquet
from plait.state import storage
from tests.recovery.workload import engine, expected, found, make_input

pytestmark = pytest.mark.spark

_MODULES = (microbatch, handover, claims, files, staging, storage, parquet)

POINTS = [
    ("stored", 2),
    ("probed", 2),
    ("deliver", 5),
    ("staged", 4),
    ("closed", 2),
    ("delivered", 2),
    ("link:manifests", 2),
    ("committed", 2),
    ("publish", 9),
    ("clear", 4),
    ("mark", 3),
    ("published", 2),
    ("write:catalog.json", 1),
    ("link:manifests", 1),
    ("publish", 1),
]


class _Died(Exception):
    """Stands for the end of the process: no code of Plait's catches it."""


def _die_at(monkeypatch: pytest.MonkeyPatch, point: str, count: int) -> None:
    reached = 0

    def reach(name: str) -> None:
        nonlocal reached
        reached += name == point
        if name == point and reached == count:
            raise _Died(point)

    for module in _MODULES:
        monkeypatch.setattr(module, "reach", reach)


@pytest.mark.parametrize(("point", "count"), POINTS)
def test_a_fault_at_any_step_loses_and_repeats_nothing(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str, count: int
) -> None:
    make_input(tmp_path, batches=4)
    with monkeypatch.context() as patch:
        _die_at(patch, point, count)
        with pytest.raises((PlaitError, _Died)):
            engine(tmp_path, spark).run_available()
    engine(tmp_path, spark).run_available()
    assert found(tmp_path) == expected(tmp_path)


def test_a_fault_in_every_batch_loses_and_repeats_nothing(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_input(tmp_path, batches=4)
    for point in ("delivered", "committed", "publish", "stored"):
        with monkeypatch.context() as patch:
            _die_at(patch, point, 1)
            with pytest.raises((PlaitError, _Died)):
                engine(tmp_path, spark).run_available()
    engine(tmp_path, spark).run_available()
    assert found(tmp_path) == expected(tmp_path)
