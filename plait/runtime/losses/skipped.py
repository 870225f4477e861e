"""Name the files of a stream that Spark does not read, by comparing its folder with Spark's log of what it has read.

Only reasons that are certain are given: a sub-folder, a name that counts as hidden, an age beyond ``maxFileAge``, a
change after the file was read. A file that merely has not had its turn is none of them.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as pafs

from plait.errors import PlaitError
from plait.query.model import Stream
from plait.runtime.losses.counts import Notice
from plait.runtime.sources import spark_name
from plait.sinks.staging import filesystem_of
from plait.state.storage import Storage

_MOST_FILES = 100_000
"""Beyond so many files that were read, listing the folder would take longer than the answer is worth."""

_MARKERS = re.compile(
    r"_SUCCESS|_(common_)?metadata|_(committed|started)_.*|\.DS_Store|\..*\.crc|\.nfs.*|.*\._COPYING_"
)
"""Hidden files that nobody expects to be read."""

_AGE = re.compile(r"(\d+)\s*(ms|s|m|min|h|d)")
_AGE_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_CHANGE_MS = 1000
"""Some file systems keep times of change by the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFile:
    """A file below a stream's folder: its path from there, when it was last changed, and its size."""

    name: str
    changed_ms: int
    bytes: int


def skipped_files(checkpoint: str, streams: Iterable[Stream]) -> Iterator[Notice]:
    """Yield what is not read of the streams that a script reads from a folder."""
    for stream in streams:
        options = {} if stream.connector is None else {k.lower(): v for k, v in stream.connector.options}
        folder = options.get("path")
        if folder is None or any(sign in folder for sign in "*?[{"):
            continue
        try:
            read = _read_log(checkpoint, stream.name)
            if read and len(read) <= _MOST_FILES:
                yield from skipped(stream.name, _listed(folder), _below(folder, read), options)
        except (PlaitError, pa.ArrowException, OSError, ValueError, KeyError):
            continue  # a folder that cannot be listed, or a log in a form unknown: then nothing is known for certain


def skipped(
    stream: str, listed: Iterable[ListedFile], read: Mapping[str, int], options: Mapping[str, str]
) -> Iterator[Notice]:
    """Yield a warning for each reason that files are not read. `read`: when each was changed, as Spark saw it."""
    found: dict[str, list[str]] = {}
    limit = _oldest_ms(read, options)
    for file in listed:
        reason = _reason(file, read, options, limit)
        if reason is not None:
            found.setdefault(reason, []).append(file.name)
    for reason, names in sorted(found.items()):
        count = f"{len(names):,} {'file' if len(names) == 1 else 'files'}"
        yield Notice(
            kind="files not read", of=stream, text=f"stream '{stream}': {count} {reason}, such as '{min(names)}'"
        )


def _reason(file: ListedFile, read: Mapping[str, int], options: Mapping[str, str], limit: int | None) -> str | None:
    folder, base = posixpath.split(file.name)
    if any(_is_hidden(part) for part in folder.split("/") if part):
        return None
    if file.name in read:
        changed = file.changed_ms - read[file.name] >= _CHANGE_MS
        return "changed after being read: Spark reads a file once, write rows to new ones" if changed else None
    if _is_hidden(base):
        is_marker = file.bytes == 0 or _MARKERS.fullmatch(base)
        return None if is_marker else "not read because names that begin with _ or . are hidden"
    if not _is_asked_for(base, options):
        return None
    if folder and options.get("recursivefilelookup", "false").lower() != "true":
        return "in sub-folders not read: OPTIONS (recursiveFileLookup 'true') reads them"
    if limit is not None and file.changed_ms < limit:
        age = options.get("maxfileage", "7d")
        return f"not read, being older than the newest one by more than maxFileAge '{age}'"
    return None


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


def _is_asked_for(base: str, options: Mapping[str, str]) -> bool:
    """Tell whether a name passes the user's own filter; of one with alternatives nothing is said."""
    pattern = options.get("pathglobfilter")
    return pattern is None or ("{" not in pattern and fnmatchcase(base, pattern))


def _oldest_ms(read: Mapping[str, int], options: Mapping[str, str]) -> int | None:
    """Return when a file must have been changed to be read, None if that cannot be told."""
    match = _AGE.fullmatch(options.get("maxfileage", "7d").strip())
    return None if match is None or not read else max(read.values()) - int(match.group(1)) * _AGE_MS[match.group(2)]


def _read_log(checkpoint: str, stream: str) -> dict[str, int]:
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


def _below(folder: str, read: Mapping[str, int]) -> dict[str, int]:
    """Return the same with paths from the stream's folder on."""
    _, root = filesystem_of(folder)
    found = {}
    for uri, changed in read.items():
        path = filesystem_of(uri if uri.startswith("file:") else unquote(uri))[1]
        found[posixpath.relpath(path, root)] = changed
    return found


def _listed(folder: str) -> Iterator[ListedFile]:
    filesystem, root = filesystem_of(folder)
    for info in filesystem.get_file_info(pafs.FileSelector(root, recursive=True)):
        if info.type == pafs.FileType.File and info.mtime_ns is not None:
            name = posixpath.relpath(info.path, root)
            yield ListedFile(name=name, changed_ms=info.mtime_ns // 1_000_000, bytes=info.size or 0)
