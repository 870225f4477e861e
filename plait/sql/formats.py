"""Formats of sources and sinks, as far as they can be judged without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from plait.query.model import Column
from plait.sql.names import did_you_mean, folded

FILE_FORMATS: Final = ("parquet", "csv", "json", "orc", "text", "xml", "avro", "binaryFile")
"""They read files, so they need a path."""

SCHEMALESS_FORMATS: Final = ("csv", "json", "xml")
"""Spark reads a stream of these only if it is told the columns."""

_STREAM_ONLY: Final = ("rate", "rate-micro-batch", "socket")
_BUILT_IN: Final = (*FILE_FORMATS, *_STREAM_ONLY, "kafka", "delta", "jdbc")


def _columns(*pairs: tuple[str, str]) -> tuple[Column, ...]:
    return tuple(Column(name=name, type=type_) for name, type_ in pairs)


FIXED_SCHEMAS: Mapping[str, tuple[Column, ...]] = MappingProxyType(
    {
        "rate": _columns(("timestamp", "timestamp"), ("value", "bigint")),
        "rate-micro-batch": _columns(("timestamp", "timestamp"), ("value", "bigint")),
        "text": _columns(("value", "string")),
        "binaryfile": _columns(
            ("path", "string"), ("modificationTime", "timestamp"), ("length", "bigint"), ("content", "binary")
        ),
    }
)
"""Formats whose columns are always the same, by name in lower case."""

SINK_OPTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"parquet": ("path",), "csv": ("path",), "json": ("path",), "console": (), "memory": (), "noop": (), "foreach": ()}
)
"""The sinks there are, with the options each cannot do without."""

FILE_SINKS: Final = ("parquet", "csv", "json")
"""Sinks that store columns by name, so that names must differ."""

_LATER_SINKS: Final = ("delta", "kafka")


def source_format_problem(format_: str, *, is_stream: bool) -> str | None:
    """Say why this cannot be a source format, or None: any name may be a connector, unless it looks like a slip."""
    lower = folded(format_)
    if lower in map(folded, _BUILT_IN):
        if is_stream or lower not in _STREAM_ONLY:
            return None
        return f"'{format_}' is read as a stream only; use CREATE STREAM"
    hint = did_you_mean(format_, _BUILT_IN)
    return f"'{format_}' is not a format Spark knows{hint}" if hint.startswith("; did") and "." not in format_ else None


def sink_format_problem(format_: str) -> str | None:
    """Say why a script cannot write this format, or None."""
    if format_ == "foreach":
        return "the sink 'foreach' calls a Python function; use it from Python (plait.sinks.foreach)"
    if format_ in _LATER_SINKS:
        return f"the sink '{format_}' is not available yet; write parquet and load it from there"
    if format_ in SINK_OPTIONS:
        return None
    return f"'{format_}' is not a sink{did_you_mean(format_, [name for name in SINK_OPTIONS if name != 'foreach'])}"
