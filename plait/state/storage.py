"""Where a checkpoint's files live: a local directory, or any URI that ``pyarrow.fs`` or fsspec understands.

Files become visible whole: they are written under a temporary name and renamed. Files that are mapped (buckets,
indexes) never change once written, so those of a remote checkpoint are read through a bounded local cache.
"""

from __future__ import annotations

import os
import posixpath
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs
import xxhash

from plait.errors import CheckpointError
from plait.faults import reach
from plait.filesystems import filesystem_of
from plait.state import cache
from plait.state.file_errors import DAMAGED, meaning

Writer: TypeAlias = Callable[[IO[bytes]], None]
"""Writes a file's content to the binary file object it is given."""

_CACHE_ATTEMPTS = 20
TEMPORARY = ".tmp-"
"""How temporary names begin. Whoever lists files ignores them; garbage collection removes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """What was written: size in bytes and checksum (``xxh3:<16 hex digits>`` of the content)."""

    bytes: int
    checksum: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file found by `Storage.list`: path relative to the storage, size, time of last change (ns since 1970)."""

    path: str
    bytes: int
    modified_ns: int


@contextmanager
def explaining(name: str, doing: str) -> Iterator[None]:
    """Turn an operating system's or Arrow's error about file `name` into a `CheckpointError` that says what to do."""
    try:
        yield
    except pa.ArrowInvalid as error:
        if doing != "read":
            raise
        raise CheckpointError(f"Cannot {doing} {name}: {error}. {DAMAGED}") from error
    except OSError as error:
        raise CheckpointError(f"Cannot {doing} {name}: {meaning(error)}") from error


@dataclass(frozen=True, slots=True)
class Storage:
    """A directory of files by relative path (``a/b``). Holds only plain values, so it travels to other processes.

    `cache_bytes`: how much local copies of a remote one may take, None for the default (`plait.state.cache`). `mark`:
    what every process must find in it (`plait.state.mark`).

    Every method raises `CheckpointError`, naming the file and the remedy, for a missing file, a full disk, a denied
    permission or an unreachable store.
    """

    uri: str
    cache_bytes: int | None = None
    mark: str | None = None

    @classmethod
    def open(cls, uri: str) -> Storage:
        """Return the storage at `uri`: a local path (made absolute), ``file:`` or any other file system URI."""
        scheme = urlsplit(uri).scheme
        if scheme == "file":
            uri = unquote(urlsplit(uri).path)
        elif len(scheme) > 1:
            storage = cls(uri.rstrip("/"))
            storage._remote()
            return storage
        return cls(os.path.abspath(uri))

    @property
    def is_local(self) -> bool:
        """Whether the files lie in a directory of this machine."""
        return self.uri.startswith("/") or len(urlsplit(self.uri).scheme) <= 1

    def local_path(self, relative: str) -> Path | None:
        """Return the file's path on this machine, None if the storage is remote."""
        return Path(self.uri, relative) if self.is_local else None

    def name(self, relative: str) -> str:
        """Return the file's full path or URI, for messages."""
        return posixpath.join(self.uri, relative)

    def write_file(self, relative: str, content: bytes | Writer, *, durable: bool = False) -> WrittenFile:
        """Write a file under a temporary name, then rename it, replacing what had the name.

        `durable`: have the content and the rename survive a power failure (fsync), not only a killed process.
        """
        folder, base = posixpath.split(relative)
        temporary = posixpath.join(folder, f"{TEMPORARY}{uuid.uuid4().hex}-{base}"[:200])
        with explaining(self.name(relative), "write"):
            reach(f"write:{relative.split('/', 1)[0]}")
            if self.is_local:
                return _write_local(Path(self.uri, temporary), Path(self.uri, relative), content, durable)
            return self._write_remote(temporary, relative, content)

    def create_file(self, relative: str, content: bytes) -> bool:
        """Write a file, durably, unless one has the name already; tell whether it was written.

        Atomic also against other writers on a local file system with hard links; elsewhere a last look precedes the
        rename.
        """
        if self.exists(relative):
            return False
        path = self.local_path(relative)
        if path is None:
            self.write_file(relative, content)
            return True
        hidden = path.with_name(f"{TEMPORARY}{uuid.uuid4().hex}-{path.name}"[:200])
        with explaining(self.name(relative), "write"):
            try:
                _write_local(hidden, hidden, content, durable=True)
                _link(hidden, path)
                _sync_directory(path.parent)
            except FileExistsError:
                return False
            finally:
                hidden.unlink(missing_ok=True)
        return True

    def read_bytes(self, relative: str) -> bytes:
        """Return a file's content."""
        with explaining(self.name(relative), "read"):
            if self.is_local:
                return Path(self.uri, relative).read_bytes()
            filesystem, root = self._remote()
            with filesystem.open_input_stream(posixpath.join(root, relative)) as stream:
                return bytes(stream.read())

    def open_mapped(self, relative: str) -> pa.MemoryMappedFile:
        """Map an immutable file into memory; of a remote storage, its local copy. The caller closes it."""
        with explaining(self.name(relative), "read"):
            for _ in range(_CACHE_ATTEMPTS):
                try:
                    return pa.memory_map(str(self.local_copy(relative)))
                except FileNotFoundError:  # its copy was evicted by another process before it was mapped
                    if self.is_local:
                        raise
            raise OSError(f"its local copy keeps disappearing from {cache.directory()}")

    def local_copy(self, relative: str) -> Path:
        """Return a path on this machine with the content of an immutable file, fetching it if necessary."""
        if self.is_local:
            return Path(self.uri, relative)
        with explaining(self.name(relative), "read"):
            filesystem, root = self._remote()
            return cache.fetch(filesystem, posixpath.join(root, relative), self.uri, self.cache_bytes)

    def exists(self, relative: str) -> bool:
        """Tell whether there is a file or directory of this name."""
        with explaining(self.name(relative), "look at"):
            if self.is_local:
                return Path(self.uri, relative).exists()
            filesystem, root = self._remote()
            info = filesystem.get_file_info(posixpath.join(root, relative))
            return bool(info.type != pafs.FileType.NotFound)

    def list(self, folder: str = "", *, recursive: bool = False) -> tuple[StoredFile, ...]:
        """Return the files in `folder`, ordered by path, temporary ones too; none if there is no such folder."""
        with explaining(self.name(folder), "list"):
            filesystem, root = (pafs.LocalFileSystem(), self.uri) if self.is_local else self._remote()
            base = posixpath.join(root, folder) if folder else root
            selector = pafs.FileSelector(base, recursive=recursive, allow_not_found=True)
            infos = [info for info in filesystem.get_file_info(selector) if info.type == pafs.FileType.File]
        files = (
            StoredFile(
                path=posixpath.relpath(info.path, root),
                bytes=info.size,
                modified_ns=info.mtime_ns or 0,
            )
            for info in infos
        )
        return tuple(sorted(files, key=lambda file: file.path))

    def delete(self, relative: str) -> None:
        """Delete a file; one that is gone already is no error."""
        with explaining(self.name(relative), "delete"):
            if self.is_local:
                Path(self.uri, relative).unlink(missing_ok=True)
                return
            filesystem, root = self._remote()
            try:
                filesystem.delete_file(posixpath.join(root, relative))
            except FileNotFoundError:
                return

    def delete_empty(self, folder: str) -> None:
        """Delete the empty directories in `folder`. Object stores have none."""
        path = self.local_path(folder)
        if path is None or not path.is_dir():
            return
        for inner in path.iterdir():
            with suppress(OSError):  # not empty, or no directory
                inner.rmdir()

    def _remote(self) -> tuple[pafs.FileSystem, str]:
        try:
            return filesystem_of(self.uri)
        except ValueError as error:
            raise CheckpointError(
                f"Cannot open the checkpoint {self.uri}: {error}. Use a local directory, or install fsspec and its "
                "package for this storage."
            ) from error
        except OSError as error:
            raise CheckpointError(
                f"Cannot connect to the checkpoint {self.uri}: {error}. Check address and credentials; hdfs:// needs "
                "Hadoop's libhdfs and CLASSPATH wherever Plait runs (docs/deploy.md)."
            ) from error

    def _write_remote(self, temporary: str, relative: str, content: bytes | Writer) -> WrittenFile:
        filesystem, root = self._remote()
        hidden, final = posixpath.join(root, temporary), posixpath.join(root, relative)
        filesystem.create_dir(posixpath.dirname(final), recursive=True)
        try:
            with filesystem.open_output_stream(hidden) as stream:
                written = _write(stream, content)
            filesystem.move(hidden, final)
        except BaseException:
            _forget(filesystem, hidden)
            raise
        return written


class _ChecksummedFile:
    """A binary file object that counts and hashes what passes through it."""

    def __init__(self, target: Any) -> None:
        self._target, self._hash, self.bytes = target, xxhash.xxh3_64(), 0
        self.closed = False

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self._hash.update(view)
        self._target.write(view)
        self.bytes += len(view)
        return len(view)

    def tell(self) -> int:
        return self.bytes

    def flush(self) -> None:
        self._target.flush()

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    @property
    def checksum(self) -> str:
        return f"xxh3:{self._hash.hexdigest()}"


def checksum_of(content: Any) -> str:
    """Return the checksum of a bytes-like object as `WrittenFile.checksum` gives it."""
    return f"xxh3:{xxhash.xxh3_64(content).hexdigest()}"


def _write(target: Any, content: bytes | Writer) -> WrittenFile:
    sink = _ChecksummedFile(target)
    if callable(content):
        content(sink)  # type: ignore[arg-type]  # as much of a file as Arrow's writers use
    else:
        sink.write(content)
    return WrittenFile(bytes=sink.bytes, checksum=sink.checksum)


def _write_local(temporary: Path, final: Path, content: bytes | Writer, durable: bool) -> WrittenFile:
    try:
        file = open(temporary, "wb", buffering=0)  # noqa: SIM115  # the directory may have to be made first
    except FileNotFoundError:
        final.parent.mkdir(parents=True, exist_ok=True)
        file = open(temporary, "wb", buffering=0)  # noqa: SIM115
    try:
        with file:
            written = _write(_Complete(file), content)
            if durable:
                os.fsync(file.fileno())
        if temporary != final:
            reach(f"rename:{final.name.split('.')[-1]}")
            os.replace(temporary, final)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        _sync_directory(final.parent)
    return written


class _Complete:
    """A raw file whose writes are never short: the system may take only part of a large one."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, view: memoryview) -> None:
        while len(view):
            view = view[self._file.write(view) :]

    def flush(self) -> None:
        self._file.flush()


def _link(hidden: Path, final: Path) -> None:
    """Give a file its final name unless that is taken; rename where the file system has no hard links."""
    reach(f"link:{final.parent.name}")
    try:
        os.link(hidden, final)
    except FileExistsError:
        raise
    except OSError:
        os.replace(hidden, final)


def _sync_directory(directory: Path) -> None:
    """Make a rename in `directory` durable, where the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _forget(filesystem: pafs.FileSystem, path: str) -> None:
    try:
        filesystem.delete_file(path)
    except OSError:
        return
