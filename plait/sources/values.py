"""Values of messages and lines, which FORMAT decodes: the formats there are, their options, and the columns of Avro."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from plait.query.origin import Column, ValueFormat
from plait.sources.options import KNOWN
from plait.spelling import folded

VALUE: Final = "value"
"""The column that is decoded."""

CORRUPT: Final = "_corrupt_record"
"""Where Spark, and Plait, puts the text of a record that cannot be read, unless an option says otherwise."""

_RECORD_OPTIONS: Final = """
    sep delimiter quote escape charToEscapeQuoteEscaping comment nullValue nanValue positiveInf negativeInf dateFormat
    timestampFormat timestampNTZFormat timeFormat timeZone locale emptyValue ignoreLeadingWhiteSpace
    ignoreTrailingWhiteSpace enableDateTimeParsingFallback maxColumns maxCharsPerColumn unescapedQuoteHandling
    prefersDecimal primitivesAsString allowComments allowUnquotedFieldNames allowSingleQuotes
    allowNumericLeadingZeros allowBackslashEscapingAnyCharacter allowUnquotedControlChars allowNonNumericNumbers
"""
RECORD_OPTIONS: Final = frozenset(map(folded, _RECORD_OPTIONS.split()))
"""Options that say how one record is read, in lower case; the others are about files."""

_AVRO_OPTIONS: Final = ("datetimerebasemode", "enablestableidentifiersforuniontype", "avroschemaevolutionmode")
_PRIMITIVE: Final = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "bytes": "binary",
    "enum": "string",
    "fixed": "binary",
}
_LOGICAL: Final = {
    ("int", "date"): "date",
    ("long", "timestamp-millis"): "timestamp",
    ("long", "timestamp-micros"): "timestamp",
    ("long", "local-timestamp-millis"): "timestamp_ntz",
    ("long", "local-timestamp-micros"): "timestamp_ntz",
}


def is_value_option(format_: ValueFormat, name: str, *, read_as: str) -> bool:
    """Tell whether an option of a source says how its values are decoded, and not how it is read."""
    fold = folded(name)
    if fold in map(folded, KNOWN.get(folded(read_as), ())):
        return False
    if format_ == "avro":
        return fold in _AVRO_OPTIONS
    return fold in RECORD_OPTIONS and fold in map(folded, KNOWN[format_])


def avro_columns(schema: Any) -> tuple[Column, ...] | None:
    """Return the columns of a record's schema as Spark will find them; None where only Spark can tell. Raises
    ValueError for anything else than a record.
    """
    if not isinstance(schema, Mapping) or schema.get("type") != "record" or not isinstance(schema.get("fields"), list):
        raise ValueError("expected a record with its fields")
    columns = []
    for field in schema["fields"]:
        if not isinstance(field, Mapping) or "name" not in field or "type" not in field:
            raise ValueError("expected a name and a type of each field")
        type_ = _type(field["type"])
        if type_ is None:
            return None
        columns.append(Column(name=field["name"], type=type_))
    return tuple(columns)


def _type(written: Any) -> str | None:
    """Return the Spark type of an Avro type. Types with names of their own are left to Spark."""
    if isinstance(written, str):
        return _PRIMITIVE.get(written)
    if isinstance(written, list):
        others = [each for each in written if each != "null"]
        return _type(others[0]) if len(others) == 1 else None
    if not isinstance(written, Mapping):
        return None
    match written.get("type"):
        case "array":
            element = _type(written.get("items"))
            return element and f"array<{element}>"
        case "map":
            value = _type(written.get("values"))
            return value and f"map<string,{value}>"
        case "record":
            fields = [(field["name"], _type(field["type"])) for field in written.get("fields", ())]
            known = all(type_ for _, type_ in fields)
            return f"struct<{','.join(f'{name}:{type_}' for name, type_ in fields)}>" if known else None
        case kind:
            return _simple(kind, written)


def _simple(kind: Any, written: Mapping[str, Any]) -> str | None:
    logical = written.get("logicalType")
    if logical is None:
        return _PRIMITIVE.get(kind) if isinstance(kind, str) else _type(kind)
    if logical == "decimal" and kind in ("bytes", "fixed"):
        return f"decimal({written.get('precision')},{written.get('scale', 0)})"
    if logical == "uuid" and kind == "string":
        return "string"
    return _LOGICAL.get((kind, logical))


__all__ = ["CORRUPT", "RECORD_OPTIONS", "VALUE", "avro_columns", "is_value_option"]
