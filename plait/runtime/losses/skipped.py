"""Name the files of a stream that Spark does not read, by comparing its folder with Spark's log of what it has read.

Only reasons that are certain are given: a sub-folder, a name that counts as hidden, an age beyond ``maxFileAge``, a
change after the file was read. A file that merely has not had its turn is none of them.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from plait.errors import PlaitError
from plait.query.model import Stream
from plait.runtime.admission.stream_files import (
    ListedFile,
    below,
    glob_pattern,
    has_pattern,
    is_hidden,
    listed,
    logged_files,
)
from plait.runtime.notice import Notice

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


def skipped_files(checkpoint: str, streams: Iterable[Stream]) -> Iterator[Notice]:
    """Yield what is not read of the streams that a script reads from a folder."""
    for stream in streams:
        options = {} if stream.connector is None else {k.lower(): v for k, v in stream.connector.options}
        folder = options.get("path")
        if folder is None or has_pattern(folder):
            continue
        try:
            read = logged_files(checkpoint, stream.name, _MOST_FILES)
            if read and len(read) <= _MOST_FILES:
                yield from skipped(stream.name, listed(folder), below(folder, read), options)
        except (PlaitError, pa.ArrowException, OSError, ValueError, KeyError):
            continue  # a folder that cannot be listed, or a log in a form unknown: then nothing is known for certain


def skipped(
    stream: str, found_files: Iterable[ListedFile], read: Mapping[str, int], options: Mapping[str, str]
) -> Iterator[Notice]:
    """Yield a warning for each reason that files are not read. `read`: when each was changed, as Spark saw it."""
    by_reason: dict[str, list[str]] = {}
    limit = _oldest_ms(read, options)
    for file in found_files:
        reason = _reason(file, read, options, limit)
        if reason is not None:
            by_reason.setdefault(reason, []).append(file.name)
    for reason, names in sorted(by_reason.items()):
        count = f"{len(names):,} {'file' if len(names) == 1 else 'files'}"
        yield Notice(
            kind="files not read", of=stream, text=f"stream '{stream}': {count}, such as '{min(names)}', {reason}"
        )


def _reason(file: ListedFile, read: Mapping[str, int], options: Mapping[str, str], limit: int | None) -> str | None:
    folder, base = posixpath.split(file.name)
    if any(is_hidden(part) for part in folder.split("/") if part):
        return None
    if file.name in read:
        changed = file.changed_ms - read[file.name] >= _CHANGE_MS
        return "changed after being read: Spark reads a file once, write rows to new ones" if changed else None
    if is_hidden(base):
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


def _is_asked_for(base: str, options: Mapping[str, str]) -> bool:
    """Tell whether a name passes the user's own filter."""
    glob = options.get("pathglobfilter")
    return glob is None or glob_pattern(glob).fullmatch(base) is not None


def _oldest_ms(read: Mapping[str, int], options: Mapping[str, str]) -> int | None:
    """Return when a file must have been changed to be read, None if that cannot be told."""
    match = _AGE.fullmatch(options.get("maxfileage", "7d").strip())
    return None if match is None or not read else max(read.values()) - int(match.group(1)) * _AGE_MS[match.group(2)]
