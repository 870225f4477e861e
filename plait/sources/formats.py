"""The formats of sources there are, as far as they can be judged without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from plait.query.model import Column
from plait.spelling import did_you_mean, folded


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFormat:
    """A format of sources, by the name Spark gives it.

    `reads_files`: it needs a path. `stream_only`: there are no tables of it. `columns`: those it always has, None if
    they depend on what is read; `added`: one more with an option that is true. `takes_columns`: Spark accepts a
    declaration of them. `declares_for_stream`: Spark reads a stream of it only if it is told the columns.
    `has_columns_in_files`: the files carry them, also for a stream. `keeps_malformed`: Spark can keep the text of a
    record it cannot parse. `is_flat`: a field holds no array, map or struct. `has_log`: it is the path of a table whose
    log says which files, and which columns, it has.
    """

    name: str
    reads_files: bool = False
    stream_only: bool = False
    columns: tuple[Column, ...] | None = None
    added: tuple[str, Column] | None = None
    takes_columns: bool = True
    declares_for_stream: bool = False
    has_columns_in_files: bool = False
    keeps_malformed: bool = False
    is_flat: bool = False
    has_log: bool = False

    @property
    def has_path(self) -> bool:
        """Whether it is read from a path."""
        return self.reads_files or self.has_log


def _columns(**types: str) -> tuple[Column, ...]:
    return tuple(Column(name=name, type=type_) for name, type_ in types.items())


_RATE: Final = _columns(timestamp="timestamp", value="bigint")
_KAFKA: Final = _columns(
    key="binary",
    value="binary",
    topic="string",
    partition="int",
    offset="bigint",
    timestamp="timestamp",
    timestampType="int",
)
_BINARY: Final = _columns(path="string", modificationTime="timestamp", length="bigint", content="binary")

_ALL: Final = (
    SourceFormat(name="parquet", reads_files=True, has_columns_in_files=True),
    SourceFormat(name="csv", reads_files=True, declares_for_stream=True, keeps_malformed=True, is_flat=True),
    SourceFormat(name="json", reads_files=True, declares_for_stream=True, keeps_malformed=True),
    SourceFormat(name="orc", reads_files=True, has_columns_in_files=True),
    SourceFormat(name="text", reads_files=True, columns=_columns(value="string")),
    SourceFormat(name="xml", reads_files=True, declares_for_stream=True),
    SourceFormat(name="avro", reads_files=True),
    SourceFormat(name="binaryFile", reads_files=True, columns=_BINARY),
    SourceFormat(name="rate", stream_only=True, columns=_RATE, takes_columns=False),
    SourceFormat(name="rate-micro-batch", stream_only=True, columns=_RATE, takes_columns=False),
    SourceFormat(
        name="socket",
        stream_only=True,
        columns=_columns(value="string"),
        added=("includeTimestamp", Column(name="timestamp", type="timestamp")),
        takes_columns=False,
    ),
    SourceFormat(
        name="kafka",
        columns=_KAFKA,
        added=("includeHeaders", Column(name="headers", type="array<struct<key:string,value:binary>>")),
        takes_columns=False,
    ),
    SourceFormat(name="delta", takes_columns=False, has_log=True),
    SourceFormat(name="jdbc"),
)

FORMATS: Final[Mapping[str, SourceFormat]] = MappingProxyType({folded(format_.name): format_ for format_ in _ALL})
"""By name in lower case."""


def format_of(name: str) -> SourceFormat:
    """Return what is known of a format; of a connector from elsewhere, its name."""
    return FORMATS.get(folded(name), SourceFormat(name=name))


def columns_of_format(format_: str, options: Iterable[tuple[str, str]]) -> tuple[Column, ...] | None:
    """Return the columns that a format always has, with these options; None if they depend on what is read."""
    known = format_of(format_)
    if known.columns is None or known.added is None:
        return known.columns
    option, column = known.added
    is_added = any(folded(name) == folded(option) and value.lower() == "true" for name, value in options)
    return (*known.columns, column) if is_added else known.columns


def format_problem(name: str, *, is_stream: bool) -> str | None:
    """Say why this cannot be a source format, or None: any name may be a connector, unless it looks like a slip."""
    known = FORMATS.get(folded(name))
    if known is not None:
        if is_stream or not known.stream_only:
            return None
        return f"'{name}' is read as a stream only; use CREATE STREAM"
    hint = did_you_mean(name, (format_.name for format_ in _ALL))
    return f"'{name}' is not a format Spark knows{hint}" if hint.startswith("; did") and "." not in name else None
