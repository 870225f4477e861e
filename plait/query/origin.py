"""How a source is read: what Spark is told, and what becomes of what it delivers before that is a row of the source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from plait.spelling import folded

Options: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a source. `type` is Spark DDL in lower case: ``bigint``, ``decimal(10,2)``, ``timestamp``; or
    `UNTOLD`.
    """

    name: str
    type: str


UNTOLD: Final = ""
"""The type of a column of another query's groups where only Spark knows it, before it is asked."""


ValueFormat: TypeAlias = Literal["json", "csv", "avro"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """How the column ``value`` of what a source delivers becomes `columns`; of Avro they are those of `schema`, in
    JSON, as far as is known.
    """

    format: ValueFormat
    columns: tuple[Column, ...] | None = None
    schema: str | None = None
    options: Options = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """What rows are made of as they are read (``AS SELECT``): Spark SQL over the `delivered` columns, each `items` a
    column and its expression. `unpacked`: structs that are computed once, for items to take their fields.

    A delivered row of which `condition` does not hold is none. One for which an expression of `failures` is true is a
    bad one: the conversion beside it, as the user wrote it, has failed.
    """

    delivered: tuple[Column, ...]
    items: tuple[tuple[str, str], ...]
    unpacked: tuple[tuple[str, str], ...] = ()
    condition: str | None = None
    failures: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Connector:
    """How Spark reads a source: format and options as given to ``spark.readStream``, paths already absolute; and what
    becomes of that before it is a row of the source.
    """

    format: str
    options: Options = ()
    decoding: Decoding | None = None
    making: Making | None = None


def formats_of(connector: Connector) -> tuple[str, ...]:
    """Return the format a source is read as, that of the values in it if these are decoded, and the name of the
    database that it is read from.
    """
    url = next((value for name, value in connector.options if folded(name) == "url"), "")
    database = [url.split(":")[1]] if connector.format == "jdbc" and url.startswith("jdbc:") else []
    return (connector.format, *([] if connector.decoding is None else [connector.decoding.format]), *database)
