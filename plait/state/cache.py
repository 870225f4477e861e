"""Local copies of immutable remote files, bounded in size, for all processes of a machine together.

A copy is named by the remote file's path, size and time of change, so that a checkpoint that was wiped and begun anew
never meets copies of its former self. It is written under a name of its own, at once in its full size, so that others
count it while it grows, and locked: of several processes that want a file one fetches it, and what a killed process
left half written is known by the lock that is gone with it. ``PLAIT_CACHE_DIR`` and ``PLAIT_CACHE_BYTES`` say where the
copies of a machine lie and how much they may take there, whatever a run asks for.
"""

from __future__ import annotations

import getpass
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pyarrow.fs as pafs
import xxhash

from plait.errors import OptionError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

DEFAULT_BYTES = 10 << 30
_BLOCK_BYTES = 1 << 20
_COPY, _PARTIAL = ".copy", ".partial"


def directory() -> Path:
    """Return where copies lie: ``PLAIT_CACHE_DIR``, else a directory of this user's under the temporary directory."""
    configured = os.environ.get("PLAIT_CACHE_DIR")
    return Path(configured) if configured else Path(tempfile.gettempdir(), f"plait-cache-{_user()}")


def limit_bytes(asked_bytes: int | None = None) -> int:
    """Return how much the copies may take together: ``PLAIT_CACHE_BYTES``, else what the run asks for, else 10 GiB."""
    configured = os.environ.get("PLAIT_CACHE_BYTES")
    if configured is None:
        return DEFAULT_BYTES if asked_bytes is None else asked_bytes
    if not configured.isdecimal():
        raise OptionError(f"PLAIT_CACHE_BYTES is {configured!r}; expected a number of bytes, such as {DEFAULT_BYTES}")
    return int(configured)


def fetch(filesystem: pafs.FileSystem, path: str, uri: str, asked_bytes: int | None = None) -> Path:
    """Return a local copy of the remote file at `path`; raise FileNotFoundError if there is none.

    A file larger than the limit is copied all the same, and is the first to go.
    """
    info = filesystem.get_file_info(path)
    if info.type != pafs.FileType.File:
        raise FileNotFoundError(2, "no such file", path)
    identity = f"{uri}\n{path}\n{info.size}\n{info.mtime_ns}"
    copy = directory() / f"{xxhash.xxh3_128(identity.encode()).hexdigest()}{_COPY}"
    if _touch(copy):
        return copy
    copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = copy.with_suffix(_PARTIAL if fcntl else f".{uuid.uuid4().hex}{_PARTIAL}")
    with _locked(partial) as descriptor:
        if _touch(copy):  # fetched by the process that had the lock before
            partial.unlink(missing_ok=True)
            return copy
        _reserve(partial, descriptor, info.size or 0, limit_bytes(asked_bytes))
        try:
            with filesystem.open_input_stream(path) as source, open(descriptor, "r+b", closefd=False) as target:
                shutil.copyfileobj(source, target, _BLOCK_BYTES)
            os.replace(partial, copy)
        finally:
            partial.unlink(missing_ok=True)
    return copy


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Hold the file at `path`, made if need be, for this process alone; provide its descriptor.

    Whoever waited may find that the file it has locked lost its name meanwhile, to a copy or to `_discard`.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if fcntl is None or _is_still(path, descriptor):
                yield descriptor
                return
        finally:
            os.close(descriptor)


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _reserve(partial: Path, descriptor: int, size: int, limit: int) -> None:
    """Make room for a file of this size and take it at once, alone on this machine."""
    with _locked(partial.with_name("room.lock")):
        _make_room(size, limit, partial)
        os.truncate(descriptor if os.truncate in os.supports_fd else partial, size)


def _touch(copy: Path) -> bool:
    """Mark a copy as just used; False if there is none."""
    try:
        os.utime(copy)
    except FileNotFoundError:
        return False
    return True


def _make_room(needed_bytes: int, limit: int, mine: Path) -> None:
    """Delete the copies used longest ago until `needed_bytes` more fit. A copy that is mapped stays readable."""
    files, total = [], needed_bytes
    for path in directory().iterdir():
        if path == mine or path.suffix not in (_COPY, _PARTIAL) or (path.suffix == _PARTIAL and _discard(path)):
            continue
        try:
            status = path.stat()
        except FileNotFoundError:  # finished or given up meanwhile
            continue
        total += status.st_size
        if path.suffix == _COPY:
            files.append((status.st_mtime_ns, status.st_size, path))
    for _, size, path in sorted(files):
        if total <= limit:
            return
        path.unlink(missing_ok=True)
        total -= size


def _discard(partial: Path) -> bool:
    """Delete what a process that is gone left half written; False if its process is still at it."""
    if fcntl is None:
        return False
    try:
        descriptor = os.open(partial, os.O_RDWR)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_still(partial, descriptor):
            partial.unlink(missing_ok=True)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def _user() -> str:
    try:
        return str(os.getuid())
    except AttributeError:
        return getpass.getuser()
