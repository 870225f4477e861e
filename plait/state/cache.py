"""Local copies of immutable remote files, bounded in size.

A copy is named by the remote file's path, size and time of change, so that a checkpoint that was wiped and begun anew
never meets copies of its former self. ``PLAIT_CACHE_DIR`` and ``PLAIT_CACHE_BYTES`` override where the copies lie and
how much they may take.
"""

from __future__ import annotations

import getpass
import os
import shutil
import tempfile
import uuid
from pathlib import Path

import pyarrow.fs as pafs
import xxhash

from plait.errors import OptionError

_DEFAULT_BYTES = 10 << 30
_BLOCK_BYTES = 1 << 20


def directory() -> Path:
    """Return where copies lie: ``PLAIT_CACHE_DIR``, else a directory of this user's under the temporary directory."""
    configured = os.environ.get("PLAIT_CACHE_DIR")
    return Path(configured) if configured else Path(tempfile.gettempdir(), f"plait-cache-{_user()}")


def limit_bytes() -> int:
    """Return how much the copies may take together: ``PLAIT_CACHE_BYTES``, else 10 GiB."""
    configured = os.environ.get("PLAIT_CACHE_BYTES", str(_DEFAULT_BYTES))
    if not configured.isdecimal():
        raise OptionError(f"PLAIT_CACHE_BYTES is {configured!r}; expected a number of bytes, such as {_DEFAULT_BYTES}")
    return int(configured)


def fetch(filesystem: pafs.FileSystem, path: str, uri: str) -> Path:
    """Return a local copy of the remote file at `path`; raise FileNotFoundError if there is none."""
    info = filesystem.get_file_info(path)
    if info.type != pafs.FileType.File:
        raise FileNotFoundError(2, "no such file", path)
    identity = f"{uri}\n{path}\n{info.size}\n{info.mtime_ns}"
    copy = directory() / f"{xxhash.xxh3_128(identity.encode()).hexdigest()}.copy"
    if _touch(copy):
        return copy
    copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _make_room(info.size or 0)
    temporary = copy.with_name(f".tmp-{uuid.uuid4().hex}")
    try:
        with filesystem.open_input_stream(path) as source, open(temporary, "wb") as target:
            shutil.copyfileobj(source, target, _BLOCK_BYTES)
        os.replace(temporary, copy)
    finally:
        temporary.unlink(missing_ok=True)
    return copy


def _touch(copy: Path) -> bool:
    """Mark a copy as just used; False if there is none."""
    try:
        os.utime(copy)
    except FileNotFoundError:
        return False
    return True


def _make_room(needed_bytes: int) -> None:
    """Delete the copies used longest ago until `needed_bytes` more fit. A copy that is mapped stays readable."""
    found, limit = [], limit_bytes()
    for path in directory().glob("*.copy"):
        try:
            status = path.stat()
        except FileNotFoundError:  # another process makes room at the same time
            continue
        found.append((status.st_mtime_ns, status.st_size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total + needed_bytes <= limit:
            return
        path.unlink(missing_ok=True)
        total -= size


def _user() -> str:
    try:
        return str(os.getuid())
    except AttributeError:
        return getpass.getuser()
