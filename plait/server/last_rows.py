"""The last rows that a query has written, as far as its sink is one of files: a look, not a result."""

from __future__ import annotations

import json
import posixpath
from typing import Any, Final

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from plait.query.model import SinkSpec
from plait.server.served import Json
from plait.sinks.kinds import kind_of
from plait.sinks.staging import locate

MOST_ROWS: Final = 20
_MOST_CHARACTERS: Final = 200
_MOST_BYTES: Final = 64 * 1024


def last_rows(sink: SinkSpec) -> Json:
    """Return ``columns`` and ``rows`` (texts) of the newest file of a sink, and a ``note`` where none can be shown."""
    if sink.format not in ("parquet", "csv", "json"):
        return _nothing(f"a sink '{sink.format}' shows no rows")
    directory = kind_of(sink).directory(sink)
    assert directory is not None, "these sinks have one"
    filesystem, root = locate(directory)
    newest = _newest(filesystem, root)
    if newest is None:
        return _nothing("nothing has been written yet")
    if newest.path.endswith(".parquet"):
        return _of_parquet(filesystem, newest)
    return _of_text(filesystem, newest, sink.format)


def _nothing(note: str) -> Json:
    return {"columns": [], "rows": [], "note": note}


def _newest(filesystem: pafs.FileSystem, root: str) -> pafs.FileInfo | None:
    """Return the file that was published last; those of a batch under way are hidden."""
    infos = filesystem.get_file_info(pafs.FileSelector(root, recursive=True, allow_not_found=True))
    shown = (
        info
        for info in infos
        if info.type == pafs.FileType.File
        and info.size
        and not any(part.startswith((".", "_")) for part in posixpath.relpath(info.path, root).split("/"))
    )
    return max(shown, key=lambda info: (info.mtime_ns or 0, info.path), default=None)


def _of_parquet(filesystem: pafs.FileSystem, info: pafs.FileInfo) -> Json:
    with filesystem.open_input_file(info.path) as file:
        read = pq.ParquetFile(file)
        table = read.read_row_group(read.num_row_groups - 1) if read.num_row_groups else read.schema_arrow.empty_table()
    return _shown(table.slice(max(0, table.num_rows - MOST_ROWS)))


def _shown(table: pa.Table) -> Json:
    rows = [[_text(value) for value in row.values()] for row in table.to_pylist()]
    return {"columns": table.column_names, "rows": rows, "note": None}


def _of_text(filesystem: pafs.FileSystem, info: pafs.FileInfo, format: str) -> Json:
    if not info.path.endswith((".csv", ".json", ".txt")):
        return _nothing(f"the newest file, {posixpath.basename(info.path)}, is packed")
    with filesystem.open_input_file(info.path) as file:
        file.seek(max(0, info.size - _MOST_BYTES))
        lines = file.read().decode("utf-8", "replace").splitlines()
    lines = (lines[1:] if info.size > _MOST_BYTES else lines)[-MOST_ROWS:]
    if format == "csv":
        return {"columns": ["line"], "rows": [[_text(line)] for line in lines], "note": None}
    records = [json.loads(line) for line in lines]
    columns = list(dict.fromkeys(name for record in records for name in record))
    rows = [[_text(record.get(name)) for name in columns] for record in records]
    return {"columns": columns, "rows": rows, "note": None}


def _text(value: Any) -> str | None:
    """Return a value as it is shown, shortened."""
    if value is None:
        return None
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"


__all__ = ["MOST_ROWS", "last_rows"]
