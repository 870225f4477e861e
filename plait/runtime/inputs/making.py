"""From what a source delivers to its rows: values decoded (FORMAT), expressions computed (AS SELECT).

A record that cannot be decoded, or of which a conversion fails, becomes a row with a text about it in a column of its
own, as Spark's readers of files do it: it is set aside as malformed and joined with nothing. The text is a JSON object
that says where the record is and what was in it, so that it can be found again and repaired.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType

from plait.query.origin import Column, Connector, Decoding, Making
from plait.sources.values import CORRUPT, VALUE
from plait.spelling import backquoted, folded

FAILED: Final = "failed"
TOMBSTONE: Final = "tombstone"

_DECODED: Final = "__decoded"
_PLACE: Final = ("topic", "partition", "offset")
"""What tells where a record of Kafka's is."""


def made_rows(
    frame: DataFrame, connector: Connector, corrupt: str | None, *, keeps_bad: bool
) -> tuple[DataFrame, str | None]:
    """Return the rows of what is delivered, and the column that tells of records that are none. `corrupt`: that of
    `frame`, if it has one; `keeps_bad`: such records are there whatever is selected, to be set aside.
    """
    if connector.decoding is not None:
        frame, corrupt = _decoded(frame, connector.decoding, whole=connector.making is not None)
    return (frame, corrupt) if connector.making is None else _made(frame, connector.making, corrupt, keeps_bad)


def _decoded(frame: DataFrame, decoding: Decoding, *, whole: bool) -> tuple[DataFrame, str]:
    """Decode the values; `whole`: keep the columns beside them."""
    delivered = frame.columns
    parsed = frame.selectExpr("*", f"{_decoder(decoding)} AS {_DECODED}")
    names = [field.name for field in parsed.schema[_DECODED].dataType.fields if field.name != CORRUPT]
    taken = {folded(name) for name in names}
    others = [name for name in delivered if folded(name) not in taken] if whole else []
    return (
        parsed.selectExpr(
            *(f"{_DECODED}.{backquoted(name)} AS {backquoted(name)}" for name in names),
            *map(backquoted, others),
            f"CASE {_undecoded(decoding, frame, names)} END AS {CORRUPT}",
        ),
        CORRUPT,
    )


def _decoder(decoding: Decoding) -> str:
    options = dict(decoding.options) | {"mode": "PERMISSIVE"}
    if decoding.format == "avro":
        return f"from_avro({VALUE}, {_text(decoding.schema or '')}, {_map(options)})"
    fields = (*(decoding.columns or ()), Column(name=CORRUPT, type="string"))
    ddl = ", ".join(f"{backquoted(column.name)} {column.type}" for column in fields)
    function = "from_json" if decoding.format == "json" else "from_csv"
    return (
        f"{function}(CAST({VALUE} AS STRING), {_text(ddl)}, {_map(options | {'columnNameOfCorruptRecord': CORRUPT})})"
    )


def _undecoded(decoding: Decoding, delivered: DataFrame, names: Iterable[str]) -> str:
    """Return the branches of CASE that tell of a value which is none, or cannot be decoded."""
    malformed = f"{_DECODED}.{CORRUPT} IS NOT NULL"
    if decoding.format == "avro":  # Spark makes a record without anything in it of what it cannot decode
        malformed = " AND ".join(f"{_DECODED}.{backquoted(name)} IS NULL" for name in names) or "FALSE"
    record = _record(delivered, [*(name for name in _PLACE if name in delivered.columns), VALUE])
    no_value = f"WHEN {VALUE} IS NULL THEN {_object([(FAILED, _text(TOMBSTONE)), *record])}"
    failed = [(FAILED, _text(f"FORMAT {decoding.format}")), *record]
    # A value without a single field is a row of NULLs to Spark, and no record to anybody else.
    return f"{no_value} WHEN ({malformed}) OR {_DECODED} IS NULL THEN {_object(failed)}"


def _made(frame: DataFrame, making: Making, corrupt: str | None, keeps_bad: bool) -> tuple[DataFrame, str | None]:
    """Compute the columns and leave out what is not selected, but no record that is to be set aside."""
    delivered, shown = frame, [name for name in frame.columns if name != corrupt]
    if making.unpacked:
        frame = frame.selectExpr("*", *(f"{sql} AS {backquoted(name)}" for name, sql in making.unpacked))
    if corrupt is None and not making.failures:
        chosen = frame if making.condition is None else frame.where(making.condition)
        return chosen.selectExpr(*_columns(making)), None
    bad = "CAST(NULL AS STRING)" if corrupt is None else backquoted(corrupt)
    branches = "".join(
        f" WHEN {condition} THEN {_object([(FAILED, _text(written)), *_record(delivered, shown)])}"
        for condition, written in making.failures
    )
    told = f"CASE WHEN {bad} IS NOT NULL THEN {bad}{branches} END AS {backquoted(CORRUPT)}"
    frame = frame.selectExpr(*(backquoted(name) for name in frame.columns if name != CORRUPT), told)
    if making.condition is not None:
        is_bad = f"{CORRUPT} IS NOT NULL OR " if keeps_bad else ""
        frame = frame.where(f"{is_bad}({making.condition})")
    return frame.selectExpr(*_columns(making), CORRUPT), CORRUPT


def _columns(making: Making) -> Iterable[str]:
    return (f"{sql} AS {backquoted(name)}" for name, sql in making.items)


def _record(delivered: DataFrame, shown: Iterable[str]) -> list[tuple[str, str]]:
    """Return what is told of a record: these columns, and a value in bytes as text if it is one, else in base 64."""
    told: list[tuple[str, str]] = []
    for name in shown:
        if name != VALUE or not isinstance(delivered.schema[VALUE].dataType, BinaryType):
            told.append((name, backquoted(name)))
            continue
        text = f"CAST({VALUE} AS STRING)"
        told.append((VALUE, f"CASE WHEN is_valid_utf8({text}) THEN {text} END"))
        told.append(("base64", f"CASE WHEN NOT is_valid_utf8({text}) THEN base64({VALUE}) END"))
    return told


def _object(fields: Iterable[tuple[str, str]]) -> str:
    """Return an expression for a JSON object; fields that are NULL are left out."""
    return f"to_json(named_struct({', '.join(f'{_text(name)}, {sql}' for name, sql in fields)}))"


def _map(options: dict[str, str]) -> str:
    return f"map({', '.join(f'{_text(name)}, {_text(value)}' for name, value in options.items())})"


def _text(value: str) -> str:
    r"""Return a literal of Spark's.

    >>> print(_text("it's a \\"))
    'it\'s a \\'
    """
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


__all__ = ["FAILED", "TOMBSTONE", "made_rows"]
