"""Faults of the surroundings while running: what the user is told, and that the checkpoint stays usable."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import plait
from plait.errors import CheckpointError
from tests.spark.test_engine import JOIN, make, orders, parts, rows

pytestmark = pytest.mark.spark

Resize = Callable[[str], None]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[tuple[Path, Resize]]:
    """A directory on a file system of its own, and a function that changes its size."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("only root may mount a small file system")
    yield disk, lambda size: _resize(disk, size)
    subprocess.run(["umount", "-l", disk], check=True)


def _remount(disk: Path, mode: str) -> None:
    """Let the disk be written to (``rw``) or not (``ro``)."""
    subprocess.run(["mount", "-o", f"remount,{mode},size=64m", disk], check=True)


def _resize(disk: Path, size: str) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", disk], check=True)


def _fill(tmp_path: Path) -> Counter[tuple[Any, ...]]:
    """Write input whose state takes more than 64 KiB; return the results."""
    orders(tmp_path, 0, *((1, number, "a") for number in range(4000)))
    parts(tmp_path, 0, *((1, number, number % 7) for number in range(4000)))
    return Counter((number, number % 7) for number in range(4000))


def test_a_full_disk_ends_the_run_with_advice_and_space_is_all_it_takes_to_go_on(
    spark: Any, tmp_path: Path, small_disk: tuple[Path, Resize]
) -> None:
    disk, resize = small_disk
    expected = _fill(tmp_path)
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "plait").symlink_to(disk)
    engine = make(spark, tmp_path)
    engine.query("join", JOIN, sink=plait.sinks.memory())
    with pytest.raises(CheckpointError, match="no space left") as caught:
        engine.run_available()
    assert "Free some space" in str(caught.value)

    resize("64m")
    again = make(spark, tmp_path)
    query = again.query("join", JOIN, sink=plait.sinks.memory())
    again.run_available()
    assert rows(query.results()) == expected


def test_a_sink_on_a_full_disk_is_served_once_there_is_space(
    spark: Any, tmp_path: Path, small_disk: tuple[Path, Resize]
) -> None:
    disk, resize = small_disk
    expected = _fill(tmp_path)
    (disk / "ballast").write_bytes(b"x" * 60_000)
    engine = make(spark, tmp_path)
    engine.query("join", JOIN, sink=plait.sinks.parquet(str(disk / "out")))
    [(query, reason)] = engine.run_available().failing
    assert query == "join"
    assert "space" in reason.lower()

    resize("64m")
    parts(tmp_path, 1, (2, 1, 8))
    again = make(spark, tmp_path)
    again.query("join", JOIN, sink=plait.sinks.parquet(str(disk / "out")))
    assert again.run_available().failing == ()
    assert rows(pq.read_table(disk / "out")) == expected + Counter([(1, 8)])


def test_a_sink_that_may_only_be_read_is_named_and_served_once_it_may_be_written(
    spark: Any, tmp_path: Path, small_disk: tuple[Path, Resize]
) -> None:
    disk, _ = small_disk
    failing = []
    for number, mode in enumerate(("rw", "ro", "rw")):
        _remount(disk, mode)
        orders(tmp_path, number, (1 + number, number, "a"))
        parts(tmp_path, number, (1 + number, number, 7))
        engine = make(spark, tmp_path)
        engine.query("join", JOIN, sink=plait.sinks.parquet(str(disk / "out")))
        steady = engine.query("steady", JOIN, sink=plait.sinks.memory())
        failing.append(dict(engine.run_available().failing))
        assert len(steady.results()) == 1
    assert [list(each) for each in failing] == [[], ["join"], []]
    assert "Read-only file system" in failing[1]["join"]
    assert rows(pq.read_table(disk / "out")) == Counter([(0, 7), (1, 7), (2, 7)])


def test_a_checkpoint_that_may_only_be_read_is_refused_with_advice_and_goes_on_once_it_may_be_written(
    spark: Any, tmp_path: Path, small_disk: tuple[Path, Resize]
) -> None:
    disk, _ = small_disk
    _remount(disk, "rw")
    orders(tmp_path, 0, (1, 1, "a"))
    parts(tmp_path, 0, (1, 1, 10))

    def run() -> Counter[tuple[Any, ...]]:
        engine = make(spark, tmp_path, checkpoint="disk/checkpoint")
        engine.query("join", JOIN, sink=plait.sinks.parquet(str(tmp_path / "out")))
        engine.run_available()
        return rows(pq.read_table(tmp_path / "out"))

    assert run() == Counter([(1, 10)])
    parts(tmp_path, 1, (2, 1, 11))
    _remount(disk, "ro")
    with pytest.raises(CheckpointError, match="the file system is read-only") as caught:
        run()
    assert str(disk / "checkpoint") in str(caught.value)
    _remount(disk, "rw")
    assert run() == Counter([(1, 10), (1, 11)])


def _ran(spark: Any, tmp_path: Path) -> Path:
    """Run once; return the checkpoint's own directory."""
    orders(tmp_path, 0, (1, 1, "a"))
    parts(tmp_path, 0, (1, 1, 10))
    engine = make(spark, tmp_path)
    engine.query("join", JOIN, sink=plait.sinks.noop())
    engine.run_available()
    return tmp_path / "checkpoint" / "plait"


def _newer_format(state: Path) -> None:
    catalog = json.loads((state / "catalog.json").read_text())
    (state / "catalog.json").write_text(json.dumps({**catalog, "format": 99, "plait": "7.0"}))


def _torn_manifest(state: Path) -> None:
    manifest = next((state / "manifests").glob("*.json"))
    manifest.write_bytes(manifest.read_bytes()[:-20])


def _lost_bucket(state: Path) -> None:
    next((state / "stores").rglob("*.arrow")).unlink()


def _torn_catalog(state: Path) -> None:
    (state / "catalog.json").write_text('{"format": 1, "epo')


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (_newer_format, ["written by Plait 7.0", f"this is Plait {plait.__version__}", "another checkpoint"]),
        (_torn_manifest, ["manifests/", "damaged", "backup"]),
        (_lost_bucket, ["no such file", "backup"]),
        (_torn_catalog, ["catalog.json", "damaged", "backup"]),
    ],
)
def test_a_damaged_checkpoint_is_refused_with_the_file_and_the_remedy(
    spark: Any, tmp_path: Path, damage: Callable[[Path], None], told: list[str]
) -> None:
    damage(_ran(spark, tmp_path))
    again = make(spark, tmp_path)
    again.query("join", JOIN, sink=plait.sinks.noop())
    with pytest.raises(CheckpointError) as caught:
        again.run_available()
    for part in told:
        assert part in str(caught.value)


@pytest.mark.parametrize(("before", "after"), [("independent", "greedy"), ("fixed", "independent")])
def test_stores_of_one_query_each_and_shared_ones_do_not_mix(
    spark: Any, tmp_path: Path, before: str, after: str
) -> None:
    orders(tmp_path, 0, (1, 1, "a"))
    parts(tmp_path, 0, (1, 1, 10))
    engine = make(spark, tmp_path, strategy=before)
    engine.query("join", JOIN, sink=plait.sinks.noop())
    engine.run_available()
    again = make(spark, tmp_path, strategy=after)
    again.query("join", JOIN, sink=plait.sinks.noop())
    with pytest.raises(CheckpointError, match="kind of strategy this checkpoint was begun with"):
        again.run_available()
