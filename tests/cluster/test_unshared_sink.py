"""A sink directory that the driver and the workers do not share: noticed before anything is lost."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest

from plait.errors import SinkError
from plait.runtime.batch import prober
from plait.sinks import files, staging
from tests.recovery.workload import SCHEMAS, engine, expected, found, make_input

pytestmark = pytest.mark.spark


def test_results_that_only_a_worker_sees_are_not_taken_for_delivered(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prober, "is_quicker_here", lambda *_: False)  # the driver would write where it looks
    make_input(tmp_path, batches=3)
    last = [(tmp_path / "in" / stream / "02.parquet", tmp_path / stream) for stream in SCHEMAS]
    for path, aside in last:
        path.rename(aside)
    (tmp_path / "elsewhere").mkdir()

    def files_of(uri: str) -> tuple[pafs.FileSystem, str]:
        """The driver's view: it finds only what it has written itself."""
        return pafs.LocalFileSystem(), str(tmp_path / "elsewhere" / sha256(uri.encode()).hexdigest())

    def filesystem_of(_: str) -> tuple[pafs.FileSystem, str]:
        """The driver's view: where workers have written there is an empty directory."""
        return pafs.LocalFileSystem(), str(tmp_path / "elsewhere" / "nothing")

    with monkeypatch.context() as patch:
        patch.setattr(staging, "locate", files_of)
        with pytest.raises(SinkError, match=r"' is not shared: what a task wrote there"):
            engine(tmp_path, spark).run_available()
    (tmp_path / "elsewhere" / "nothing").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(files, "locate", filesystem_of)
        summary = engine(tmp_path, spark).run_available()
    failing = {query: reason for query, reason in summary.failing if reason}
    assert set(failing) == {"names", "pairs", "parts"}, "those that Spark writes: their results wait"
    assert all("is not shared" in reason for reason in failing.values())
    for path, aside in last:
        aside.rename(path)
    assert not engine(tmp_path, spark).run_available().failing
    assert found(tmp_path) == expected(tmp_path)
