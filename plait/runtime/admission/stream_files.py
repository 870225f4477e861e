"""The files of a stream: those in its folder, and those that Spark's log of the source names as read."""

from __future__ import annotations

import io
import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final
from urllib.parse import unquote

import pyarrow.fs as pafs

from plait.sinks.staging import locate
from plait.sources import spark_name
from plait.state.storage import Storage

_MOST_FILES: Final = 100_000
"""Beyond so many files that were read, telling them from new ones would take longer than it is worth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFile:
    """A file below a stream's folder: its path from there, when it was last changed, and its size."""

    name: str
    changed_ms: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder and its files that Spark would read, oldest first: the order it takes them in."""

    filesystem: pafs.FileSystem
    root: str
    files: tuple[ListedFile, ...]


def logged_files(checkpoint: str, stream: str, most: int | None = None) -> dict[str, int]:
    """Return the files that Spark's log of a source names, with the time of change it saw; none if there is no log.
    Where there are more than `most`, no more are looked at than tell that.
    """
    log = Storage.open(posixpath.join(checkpoint, "spark", "sources", spark_name(stream)))
    read: dict[str, int] = {}
    for path in _entries(log):
        for line in islice(_lines(log, path), 1, None):
            if line.strip():
                entry = json.loads(line)
                read[entry["path"]] = int(entry["timestamp"])
            if most is not None and len(read) > most:
                return read
    return read


def entries_of_files(checkpoint: str, stream: str) -> dict[str, int]:
    """Return the entry of Spark's log of a source that names each file; none if there is no log."""
    log = Storage.open(posixpath.join(checkpoint, "spark", "sources", spark_name(stream)))
    lines = (line for path in _entries(log) for line in islice(_lines(log, path), 1, None) if line.strip())
    return {entry["path"]: int(entry["batchId"]) for entry in map(json.loads, lines)}


def _entries(log: Storage) -> list[str]:
    """Return the log's entries from the last one on that holds all before it, in order."""
    names = [file.path for file in log.list() if file.path.removesuffix(".compact").isdigit()]
    numbers = {path: int(path.removesuffix(".compact")) for path in names}
    last = max((number for path, number in numbers.items() if path.endswith(".compact")), default=0)
    kept = [path for path in names if numbers[path] > last or path == f"{last}.compact" or path == f"{last}"]
    return sorted(kept, key=numbers.__getitem__)


def _lines(log: Storage, path: str) -> Iterator[bytes]:
    local = log.local_path(path)
    with io.BytesIO(log.read_bytes(path)) if local is None else local.open("rb") as file:
        yield from file


def below(folder: str, read: Mapping[str, int]) -> dict[str, int]:
    """Return the same with paths from the stream's folder on."""
    root = locate(folder)[1]
    times = {}
    for uri, changed in read.items():
        path = locate(uri if uri.startswith("file:") else unquote(uri))[1]
        times[posixpath.relpath(path, root)] = changed
    return times


def listed(folder: str) -> Iterator[ListedFile]:
    """Yield the files in a folder and below it, hidden ones too."""
    filesystem, root = locate(folder)
    for info in filesystem.get_file_info(pafs.FileSelector(root, recursive=True)):
        if info.type == pafs.FileType.File and info.mtime_ns is not None:
            name = posixpath.relpath(info.path, root)
            yield ListedFile(name=name, changed_ms=info.mtime_ns // 1_000_000, bytes=info.size or 0)


def is_hidden(name: str) -> bool:
    """Tell whether Spark passes over files and folders of this name."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


_SIGNS = {"*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")"}


def has_pattern(path: str) -> bool:
    """Tell whether a path stands for several, as Hadoop reads it."""
    return any(sign in path for sign in "*?[{")


def glob_pattern(glob: str) -> re.Pattern[str]:
    """Return what a pattern of Hadoop's matches: ``*``, ``?``, ``[ab]``, ``[^ab]``, ``{one,other}``, ``\\`` before a
    sign that stands for itself.

    >>> bool(glob_pattern("{a,b}-*.csv").fullmatch("b-1.csv"))
    True
    """
    parts, depth = [], 0
    for token in re.findall(r"\\.|\[[^\]]+\]|.", glob, re.DOTALL):
        depth += (token == "{") - (token == "}")
        if token.startswith("\\"):
            parts.append(re.escape(token[1:]))
        elif token == "," and depth:
            parts.append("|")
        else:
            parts.append(token if token[0] == "[" and len(token) > 1 else _SIGNS.get(token, re.escape(token)))
    return re.compile("".join(parts), re.DOTALL)


def unread(
    folder: Folder, stream: str, path: str, checkpoint: str | None
) -> tuple[Sequence[ListedFile], Sequence[ListedFile]]:
    """Return the files that wait, and those that were read; all wait if nothing is known of any."""
    read = {} if checkpoint is None else logged_files(checkpoint, stream, _MOST_FILES)
    if len(read) > _MOST_FILES:
        return (), ()
    names = below(_base(path), read)
    waiting = [file for file in folder.files if file.name not in names]
    return waiting, [file for file in folder.files if file.name in names]


def folder_of(options: Mapping[str, str]) -> Folder:
    """List what Spark would read, as far as its path, its name and the user's filter tell."""
    path = options["path"]
    base = _base(path)
    filesystem, root = locate(base)
    files = sorted(_asked_for(base, path, options), key=lambda file: (file.changed_ms, file.name))
    return Folder(filesystem=filesystem, root=root.rstrip("/"), files=tuple(files))


def _asked_for(base: str, path: str, options: Mapping[str, str]) -> Iterator[ListedFile]:
    glob = options.get("pathglobfilter")
    wanted = None if glob is None else glob_pattern(glob)
    below_path = glob_pattern(path[len(base) :].strip("/")) if has_pattern(path) else None
    is_recursive = options.get("recursivefilelookup", "false").strip().lower() == "true"
    for file in listed(base):
        folder, _, name = file.name.rpartition("/")
        if any(is_hidden(part) for part in file.name.split("/")) or (wanted and not wanted.fullmatch(name)):
            continue
        if below_path is not None:
            if below_path.fullmatch(file.name) or below_path.fullmatch(folder):
                yield file
        elif is_recursive or all("=" in part for part in folder.split("/") if part):
            yield file


def _base(path: str) -> str:
    """Return the folder that a path with patterns begins with; the path itself if it has none."""
    parts = path.split("/")
    plain = next((number for number, part in enumerate(parts) if has_pattern(part)), len(parts))
    return "/".join(parts[:plain]) or "/"
