"""Spark's offset log, completed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plait.runtime.offsets import complete_offsets

SETTING = "spark.sql.shuffle.partitions"


def entry(folder: Path, batch: int, partitions: str | None) -> Path:
    conf = {"other": "x"} if partitions is None else {"other": "x", SETTING: partitions}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / str(batch)
    path.write_text(
        "v2\n" + json.dumps({"batchTimestampMs": 1, "conf": conf}) + '\nr:{"logOffset":0}\ns:{"logOffset":1}'
    )
    (folder / f".{batch}.crc").write_text("stale")
    return path


def partitions(path: Path) -> str | None:
    conf: dict[str, str] = json.loads(path.read_text().split("\n")[1])["conf"]
    assert conf["other"] == "x"
    return conf.get(SETTING)


@pytest.mark.parametrize(
    ("before", "unfinished", "expected"),
    [(None, None, "200"), ("2", None, "2"), (None, "2", "2"), ("200", "2", "2"), ("7", "7", "7")],
)
def test_both_entries_record_one_value(
    tmp_path: Path, before: str | None, unfinished: str | None, expected: str
) -> None:
    offsets = tmp_path / "spark" / "offsets"
    first, second = entry(offsets, 3, before), entry(offsets, 4, unfinished)
    (tmp_path / "spark" / "commits").mkdir()
    (tmp_path / "spark" / "commits" / "3").write_text("v1")
    complete_offsets(str(tmp_path))
    assert (partitions(first), partitions(second)) == (expected, expected)
    assert second.read_text().split("\n")[2:] == ['r:{"logOffset":0}', 's:{"logOffset":1}']


def test_a_log_without_an_unfinished_batch_is_left_alone(tmp_path: Path) -> None:
    path = entry(tmp_path / "spark" / "offsets", 0, None)
    (tmp_path / "spark" / "commits").mkdir()
    (tmp_path / "spark" / "commits" / "0").write_text("v1")
    complete_offsets(str(tmp_path))
    assert partitions(path) is None
    assert (path.parent / ".0.crc").exists()


def test_a_new_checkpoint_needs_nothing(tmp_path: Path) -> None:
    complete_offsets(str(tmp_path))
    assert not (tmp_path / "spark").exists()
