"""Damaged files of Spark's logs, named where Spark does not say which it stumbled over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from plait.errors import CheckpointError, SourceError
from plait.runtime.batch.run_errors import explained
from plait.runtime.checkpoint.offsets import complete_offsets, offsets_at
from plait.runtime.checkpoint.spark_logs import damaged_log

FILES = {
    "metadata": '{"id":"2a59afa3-acae-4c44-bafd-75c897683974"}',
    "offsets/8": 'v2\n{"batchWatermarkMs":0,"conf":{"a":"b:c"}}\norders:{"logOffset":7}\n2f2d:-\nother:"12"',
    "offsets/9": 'v1\n{"batchWatermarkMs":0}\n-\n{"logOffset":8}\n17',
    "commits/8": 'v1\n{"nextBatchWatermarkMs":0}',
    "sources/orders/8": 'v1\n{"path":"file:///in/1.csv","timestamp":1700000003000,"batchId":8}\n',
    "sources/orders/9.compact": 'v1\n{"path":"file:///in/1.csv"}\n{"path":"file:///in/2.csv"}',
    "sources/rate/0": "v1\n1700000003000",
    "sources/topic/0": '\0v1\n{"t":{"0":12}}',
}
"""As Spark 4.2 writes them."""


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "spark" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        (path.parent / f".{path.name}.crc").write_bytes(b"crc\xff")
    return tmp_path


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "half": lambda content: content[: len(content) // 2],
    "zeros": lambda content: bytes(len(content)),
    "a bit": lambda content: content[:3] + bytes([content[3] ^ 0x80]) + content[4:],
    "another text": lambda content: b"v1\nhello\n",
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_log_is_found(checkpoint: Path, name: str, damage: str) -> None:
    assert damaged_log(str(checkpoint)) is None
    path = checkpoint / "spark" / name
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    is_still_a_number = name == "sources/rate/0" and damage == "half"
    assert damaged_log(str(checkpoint)) == (None if is_still_a_number else str(path))


def test_a_failure_that_names_nothing_is_blamed_on_a_damaged_log(checkpoint: Path) -> None:
    error = RuntimeError("An error occurred while calling o95.start.\n: java.lang.NumberFormatException: null")
    assert isinstance(explained(error, (), str(checkpoint)), SourceError)
    (checkpoint / "spark" / "offsets" / "9").write_text("v1\ngarbage")
    found = explained(error, (), str(checkpoint))
    assert isinstance(found, CheckpointError)
    assert str(found).startswith(f"the file '{checkpoint}/spark/offsets/9' in the checkpoint is damaged")
    assert "Restore the checkpoint from a backup" in str(found)


def test_a_failure_whose_cause_is_known_is_not_blamed_on_a_log(checkpoint: Path) -> None:
    (checkpoint / "spark" / "offsets" / "9").write_text("v1\ngarbage")
    error = RuntimeError("java.io.IOException: No space left on device")
    assert "Free some space" in str(explained(error, (), str(checkpoint)))


@pytest.mark.parametrize("content", [b"v2\nnot json\n", b"v2\n{}\norders:{\xff}"])
def test_a_damaged_entry_that_plait_reads_itself_is_named(checkpoint: Path, content: bytes) -> None:
    path = checkpoint / "spark" / "offsets" / "9"
    path.write_bytes(content)
    for read in (lambda: complete_offsets(str(checkpoint)), lambda: offsets_at(str(checkpoint), 9)):
        with pytest.raises(CheckpointError, match=f"the file '{path}' in the checkpoint is damaged"):
            read()
