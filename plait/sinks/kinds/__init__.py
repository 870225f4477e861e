"""The kinds of sinks there are, one module each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from plait.errors import SinkError
from plait.query.model import SinkSpec
from plait.sinks.kind import SinkKind, SinkName
from plait.sinks.kinds.console import Console
from plait.sinks.kinds.csv import Csv
from plait.sinks.kinds.delta import Delta
from plait.sinks.kinds.foreach import Foreach, ForeachArrow
from plait.sinks.kinds.jdbc import Jdbc
from plait.sinks.kinds.json import Json
from plait.sinks.kinds.kafka import Kafka
from plait.sinks.kinds.memory import Memory
from plait.sinks.kinds.noop import Noop
from plait.sinks.kinds.parquet import Parquet
from plait.spelling import did_you_mean

KINDS: Final[Mapping[SinkName, SinkKind]] = MappingProxyType(
    {
        "parquet": Parquet(),
        "csv": Csv(),
        "json": Json(),
        "console": Console(),
        "delta": Delta(),
        "jdbc": Jdbc(),
        "kafka": Kafka(),
        "memory": Memory(),
        "noop": Noop(),
        "foreach": Foreach(),
        "foreach_arrow": ForeachArrow(),
    }
)

_BY_NAME: Final[Mapping[str, SinkKind]] = MappingProxyType({str(name): kind for name, kind in KINDS.items()})


def kind_of(spec: SinkSpec) -> SinkKind:
    """Return the kind of a sink. Raises SinkError if there is none of its name."""
    kind = _BY_NAME.get(spec.format)
    if kind is None:
        raise SinkError(f"{_unknown(spec.format)}; the functions in plait.sinks describe those there are")
    return kind


def connectors_of(spec: SinkSpec) -> tuple[str, ...]:
    """Return the formats that Spark must know for a sink, if there is one of its name."""
    kind = _BY_NAME.get(spec.format)
    return (spec.format,) if kind is None else kind.connectors(spec)


def format_problem(format_: str) -> str | None:
    """Say why a script cannot write this format, or None."""
    kind = _BY_NAME.get(format_)
    return _unknown(format_) if kind is None else kind.script_problem


def _unknown(format_: str) -> str:
    return f"'{format_}' is not a sink{did_you_mean(format_, [n for n, k in _BY_NAME.items() if not k.script_problem])}"


__all__ = ["KINDS", "connectors_of", "format_problem", "kind_of"]
