"""What is said about memory and surroundings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.measure import ProcessUse, Use, UseWatch, fields, watching
from benchmarks.surroundings import commit, surroundings

needs_proc = pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux's /proc")


def test_sizes_are_read_as_bytes():
    text = "00400000-7ffd00000000 ---p 00000000 00:00 0   [rollup]\nRss:      12 kB\nPrivate_Dirty:   3 kB\n"
    assert fields(text) == {"Rss": 12 * 1024, "Private_Dirty": 3 * 1024}


def test_only_workers_count_as_workers():
    processes = tuple(
        ProcessUse(pid=pid, kind=kind, resident_bytes=9, private_bytes=size, anonymous_bytes=size // 2)
        for pid, (kind, size) in enumerate([("driver", 50), ("jvm", 90), ("worker", 20), ("worker", 30)])
    )
    memory = Use(resident_bytes=36, processes=processes)
    assert memory.worker_private_bytes() == 30
    assert memory.worker_anonymous_bytes() == 15
    assert Use(resident_bytes=18, processes=processes[:2]).worker_private_bytes() is None


def test_peaks_keep_the_largest_of_each_figure():
    early = ProcessUse(pid=1, kind="driver", resident_bytes=10, private_bytes=8, anonymous_bytes=None)
    late = ProcessUse(pid=1, kind="jvm", resident_bytes=9, private_bytes=9, anonymous_bytes=4)
    assert early.most(late) == ProcessUse(pid=1, kind="jvm", resident_bytes=10, private_bytes=9, anonymous_bytes=4)


@needs_proc
def test_a_child_that_takes_memory_is_seen():
    code = "x = bytearray(80_000_000); x[::4096] = x[::4096]; print('ready', flush=True); input()"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        watch = UseWatch(os.getpid())
        watch.look()
        child.communicate("\n")
    memory = watch.take()
    assert memory is not None
    found = next(process for process in memory.processes if process.pid == child.pid)
    assert found.kind == "driver"
    assert found.cpu_seconds >= 0
    assert memory.cpu_seconds() >= next(use.cpu_seconds for use in memory.processes if use.pid == os.getpid()) > 0
    assert found.private_bytes is not None
    assert 80_000_000 <= found.private_bytes <= found.resident_bytes <= memory.resident_bytes
    assert watch.take() is None


@needs_proc
def test_watching_looks_until_the_block_ends():
    with watching(os.getpid(), interval_s=0.01) as watch:
        pass
    memory = watch.take()
    assert memory is None or memory.processes[0].kind == "driver"


def test_surroundings_name_versions_and_commit():
    found = surroundings()
    assert set(found) == {"machine", "versions", "commit"}
    assert found["versions"]["pyarrow"]
    assert found["commit"] == commit()
