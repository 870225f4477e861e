"""The columns of a source, as far as they can be known without Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping

from plait.query.model import Column, Connector
from plait.sources import format_of
from plait.sql.files import UnreadableFileError, read_header
from plait.sql.names import folded
from plait.sql.paths import data_files


def known_schema(connector: Connector, *, is_stream: bool) -> tuple[Column, ...] | None:
    """Return the columns Spark will find, None if only Spark can tell. Raises UnreadableFileError."""
    known, options = format_of(connector.format), {folded(name): value for name, value in connector.options}
    if known.columns is not None:
        return known.columns
    if not known.reads_files or "path" not in options or _is_on(options, "recursivefilelookup"):
        return None
    ending = re.fullmatch(r"\*?([^*?\[{]*)", options.get("pathglobfilter", ""))
    files = data_files(options["path"], ending[1]) if ending else None
    if files is None:
        return None
    if not files:
        message = f"'{options['path']}' holds no file yet to take the columns from; add one, or declare the columns"
        raise UnreadableFileError(message)
    if known.name == "parquet" and not _is_on(options, "mergeschema"):
        # Imported here because Arrow takes longer to load than the rest of a script to check.
        from plait.sql.parquet_schemas import parquet_schema

        return parquet_schema(files[0])
    if known.name == "csv" and not is_stream:
        return _csv_schema(files[0], options)
    return None


def _is_on(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "").lower() == "true"


def _csv_schema(path: str, options: Mapping[str, str]) -> tuple[Column, ...] | None:
    """Read the header; without type inference every column is a string."""
    if not _is_on(options, "header") or _is_on(options, "inferschema"):
        return None
    names = read_header(path, options)
    distinct = names is not None and len({folded(name) for name in names}) == len(names) and all(names)
    return tuple(Column(name=name, type="string") for name in names or ()) if distinct else None
