"""Pages given up are still there when asked for."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from plait.state.paging import release


def mapped(path: Path, count: int) -> np.ndarray:
    np.arange(count, dtype=np.int64).tofile(path)
    with pa.memory_map(str(path)) as file:
        return np.frombuffer(file.read_buffer(), np.int64)


def resident_kib() -> int:
    fields = dict(line.split(":") for line in Path("/proc/self/smaps_rollup").read_text().splitlines()[1:])
    return int(fields["Rss"].split()[0])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux's kernel")
def test_released_pages_leave_the_process_and_read_as_before(tmp_path: Path) -> None:
    values = mapped(tmp_path / "file", 4_000_000)
    total = int(values.sum())
    before = resident_kib()
    assert release([(values.ctypes.data, values.nbytes)], values.nbytes)
    assert before - resident_kib() > 25_000
    assert int(values.sum()) == total


def test_memory_that_cannot_be_one_mapping_is_left_alone() -> None:
    values = np.ones(1_000_000)
    apart = [(values.ctypes.data, 4096), (values.ctypes.data + values.nbytes - 4096, 4096)]
    assert not release(apart, 8192)
    assert not release([], 8192)
    assert values.all()
