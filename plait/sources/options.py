"""The options that Spark's own readers know, by format, with what each accepts: Spark ignores others without a word.

Taken from Spark 4.2 (`CSVOptions`, `JSONOptions`, `FileStreamOptions` and so on) and its guide for Kafka. Of formats
that are not here nothing is known, so nothing is refused; nor are names with a dot, which go to Hadoop
(``fs.s3a.endpoint``) or Kafka (``kafka.security.protocol``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from plait.option_values import (
    ANY,
    CHARACTER,
    CHARSET,
    COUNT,
    COUNT_OR_NONE,
    DELTA_SIZE,
    DELTA_START,
    DURATION,
    GLOB,
    LIMIT,
    LINE_SEPARATOR,
    LOCALE,
    LONG_COUNT,
    LONG_LIMIT,
    MOMENT,
    NAME,
    PORT,
    READ_PATTERN,
    SEPARATOR,
    SHARE_ABOVE_ZERO,
    SHORT_LINE_SEPARATOR,
    SWITCH,
    TAG,
    UTF_8,
    ZONE,
    Values,
    words,
)
from plait.sources.combinations import combination_problems
from plait.sources.formats import format_of
from plait.spelling import did_you_mean, folded


def _all(values: Values, names: str) -> dict[str, Values]:
    return dict.fromkeys(names.split(), values)


_FILES: Final = {
    **_all(ANY, "path basePath"),
    **_all(GLOB, "pathGlobFilter"),
    **_all(SWITCH, "recursiveFileLookup ignoreCorruptFiles ignoreMissingFiles ignoreInvalidPartitionPaths"),
}
_FILE_STREAMS: Final = {
    **_all(COUNT, "maxFilesPerTrigger"),
    **_all(LONG_COUNT, "maxBytesPerTrigger"),
    **_all(DURATION, "maxFileAge"),
    **_all(SWITCH, "latestFirst fileNameOnly"),
    **_all(NAME, "sourceArchiveDir"),
    **_all(words("off", "archive", "delete"), "cleanSource"),
    **_all(LIMIT, "maxCachedFiles"),
    **_all(SHARE_ABOVE_ZERO, "discardCachedInputRatio"),
}
_FILE_TABLES: Final = _all(MOMENT, "modifiedBefore modifiedAfter")
_PARSED: Final = {
    **_all(words("permissive", "dropmalformed", "failfast"), "mode"),
    **_all(NAME, "columnNameOfCorruptRecord singleVariantColumn"),
    **_all(LOCALE, "locale"),
    **_all(READ_PATTERN, "dateFormat timestampFormat timestampNTZFormat timeFormat"),
    **_all(ZONE, "timeZone"),
    **_all(SWITCH, "enableDateTimeParsingFallback multiLine"),
    **_all(SHARE_ABOVE_ZERO, "samplingRatio"),
    **_all(CHARSET, "encoding charset"),
    **_all(LINE_SEPARATOR, "lineSep"),
}
_CSV: Final = {
    **_all(SWITCH, "header inferSchema ignoreLeadingWhiteSpace ignoreTrailingWhiteSpace preferDate enforceSchema"),
    **_all(SWITCH, "columnPruning"),
    **_all(SEPARATOR, "sep delimiter"),
    **_all(CHARACTER, "quote escape comment charToEscapeQuoteEscaping"),
    **_all(COUNT, "maxColumns inputBufferSize"),
    **_all(COUNT_OR_NONE, "maxCharsPerColumn"),
    **_all(SHORT_LINE_SEPARATOR, "lineSep"),
    **_all(ANY, "emptyValue nullValue nanValue positiveInf negativeInf"),
    **_all(
        words("STOP_AT_CLOSING_QUOTE", "BACK_TO_DELIMITER", "STOP_AT_DELIMITER", "SKIP_VALUE", "RAISE_ERROR"),
        "unescapedQuoteHandling",
    ),
}
_JSON: Final = _all(
    SWITCH,
    """
    primitivesAsString prefersDecimal allowComments allowUnquotedFieldNames allowSingleQuotes allowNumericLeadingZeros
    allowNonNumericNumbers allowBackslashEscapingAnyCharacter allowUnquotedControlChars dropFieldIfAllNull
    inferTimestamp
    """,
)
_XML: Final = {
    **_all(TAG, "rowTag"),
    **_all(NAME, "valueTag"),
    **_all(ANY, "attributePrefix nullValue rowValidationXSDPath wildcardColName encoding charset"),
    **_all(SWITCH, "excludeAttribute ignoreSurroundingSpaces ignoreNamespace inferSchema preferDate prefersDecimal"),
    **_all(SWITCH, "useLegacyXMLParser"),
}
_KAFKA: Final = {
    **_all(NAME, "subscribe subscribePattern assign groupIdPrefix"),
    **_all(NAME, "startingOffsets endingOffsets startingOffsetsByTimestamp endingOffsetsByTimestamp"),
    **_all(LONG_LIMIT, "startingTimestamp endingTimestamp"),
    **_all(words("error", "latest"), "startingOffsetsByTimestampStrategy"),
    **_all(SWITCH, "failOnDataLoss includeHeaders"),
    **_all(LONG_COUNT, "maxOffsetsPerTrigger minOffsetsPerTrigger minPartitions maxRecordsPerPartition"),
    **_all(DURATION, "maxTriggerDelay"),
}
_DELTA_STREAMS: Final = {
    **_all(COUNT, "maxFilesPerTrigger"),
    **_all(DELTA_SIZE, "maxBytesPerTrigger"),
    **_all(SWITCH, "ignoreDeletes skipChangeCommits failOnDataLoss readChangeFeed"),
    **_all(DELTA_START, "startingVersion"),
    **_all(MOMENT, "startingTimestamp"),
    **_all(NAME, "excludeRegex"),
}
_DELTA_TABLES: Final = {**_all(LONG_LIMIT, "versionAsOf"), **_all(MOMENT, "timestampAsOf")}
_WRITING: Final = "compression codec quoteAll escapeQuotes extension ignoreNullFields pretty sortKeys rootTag"

KNOWN: Final[Mapping[str, Mapping[str, Values]]] = MappingProxyType(
    {
        "csv": {**_PARSED, **_CSV},
        "json": {**_PARSED, **_JSON},
        "xml": {**_PARSED, **_XML},
        "parquet": {
            **_all(SWITCH, "mergeSchema"),
            **_all(words("exception", "corrected", "legacy"), "datetimeRebaseMode int96RebaseMode"),
        },
        "orc": _all(SWITCH, "mergeSchema"),
        "text": {**_all(SWITCH, "wholetext"), **_all(LINE_SEPARATOR, "lineSep"), **_all(UTF_8, "encoding")},
        "binaryfile": {},
        "rate": {**_all(LONG_COUNT, "rowsPerSecond"), **_all(DURATION, "rampUpTime"), **_all(COUNT, "numPartitions")},
        "rate-micro-batch": {
            **_all(LONG_COUNT, "rowsPerBatch"),
            **_all(COUNT, "numPartitions"),
            **_all(LONG_LIMIT, "startTimestamp advanceMillisPerBatch"),
        },
        "socket": {
            **_all(NAME, "host"),
            **_all(PORT, "port"),
            **_all(SWITCH, "includeTimestamp"),
            **_all(COUNT, "numPartitions"),
        },
        "kafka": _KAFKA,
        "delta": _all(ANY, "path"),
    }
)
"""Options by format, with what they accept; without those that all files have, and those of streams or tables alone."""

_REFUSED: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "delta": {
            "ignorechanges": (
                "hands over rows once more whose file was rewritten, and results would come twice; skipChangeCommits "
                "'true' passes over such commits, readChangeFeed 'true' reads what has changed"
            ),
            "ignorefiledeletion": "has given way to ignoreDeletes 'true' and skipChangeCommits 'true'; use those",
            "readchangedata": "is the old name of readChangeFeed; use that",
            "schematrackinglocation": (
                "lets the columns of a stream change while it runs, which queries cannot follow; begin with another "
                "checkpoint where columns are renamed or dropped"
            ),
        }
    }
)
"""By format: options that Spark's reader knows, and why streams of Plait's have none of them."""

_OWN_STREAM: Final = ("idle", "deadLetter", "keep", "placement", "rate", "rows")
_OWN_TABLE: Final = ("rows",)


def reader_option_problem(format_: str, name: str, value: str, *, is_stream: bool) -> str | None:
    """Say why Spark would ignore this option of a source, or choke on its value; None if it would not."""
    own = {folded(each): each for each in ("distinct", *_OWN_STREAM)}.get(folded(name.partition(".")[0]))
    if own is not None:  # a script's own options never come here
        argument = {"deadLetter": "dead_letter", "distinct": "distinct={column: number}"}.get(own, own)
        return f"option '{name}' is one of Plait's, which a program gives as the argument {argument}"
    known = KNOWN.get(folded(format_))
    if known is None or "." in name:
        return None
    refused = _REFUSED.get(folded(format_), {}).get(folded(name))
    if refused is not None:
        return f"option '{name}' {refused}"
    of_streams, of_tables = _apart(format_)
    only, other = (of_streams, of_tables) if is_stream else (of_tables, of_streams)
    options = {**known, **(_FILES if format_of(format_).reads_files else {}), **only}
    values = {folded(each): values for each, values in options.items()}.get(folded(name))
    if values is not None:
        return values.problem_of(name, value)
    if folded(name) in map(folded, other):
        kind, statement = ("stream", "CREATE TABLE") if is_stream else ("table", "CREATE STREAM")
        return f"option '{name}' has no effect on a {kind}; leave it out, or use {statement}"
    if folded(name) in folded(_WRITING).split():
        return f"option '{name}' is for writing {format_} and has no effect on reading it; leave it out"
    hint = did_you_mean(name, [*options, *(_OWN_STREAM if is_stream else _OWN_TABLE)])
    advice = hint if hint.startswith("; did") else "; leave it out, or correct its name"
    return f"{format_} has no option '{name}', which would be ignored{advice}"


def _apart(format_: str) -> tuple[Mapping[str, Values], Mapping[str, Values]]:
    """Return the options that only streams of a format have, and those that only tables have."""
    if format_of(format_).has_log:
        return _DELTA_STREAMS, _DELTA_TABLES
    return (_FILE_STREAMS, _FILE_TABLES) if format_of(format_).reads_files else ({}, {})


def reader_option_problems(
    format_: str, options: Iterable[tuple[str, str]], *, is_stream: bool, has_columns: bool
) -> list[tuple[str | None, str]]:
    """Return what is wrong with the options of a source, each with the option it is about as written; None where one
    is missing. `has_columns`: its columns are declared. The path of files is looked at elsewhere.
    """
    given = tuple(options)
    alone = ((name, reader_option_problem(format_, name, value, is_stream=is_stream)) for name, value in given)
    problems: list[tuple[str | None, str]] = [(name, problem) for name, problem in alone if problem is not None]
    return problems or combination_problems(format_, given, has_columns=has_columns)


__all__ = ["KNOWN", "reader_option_problem", "reader_option_problems"]
