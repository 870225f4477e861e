"""The files of a stream: those in its folder, and those that Spark's log of the source names as read."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow.fs as pafs

from plait.sinks.staging import filesystem_of
from plait.sources import spark_name
from plait.state.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFile:
    """A file below a stream's folder: its path from there, when it was last changed, and its size."""

    name: str
    changed_ms: int
    bytes: int


def logged_files(checkpoint: str, stream: str) -> dict[str, int]:
    """Return the files that Spark's log of a source names, with the time of change it saw; none if there is no log."""
    log = Storage.open(posixpath.join(checkpoint, "spark", "sources", spark_name(stream)))
    read: dict[str, int] = {}
    for file in log.list():
        if not posixpath.basename(file.path).split(".")[0].isdigit():
            continue
        for line in log.read_bytes(file.path).decode().split("\n")[1:]:
            if line:
                entry = json.loads(line)
                read[entry["path"]] = int(entry["timestamp"])
    return read


def below(folder: str, read: Mapping[str, int]) -> dict[str, int]:
    """Return the same with paths from the stream's folder on."""
    root = filesystem_of(folder)[1]
    found = {}
    for uri, changed in read.items():
        path = filesystem_of(uri if uri.startswith("file:") else unquote(uri))[1]
        found[posixpath.relpath(path, root)] = changed
    return found


def listed(folder: str) -> Iterator[ListedFile]:
    """Yield the files in a folder and below it, hidden ones too."""
    filesystem, root = filesystem_of(folder)
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


def pattern_of(glob: str) -> re.Pattern[str]:
    """Return what a pattern of Hadoop's matches: ``*``, ``?``, ``[ab]``, ``[^ab]``, ``{one,other}``, ``\\`` before a
    sign that stands for itself.

    >>> bool(pattern_of("{a,b}-*.csv").fullmatch("b-1.csv"))
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
