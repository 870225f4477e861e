"""What a run costs in memory and processor time. Linux tells through /proc; elsewhere it is unknown, which is None
and not 0.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessUse:
    """What one process used, memory at its most. `kind`: ``driver``, ``jvm`` or ``worker``; `resident_bytes` includes
    mapped files.

    `private_bytes` (USS) are pages no other process maps: the process's own memory, and also pages of mapped files
    that just nobody else has touched. `anonymous_bytes` leaves all files out: what the kernel cannot drop at will.
    `read_bytes` and `written_bytes` went through system calls, also to and from pipes and sockets.
    """

    pid: int
    kind: str
    resident_bytes: int
    private_bytes: int | None = None
    anonymous_bytes: int | None = None
    cpu_seconds: float = 0.0
    read_bytes: int = 0
    written_bytes: int = 0

    def most(self, other: ProcessUse) -> ProcessUse:
        """Return the larger of each figure, and the kind that `other` shows: a script becomes the JVM it starts."""
        return replace(
            other,
            resident_bytes=max(self.resident_bytes, other.resident_bytes),
            private_bytes=_largest(self.private_bytes, other.private_bytes),
            anonymous_bytes=_largest(self.anonymous_bytes, other.anonymous_bytes),
            cpu_seconds=max(self.cpu_seconds, other.cpu_seconds),
            read_bytes=max(self.read_bytes, other.read_bytes),
            written_bytes=max(self.written_bytes, other.written_bytes),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What all processes held together `seconds` after the watch began."""

    seconds: float
    resident_bytes: int
    private_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """Peaks of a process and all its descendants. `resident_bytes`: the most all held together, shared pages counted
    once a process. `moments`: one for each look. `ended_cpu_seconds`: the processor time of those that have ended and
    were waited for, as the kernel adds it up; short processes may end between two looks.
    """

    resident_bytes: int
    processes: tuple[ProcessUse, ...]
    moments: tuple[Moment, ...] = ()
    ended_cpu_seconds: float = 0.0

    def cpu_seconds(self) -> float:
        """Return the processor time of all processes since each began: as of the last look, or as they ended."""
        return max(sum(found.cpu_seconds for found in self.processes), self.ended_cpu_seconds)

    def read_bytes(self) -> int:
        """Return what all processes have read."""
        return sum(found.read_bytes for found in self.processes)

    def written_bytes(self) -> int:
        """Return what all processes have written."""
        return sum(found.written_bytes for found in self.processes)

    def worker_private_bytes(self) -> int | None:
        """Return the largest private memory of any Python worker; None if there was none to look at."""
        known = [found.private_bytes for found in self.processes if found.kind == "worker" and found.private_bytes]
        return max(known, default=None)

    def worker_anonymous_bytes(self) -> int | None:
        """Return the largest anonymous memory of any Python worker; None if there was none to look at."""
        known = [found.anonymous_bytes for found in self.processes if found.kind == "worker" and found.anonymous_bytes]
        return max(known, default=None)


_SHORTEST_S = 0.05


class UseWatch:
    """Looks at a process and its descendants from a thread of its own: at first often, so that a process of half a
    second is seen at its largest too, after ten times `interval_s` each `interval_s`.
    """

    def __init__(self, root: int, *, interval_s: float = 1.0) -> None:
        self._root, self._interval_s = root, interval_s
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._peaks: dict[int, ProcessUse] = {}
        self._together = 0
        self._began = time.monotonic()
        self._moments: list[Moment] = []
        self._thread = threading.Thread(target=self._run, name="use-watch", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        if _PROC.is_dir():
            self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def take(self) -> Use | None:
        """Return the peaks since the last `take`, and start anew; None if nothing could be seen."""
        with self._lock:
            peaks, self._peaks = self._peaks, {}
            together, self._together = self._together, 0
            moments, self._moments = self._moments, []
        if not peaks:
            return None
        return Use(
            resident_bytes=together, processes=tuple(peaks[pid] for pid in sorted(peaks)), moments=tuple(moments)
        )

    def _run(self) -> None:
        while not self._stop.is_set():
            self.look()
            age = time.monotonic() - self._began
            self._stop.wait(min(max(age / 10, _SHORTEST_S), self._interval_s))

    def look(self) -> None:
        """Note what the processes hold now."""
        found = tuple(_processes(self._root))
        moment = Moment(
            seconds=time.monotonic() - self._began,
            resident_bytes=sum(process.resident_bytes for process in found),
            private_bytes=sum(process.private_bytes or 0 for process in found),
        )
        with self._lock:
            self._together = max(self._together, moment.resident_bytes)
            self._moments.append(moment)
            for process in found:
                known = self._peaks.get(process.pid, process)
                self._peaks[process.pid] = known.most(process)


def cpu_seconds_by_kind(root: int) -> dict[str, float]:
    """Return the processor time so far of a process and its descendants, by kind."""
    found: dict[str, float] = {}
    for process in _processes(root):
        found[process.kind] = found.get(process.kind, 0.0) + process.cpu_seconds
    return found


@contextmanager
def watching(root: int, *, interval_s: float = 1.0) -> Iterator[UseWatch]:
    """Watch a process and its descendants while the block runs."""
    watch = UseWatch(root, interval_s=interval_s)
    watch.start()
    try:
        yield watch
    finally:
        watch.stop()


def _processes(root: int) -> Iterator[ProcessUse]:
    """Yield the process `root` and its descendants. Java is the JVM; what Java started is a worker, and so is what
    was started early in its place.
    """
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and (parent := _parent(entry)) is not None:
            children.setdefault(parent, []).append(int(entry.name))
    waiting = [(root, "driver")]
    while waiting:
        pid, kind = waiting.pop()
        if _command(pid) == "java":
            kind = "jvm"
        elif _is_early_daemon(pid):
            kind = "worker"
        below = "worker" if kind in {"jvm", "worker"} else kind
        waiting += [(child, below) for child in children.get(pid, ())]
        use = _use(pid, kind)
        if use is not None:
            yield use


def _parent(entry: Path) -> int | None:
    try:
        return int(_after_command(entry)[1])
    except (OSError, IndexError, ValueError):
        return None  # it has ended meanwhile


def _after_command(entry: Path) -> list[str]:
    """Return the fields of a process's state from the third on. The second, the command in parentheses, may hold
    anything.
    """
    return (entry / "stat").read_text().rpartition(")")[2].split()


def _command(pid: int) -> str:
    try:
        return (_PROC / str(pid) / "comm").read_text().strip()
    except OSError:
        return ""


def _is_early_daemon(pid: int) -> bool:
    try:
        return b"\0--early\0" in (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return False


def _use(pid: int, kind: str) -> ProcessUse | None:
    try:
        sizes = fields((_PROC / str(pid) / "smaps_rollup").read_text())
    except (OSError, ValueError):
        return None  # it has ended, or is another user's
    if "Rss" not in sizes:
        return None
    read_bytes, written_bytes = _bytes_moved(pid)
    return ProcessUse(
        pid=pid,
        kind=kind,
        resident_bytes=sizes["Rss"],
        private_bytes=sizes.get("Private_Clean", 0) + sizes.get("Private_Dirty", 0) + sizes.get("Private_Hugetlb", 0),
        anonymous_bytes=sizes.get("Anonymous"),
        cpu_seconds=_cpu_seconds(pid),
        read_bytes=read_bytes,
        written_bytes=written_bytes,
    )


def _bytes_moved(pid: int) -> tuple[int, int]:
    """Return the bytes a process has read and written by system calls."""
    try:
        lines = (_PROC / str(pid) / "io").read_text().splitlines()
    except OSError:
        return 0, 0
    found = dict(line.split(": ") for line in lines if ": " in line)
    return int(found.get("rchar", 0)), int(found.get("wchar", 0))


def _cpu_seconds(pid: int) -> float:
    """Return the time of a process and of its children that have ended; utime to cstime are fields 14 to 17."""
    try:
        times = _after_command(_PROC / str(pid))[11:15]
    except OSError:
        return 0.0
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def fields(text: str) -> dict[str, int]:
    """Return the sizes of an smaps text in bytes, by name."""
    sizes = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[2] == "kB":
            sizes[words[0].rstrip(":")] = int(words[1]) * 1024
    return sizes


def _largest(left: int | None, right: int | None) -> int | None:
    return right if left is None else left if right is None else max(left, right)
