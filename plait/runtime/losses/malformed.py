"""Find out which column of a malformed record does not convert, by letting Spark read that one record again.

Spark says of a malformed record only its text. Read once with the declared types and once with STRING for all, it
shows which columns have text and no value. It is done once for each stream, outside the data path.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, from_csv, from_json, lit
from typing_extensions import assert_never

from plait.operators.ingest.badrows import shortened
from plait.operators.reports import IngestReport
from plait.query.model import Column, Stream
from plait.runtime.inputs.making import FAILED, TOMBSTONE
from plait.runtime.inputs.opening import CORRUPT, OpenSource, schema_ddl, schema_of
from plait.runtime.losses.counts import BadCount, SourceCounts, counts_of
from plait.runtime.losses.hints import OUT_OF_RANGE, Misfit, TextFormat, misfit_hint, no_time_hint, shape_hint
from plait.runtime.notice import Notice
from plait.sources.values import RECORD_OPTIONS, VALUE
from plait.spelling import folded

_MOST_CHARACTERS = 2000
"""Samples this long may have been cut off, and then fail for another reason than the record did."""

_NO_VALUE: Final = (
    "the value is NULL: a tombstone, which takes back what the topic held under its key. A stream only gains rows, so "
    "it is set aside"
)


def read_in_part(
    loaded: Iterable[IngestReport], opened: Mapping[str, OpenSource], explainer: Explainer
) -> Iterator[Notice]:
    """Yield a warning for each table with rows of which something did not convert: these are kept, with NULL for it."""
    for counts in counts_of(loaded):
        for bad in explainer.explained(counts, opened[counts.source]).bad:
            column = "" if bad.column is None else f" in column '{bad.column}'"
            hint = f". {bad.hint}" if bad.hint else ""
            yield Notice(
                kind="table read in part",
                of=counts.source,
                text=f"table '{counts.source}': {bad.rows:,} of {counts.rows:,} rows have something that does not "
                f"convert{column} and is read as NULL, such as: {shortened(bad.sample)}{hint}",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fields:
    """A record read twice: the text and whether it converted, by column; `is_whole`: it has the fields declared."""

    texts: tuple[str | None, ...]
    converted: tuple[bool, ...]
    is_whole: bool


class Explainer:
    """Adds column and hint to what was counted. Each reason of each stream is looked into once."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._known: dict[tuple[str, str], tuple[str | None, str | None]] = {}

    def explained(self, counts: SourceCounts, opened: OpenSource) -> SourceCounts:
        """Return the counts with what is known about their reasons."""
        return replace(counts, bad=tuple(self._explained(bad, counts, opened) for bad in counts.bad))

    def _explained(self, bad: BadCount, counts: SourceCounts, opened: OpenSource) -> BadCount:
        key = (counts.source, bad.reason)
        if key not in self._known:
            self._known[key] = self._look_into(bad, counts, opened)
        column, hint = self._known[key]
        return replace(bad, column=column, hint=hint)

    def _look_into(self, bad: BadCount, counts: SourceCounts, opened: OpenSource) -> tuple[str | None, str | None]:
        """Return (column, hint), as far as they can be told."""
        stream = opened.source
        time = stream.time if isinstance(stream, Stream) else None
        match bad.reason:
            case "malformed":
                return self._malformed(bad.sample, opened)
            case "event time out of range":
                return time, OUT_OF_RANGE
            case "no event time":
                if time is None:
                    return None, None
                hint = no_time_hint(
                    time,
                    text_format=_format(opened),
                    tells_malformed=_tells_malformed(opened),
                    all_of_them=bad.rows == counts.rows,
                )
                return time, hint
            case _:
                assert_never(bad.reason)

    def _malformed(self, sample: str, opened: OpenSource) -> tuple[str | None, str | None]:
        form, told = _format(opened), _told(sample, opened)
        failed = None if told is None else told[FAILED]
        if failed == TOMBSTONE:
            return VALUE, _NO_VALUE
        if told is not None and not str(failed).startswith("FORMAT "):
            return None, f"{failed} cannot be done: write try_cast or another try_ function where NULL will do"
        if told is not None:
            sample = told.get(VALUE) or ""
        if form is None or not sample or len(sample) >= _MOST_CHARACTERS:
            return None, "the record does not fit the declared columns; a deadLetter folder keeps all of them"
        try:
            fields = self._read_again(sample, form, opened)
        except PySparkException:
            return None, None
        if not fields.is_whole:
            return None, shape_hint(form, len(fields.texts), sample, _options(opened))
        return _misfit(sample, form, opened, fields)

    def _read_again(self, sample: str, form: TextFormat, opened: OpenSource) -> _Fields:
        declared = _declared(opened)
        own = {name: value for name, value in _options(opened).items() if folded(name) in RECORD_OPTIONS}
        own["columnNameOfCorruptRecord"] = CORRUPT
        corrupt = Column(name=CORRUPT, type="string")
        typed = (*declared, corrupt)
        plain = (*(Column(name=column.name, type="string") for column in declared), corrupt)
        read = from_csv if form == "csv" else from_json
        both = self._spark.sql("SELECT 1 AS one").select(
            read(lit(sample), schema_ddl(typed), own).alias("typed"),
            read(lit(sample), schema_ddl(plain), own).alias("plain"),
        )
        row = both.select(
            *(col("plain").getField(field.name).alias(f"t{n}") for n, field in enumerate(declared)),
            *(col("typed").getField(field.name).isNotNull().alias(f"c{n}") for n, field in enumerate(declared)),
            col("plain").getField(CORRUPT).isNull().alias("whole"),
        ).collect()[0]
        count = len(declared)
        return _Fields(texts=tuple(row[:count]), converted=tuple(row[count : 2 * count]), is_whole=bool(row["whole"]))


def _told(sample: str, opened: OpenSource) -> dict[str, Any] | None:
    """Return what is told of a record that Plait itself could not decode or convert; None of any other record."""
    connector = opened.source.connector
    if connector is None or (connector.decoding is None and connector.making is None):
        return None
    try:
        told = json.loads(sample)
    except ValueError:
        return None
    return told if isinstance(told, dict) and FAILED in told else None


def _declared(opened: OpenSource) -> tuple[Column, ...]:
    """Return the columns that records are read as."""
    connector = opened.source.connector
    if connector is not None and connector.decoding is not None and connector.decoding.columns is not None:
        return connector.decoding.columns
    if connector is not None and connector.making is not None:
        return connector.making.delivered
    return schema_of(opened.frame, {opened.corrupt_column})


def _options(opened: OpenSource) -> dict[str, str]:
    connector = opened.source.connector
    if connector is None:
        return {}
    return dict(connector.options if connector.decoding is None else connector.decoding.options)


def _misfit(sample: str, form: TextFormat, opened: OpenSource, fields: _Fields) -> tuple[str | None, str | None]:
    declared = _declared(opened)
    for column, text, converted in zip(declared, fields.texts, fields.converted, strict=True):
        if text is None or converted:
            continue
        misfit = Misfit(
            format=form,
            column=column.name,
            type=column.type,
            text=text,
            is_string=form == "json" and _is_json_string(sample, column.name),
            options=_options(opened),
            names=tuple(each.name for each in declared),
            row=tuple(each or "" for each in fields.texts),
        )
        return column.name, misfit_hint(misfit)
    return None, None


def _is_json_string(sample: str, column: str) -> bool:
    try:
        record = json.loads(sample)
    except ValueError:
        return False
    return isinstance(record, dict) and isinstance(record.get(column), str)


def _tells_malformed(opened: OpenSource) -> bool:
    """Tell whether a value that does not convert is seen as such, or cannot occur because values have types."""
    typed = opened.source.connector is not None and _format(opened) is None
    return typed or opened.corrupt_column is not None


def _format(opened: OpenSource) -> TextFormat | None:
    connector = opened.source.connector
    if connector is None:
        return None
    match connector.format.lower() if connector.decoding is None else connector.decoding.format:
        case "csv":
            return "csv"
        case "json":
            return "json"
        case _:
            return None
