"""The files of a source, without Spark: the columns they have, and what in them does not fit a declaration."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final

from plait.query.model import Column, Connector
from plait.sources import columns_of_format, format_of
from plait.sql.lexis.names import folded
from plait.sql.lexis.numbers import TIMES
from plait.sql.script.paths import UnreadableFileError, data_files

_COMPRESSED: Final = (".gz", ".bz2", ".zst", ".snappy", ".lz4")
_UTF_8: Final = ("utf-8", "utf8")
_MOST_FILES: Final = 20
"""Files that are looked at: the rest is Spark's to read."""
_MOST_LINES: Final = 100


def read_header(path: str, options: Mapping[str, str]) -> list[str] | None:
    """Return the names in the first line of a CSV file, None where only Spark reads it as it should be.

    `options` by name in lower case. Raises UnreadableFileError.
    """
    separator = options.get("sep", options.get("delimiter", ","))
    encoding = options.get("encoding", options.get("charset", "utf-8"))
    quote, is_plain = options.get("quote", '"'), not ({"comment", "linesep"} & options.keys())
    if len(separator) != 1 or len(quote) != 1 or not is_plain or path.endswith(_COMPRESSED):
        return None
    try:
        # Spark drops the byte order mark that some programs put before UTF-8.
        encoding = "utf-8-sig" if folded(encoding) in _UTF_8 else encoding
        with open(path, encoding=encoding, newline="") as lines:
            names = next(csv.reader(lines, delimiter=separator, quotechar=quote), [])
    except (OSError, UnicodeError, LookupError, csv.Error) as problem:
        message = f"the header of '{path}' cannot be read: {problem}; repair it, or declare the columns"
        raise UnreadableFileError(message) from problem
    if options.get("ignoreleadingwhitespace", "").lower() == "true":
        names = [name.lstrip() for name in names]
    if options.get("ignoretrailingwhitespace", "").lower() == "true":
        names = [name.rstrip() for name in names]
    return names


def checks_header(connector: Connector) -> bool:
    """Tell whether the headers of a CSV source have to fit its declared columns."""
    options = {folded(name): value.strip().lower() for name, value in connector.options}
    return folded(connector.format) == "csv" and options.get("header") == "true" and "enforceschema" not in options


def header_problem(connector: Connector, schema: Sequence[Column]) -> str | None:
    """Say which local file's header does not fit the declared columns of a CSV source, or None."""
    options = {folded(name): value for name, value in connector.options}
    if not checks_header(connector):
        return None
    corrupt = folded(options.get("columnnameofcorruptrecord", "_corrupt_record"))
    expected = [column.name for column in schema if folded(column.name) != corrupt]
    for file in islice(_files(options), _MOST_FILES):
        try:
            header = read_header(file, options)
        except UnreadableFileError as problem:
            return str(problem)
        if header and list(map(folded, header)) != list(map(folded, expected)):
            return (
                f"the header of '{file}' is {', '.join(header)}; expected the declared columns, "
                f"{', '.join(expected)}: {_difference(header, expected)}; declare the columns as the files have them, "
                "or add OPTIONS (enforceSchema 'true') to read them by position whatever the header says"
            )
    return None


def files_problem(connector: Connector, schema: Sequence[Column] | None) -> str | None:
    """Say what in the local files of a source does not fit its declared columns, or None."""
    problem = nanoseconds_problem(connector, schema)
    if problem is not None or schema is None:
        return problem
    return header_problem(connector, schema) or json_names_problem(connector, schema)


def json_names_problem(connector: Connector, schema: Sequence[Column]) -> str | None:
    """Say which local file has a field whose name differs in case from the declared column of a JSON source, or None.

    Spark takes these for two: the column would be NULL in every row.
    """
    options = {folded(name): value for name, value in connector.options}
    is_plain = not ({"linesep", "encoding", "charset"} & options.keys() or _is_on(options, "multiline"))
    if folded(connector.format) != "json" or not is_plain:
        return None
    for file in islice(_files(options), _MOST_FILES):
        names = _json_names(file)
        by_fold = {folded(name): name for name in names}
        for column in schema:
            if column.name not in names and folded(column.name) in by_fold:
                field = by_fold[folded(column.name)]
                return (
                    f"'{file}' has the field '{field}' and not '{column.name}', and Spark tells upper from lower case "
                    f"in fields of JSON; declare the column as {field}, queries may write it as they like"
                )
    return None


def _json_names(path: str) -> frozenset[str]:
    """Return the names of the fields in the first lines of a file, none of one that only Spark reads."""
    if path.endswith(_COMPRESSED):
        return frozenset()
    names: set[str] = set()
    try:
        with open(path, encoding="utf-8-sig") as lines:
            for line in islice(lines, _MOST_LINES):
                with suppress(ValueError):
                    record = json.loads(line)
                    names |= set(record) if isinstance(record, dict) else set()
    except (OSError, UnicodeError):
        return frozenset()
    return frozenset(names)


def _difference(header: Sequence[str], expected: Sequence[str]) -> str:
    for position, (one, other) in enumerate(zip(header, expected, strict=False), 1):
        if folded(one) != folded(other):
            blank = " (mind the blanks)" if folded(one.strip()) == folded(other) else ""
            return f"column {position} is '{one}' and not '{other}'{blank}"
    return f"it has {len(header)} columns and not {len(expected)}"


def _files(options: Mapping[str, str]) -> Iterator[str]:
    if "path" not in options or {"recursivefilelookup", "pathglobfilter"} & options.keys():
        return
    yield from data_files(options["path"]) or ()


def nanoseconds_problem(connector: Connector, schema: Sequence[Column] | None) -> str | None:
    """Say which column of a Parquet source counts nanoseconds but is to be a time, or None.

    Spark has no such type: it reads the count, as a BIGINT, if told to.
    """
    options = {folded(name): value for name, value in connector.options}
    has_times = schema is None or any(column.type in TIMES for column in schema)
    file = next(_files(options), None) if folded(connector.format) == "parquet" and has_times else None
    if file is None:
        return None
    declared = None if schema is None else {folded(column.name): column.type for column in schema}
    for name in _nanoseconds(file):
        if declared is None or declared.get(folded(name), "bigint") != "bigint":
            return (
                f"column '{name}' of '{file}' counts nanoseconds, which Spark cannot read as a time; declare it as "
                f"BIGINT, and write timestamp_micros({name} DIV 1000) for the time it is"
            )
    return None


def _nanoseconds(file: str) -> list[str]:
    # Imported here because Arrow takes longer to load than the rest of a script to check.
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file) as parquet:
            arrow, columns = parquet.schema_arrow, [parquet.schema.column(n) for n in range(len(parquet.schema))]
    except (OSError, pa.ArrowException):
        return []
    old = {column.path for column in columns if column.physical_type == "INT96"}
    times = [field for field in arrow if pa.types.is_timestamp(field.type) and field.type.unit == "ns"]
    return [field.name for field in times if field.name not in old]


def known_schema(connector: Connector, *, is_stream: bool) -> tuple[Column, ...] | None:
    """Return the columns Spark will find, None if only Spark can tell. Raises UnreadableFileError."""
    known, options = format_of(connector.format), {folded(name): value for name, value in connector.options}
    columns = columns_of_format(connector.format, connector.options)
    if columns is not None:
        return columns
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
        from plait.sql.script.parquet_schemas import parquet_schema

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
