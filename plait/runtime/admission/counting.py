"""How many rows files have, and of what event times: Parquet's and ORC's own account, or lines of the first of a text.

Of many files some are looked at, evenly spread. A file that cannot be read is passed over here: whoever reads its rows
will say so.
"""

from __future__ import annotations

import bz2
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import pyarrow as pa
import pyarrow.fs as pafs

from plait.runtime.admission.stream_files import ListedFile

_LOOKED_AT: Final = 32
_TEXT_BYTES: Final = 1 << 18
_TEXTS: Final = frozenset({"csv", "json", "text"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The rows in so many `bytes` of files; `looked_at` of them; the event times between which these lie."""

    rows: float
    bytes: int
    looked_at: int
    first_us: int | None = None
    last_us: int | None = None


def count_rows(
    filesystem: pafs.FileSystem, root: str, files: Sequence[ListedFile], format_: str, time: str | None
) -> Counted | None:
    """Return what is in some of the files, None if that cannot be told. `time`: the column of event times."""
    samples = [
        counted
        for file in _spread(files)
        if (counted := _count_one(filesystem, f"{root}/{file.name}", file, format_, time)) is not None
    ]
    if not samples:
        return None
    return Counted(
        rows=sum(each.rows for each in samples),
        bytes=sum(each.bytes for each in samples),
        looked_at=len(samples),
        first_us=_least(each.first_us for each in samples),
        last_us=_most(each.last_us for each in samples),
    )


def _spread(files: Sequence[ListedFile]) -> Sequence[ListedFile]:
    if len(files) <= _LOOKED_AT:
        return files
    return [files[number * (len(files) - 1) // (_LOOKED_AT - 1)] for number in range(_LOOKED_AT)]


def _count_one(
    filesystem: pafs.FileSystem, path: str, file: ListedFile, format_: str, time: str | None
) -> Counted | None:
    try:
        if format_ == "parquet":
            return _parquet(filesystem, path, file, time)
        if format_ == "orc":
            from pyarrow import orc

            with filesystem.open_input_file(path) as opened:
                return Counted(rows=orc.ORCFile(opened).nrows, bytes=file.bytes, looked_at=1)
        if format_ == "binaryfile":
            return Counted(rows=1, bytes=file.bytes, looked_at=1)
        return _text(filesystem, path, file) if format_ in _TEXTS else None
    except (OSError, ValueError, EOFError, zlib.error, pa.ArrowException):
        return None


def _parquet(filesystem: pafs.FileSystem, path: str, file: ListedFile, time: str | None) -> Counted:
    import pyarrow.parquet as pq

    with filesystem.open_input_file(path) as opened:
        footer = pq.ParquetFile(opened).metadata
    firsts, lasts = [], []
    for group in map(footer.row_group, range(footer.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            if column.path_in_schema == time and column.is_stats_set and column.statistics.has_min_max:
                firsts.append(_us(column.statistics.min))
                lasts.append(_us(column.statistics.max))
    return Counted(rows=footer.num_rows, bytes=file.bytes, looked_at=1, first_us=_least(firsts), last_us=_most(lasts))


def _text(filesystem: pafs.FileSystem, path: str, file: ListedFile) -> Counted:
    """Count the lines of the first part of a text, and take the rest for the like. A file has a line at least."""
    with filesystem.open_input_stream(path, compression=None) as opened:
        raw = opened.read(_TEXT_BYTES)
    lines = max(_plain(raw, path).count(b"\n"), 1)
    return Counted(rows=lines * file.bytes / len(raw) if raw else 0.0, bytes=file.bytes, looked_at=1)


def _plain(raw: bytes, path: str) -> bytes:
    if path.endswith(".gz"):
        return zlib.decompressobj(wbits=31).decompress(raw)
    if path.endswith(".bz2"):
        return bz2.BZ2Decompressor().decompress(raw)
    if path.endswith((".zst", ".snappy", ".lz4", ".deflate", ".xz")):
        raise ValueError("how much there is in it cannot be told from its first part")
    return raw


def _us(value: object) -> int | None:
    """Return an instant in microseconds since 1970, None for what is no instant. One without a zone is in UTC."""
    if not isinstance(value, datetime):
        return None
    since = (value if value.tzinfo else value.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _least(values: Iterable[int | None]) -> int | None:
    return min((value for value in values if value is not None), default=None)


def _most(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
