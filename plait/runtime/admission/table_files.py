"""What waits of a stream of a Delta table: the files that its log names beyond the rows that were read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from plait.adapt.admission import Waiting
from plait.runtime.inputs.delta_files import AddedFile, TableLog, read_log


def waiting_files(known: Waiting, options: Mapping[str, str], read_rows: int, time: str | None) -> Waiting:
    """Return what waits. `known`: what is known without the log; `read_rows`: how many rows of the table were read;
    `time`: the column of event times. Raises as `read_log` does.
    """
    log = read_log(options["path"], time)
    files = list(_of_stream(log, options.get("startingversion")))
    counted = [(each, each.rows) for each in files if each.rows]
    rows, size = sum(rows for _, rows in counted), sum(each.bytes for each, _ in counted)
    if not rows:
        return known
    row_bytes = size / rows
    left = list(_unread(files, read_rows, row_bytes))
    is_all = len(counted) == len(files)
    return replace(
        known,
        files=len(left),
        bytes=sum(each.bytes for each in left),
        rows=sum(_rows(each, row_bytes) for each in left),
        row_bytes=row_bytes,
        file_rows=rows / len(counted),
        basis="counted" if is_all else "sampled",
        first_us=min((each.first_us for each in left if each.first_us is not None), default=None),
        last_us=max((each.last_us for each in left if each.last_us is not None), default=None),
    )


def _of_stream(log: TableLog, starting: str | None) -> Iterator[AddedFile]:
    """Yield the files that a stream reads: those that are there, from a version on if one is named."""
    first = log.last + 1 if starting == "latest" else int(starting or 0)
    for file in log.added:
        is_asked_for = not first or (file.version is not None and file.version >= first)
        if file.is_new and is_asked_for and file.name not in log.removed:
            yield file


def _unread(files: Iterable[AddedFile], read_rows: int, row_bytes: float) -> Iterator[AddedFile]:
    left = float(read_rows)
    for file in files:
        if left <= 0:
            yield file
        left -= _rows(file, row_bytes)


def _rows(file: AddedFile, row_bytes: float) -> float:
    return float(file.rows) if file.rows is not None else file.bytes / row_bytes


__all__ = ["waiting_files"]
