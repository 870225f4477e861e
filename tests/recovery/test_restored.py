"""A checkpoint that lags behind its sinks, and sinks that belong to another checkpoint."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from plait.errors import SinkError
from tests.recovery.workload import QUERIES, SCHEMAS, engine, expected, found, make_input

pytestmark = pytest.mark.spark


def test_each_result_is_there_once_after_a_backup_is_restored_and_no_other_checkpoint_adds_to_them(
    spark: Any, tmp_path: Path
) -> None:
    """Parquet from the tasks, Parquet with and without partitions, CSV and JSON from Spark, and dead letters."""
    make_input(tmp_path, batches=4)
    later = [tmp_path / "in" / stream / f"{batch:02d}.parquet" for stream in SCHEMAS for batch in (2, 3)]
    for path in later:
        path.rename(tmp_path / f"{path.parent.name}-{path.name}")
    engine(tmp_path, spark).run_available()
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "backup")
    for path in later:
        (tmp_path / f"{path.parent.name}-{path.name}").rename(path)
    engine(tmp_path, spark).run_available()
    assert found(tmp_path) == expected(tmp_path)

    shutil.rmtree(tmp_path / "checkpoint")
    shutil.move(tmp_path / "backup", tmp_path / "checkpoint")
    engine(tmp_path, spark).run_available()
    assert found(tmp_path) == expected(tmp_path)
    for name in QUERIES:
        assert not list((tmp_path / "out" / name / "_staging").glob("*")), "nothing staged stays"

    shutil.rmtree(tmp_path / "checkpoint")
    with pytest.raises(SinkError, match=r"holds results of another checkpoint .*existing 'append'"):
        engine(tmp_path, spark).run_available()
    assert not (tmp_path / "checkpoint").exists(), "refused before anything was written"
    assert found(tmp_path) == expected(tmp_path)
