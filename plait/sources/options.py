"""The options that Spark's own readers know, by format: Spark ignores all others without a word.

Taken from Spark 4.2 (`CSVOptions`, `JSONOptions`, `FileStreamOptions` and so on). Of formats that are not here nothing
is known, so nothing is refused; nor are names with a dot, which go to Hadoop (``fs.s3a.endpoint``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from plait.sources.formats import format_of
from plait.spelling import did_you_mean, folded

_FILES: Final = """
    path pathGlobFilter recursiveFileLookup basePath ignoreCorruptFiles ignoreMissingFiles ignoreInvalidPartitionPaths
"""
_FILE_STREAMS: Final = """
    maxFilesPerTrigger maxBytesPerTrigger maxFileAge latestFirst fileNameOnly sourceArchiveDir cleanSource
    maxCachedFiles discardCachedInputRatio
"""
_FILE_TABLES: Final = "modifiedBefore modifiedAfter"
_PARSED: Final = """
    mode columnNameOfCorruptRecord locale dateFormat timestampFormat timestampNTZFormat timeFormat timeZone
    enableDateTimeParsingFallback multiLine samplingRatio encoding charset lineSep singleVariantColumn
"""
_CSV: Final = """
    header sep delimiter quote escape comment inferSchema ignoreLeadingWhiteSpace ignoreTrailingWhiteSpace preferDate
    enforceSchema maxColumns maxCharsPerColumn charToEscapeQuoteEscaping emptyValue nullValue nanValue positiveInf
    negativeInf unescapedQuoteHandling inputBufferSize columnPruning
"""
_JSON: Final = """
    primitivesAsString prefersDecimal allowComments allowUnquotedFieldNames allowSingleQuotes allowNumericLeadingZeros
    allowNonNumericNumbers allowBackslashEscapingAnyCharacter allowUnquotedControlChars dropFieldIfAllNull
    inferTimestamp
"""
_XML: Final = """
    rowTag excludeAttribute attributePrefix valueTag nullValue ignoreSurroundingSpaces rowValidationXSDPath
    wildcardColName ignoreNamespace inferSchema preferDate prefersDecimal useLegacyXMLParser
"""
_WRITING: Final = "compression codec quoteAll escapeQuotes extension ignoreNullFields pretty sortKeys rootTag"

KNOWN: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "csv": (*_PARSED.split(), *_CSV.split()),
        "json": (*_PARSED.split(), *_JSON.split()),
        "xml": (*_PARSED.split(), *_XML.split()),
        "parquet": ("mergeSchema", "datetimeRebaseMode", "int96RebaseMode"),
        "orc": ("mergeSchema",),
        "text": ("wholetext", "lineSep", "encoding"),
        "binaryfile": (),
        "rate": ("rowsPerSecond", "rampUpTime", "numPartitions"),
        "rate-micro-batch": ("rowsPerBatch", "numPartitions", "startTimestamp", "advanceMillisPerBatch"),
        "socket": ("host", "port", "includeTimestamp", "numPartitions"),
    }
)
"""Names by format in lower case, without those that all files have."""

_OWN_STREAM: Final = ("idle", "deadLetter", "keep", "placement", "rate", "rows")
_OWN_TABLE: Final = ("rows",)

_SWITCHES: Final = """
    header inferSchema enforceSchema multiLine ignoreLeadingWhiteSpace ignoreTrailingWhiteSpace preferDate
    recursiveFileLookup ignoreCorruptFiles ignoreMissingFiles mergeSchema wholetext latestFirst fileNameOnly
    primitivesAsString prefersDecimal allowComments allowUnquotedFieldNames allowSingleQuotes includeTimestamp
    allowNumericLeadingZeros allowNonNumericNumbers inferTimestamp ignoreNamespace ignoreSurroundingSpaces
    allowBackslashEscapingAnyCharacter allowUnquotedControlChars dropFieldIfAllNull ignoreInvalidPartitionPaths
    excludeAttribute enableDateTimeParsingFallback columnPruning useLegacyXMLParser
"""
_COUNTS: Final = "maxFilesPerTrigger numPartitions rowsPerSecond rowsPerBatch maxColumns port"
_CHARACTERS: Final = "quote escape comment charToEscapeQuoteEscaping"
_TEXTS: Final = "sep delimiter lineSep"
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "mode": ("permissive", "dropmalformed", "failfast"),
        "cleansource": ("off", "archive", "delete"),
        "datetimerebasemode": ("exception", "corrected", "legacy"),
        "int96rebasemode": ("exception", "corrected", "legacy"),
        "unescapedquotehandling": (
            "stop_at_closing_quote",
            "back_to_delimiter",
            "stop_at_delimiter",
            "skip_value",
            "raise_error",
        ),
        **dict.fromkeys(
            ("encoding", "charset"),
            ("utf-8", "iso-8859-1", "us-ascii", "utf-16", "utf-16be", "utf-16le", "utf-32"),
        ),
    }
)
_SHAPES: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "maxfileage": (r"-?\d{1,15}(us|ms|s|m|min|h|d)?", "a whole number and one of ms, s, m, h, d, such as 7d"),
        "maxbytespertrigger": (r"0*[1-9]\d{0,17}", "a whole number above zero"),
        "maxcachedfiles": (r"\d{1,9}", "a whole number of at least 0"),
        "discardcachedinputratio": (r"0?\.\d{0,8}[1-9]\d{0,8}|0*1(\.0*)?", "a share above 0, up to 1"),
        "samplingratio": (r"0?\.\d{0,8}[1-9]\d{0,8}|0*1(\.0*)?", "a share above 0, up to 1"),
        "maxcharspercolumn": (r"-1|0*[1-9]\d{0,8}", "a whole number above zero, or -1 for no limit"),
    }
)
"""By name in lower case: what values look like, and how that is said."""

_INFERRING: Final = """
    inferSchema samplingRatio prefersDecimal primitivesAsString preferDate inferTimestamp dropFieldIfAllNull mergeSchema
"""
"""What says how columns are found, where none are declared."""


def reader_option_problem(format_: str, name: str, value: str, *, is_stream: bool) -> str | None:
    """Say why Spark would ignore this option of a source, or choke on its value; None if it would not."""
    known = KNOWN.get(folded(format_))
    if known is None or "." in name:
        return None
    files = _FILES.split() if format_of(format_).reads_files else []
    only, other = (_FILE_STREAMS, _FILE_TABLES) if is_stream else (_FILE_TABLES, _FILE_STREAMS)
    names = [*known, *files, *(only.split() if files else ())]
    if folded(name) in map(folded, names):
        return _value_problem(name, value)
    if files and folded(name) in map(folded, other.split()):
        kind, statement = ("stream", "CREATE TABLE") if is_stream else ("table", "CREATE STREAM")
        return f"option '{name}' has no effect on a {kind}; leave it out, or use {statement}"
    if folded(name) in folded(_WRITING).split():
        return f"option '{name}' is for writing {format_} and has no effect on reading it; leave it out"
    hint = did_you_mean(name, [*names, *(_OWN_STREAM if is_stream else _OWN_TABLE)])
    advice = hint if hint.startswith("; did") else "; leave it out, or correct its name"
    return f"{format_} has no option '{name}', which would be ignored{advice}"


def clashing_option(options: Mapping[str, str], *, has_columns: bool) -> tuple[str, str] | None:
    """Return the option of a source that comes to nothing, or to an error, beside its other ones or declared columns
    (`has_columns`), and why; None if there is none.
    """
    names = {folded(name): name for name in options}
    files, size = names.get("maxfilespertrigger"), names.get("maxbytespertrigger")
    if files is not None and size is not None:
        later = max(files, size, key=list(names.values()).index)
        return later, f"options '{files}' and '{size}' cannot be both set, Spark fails on that; leave one of them out"
    cleaning, archive = names.get("cleansource"), names.get("sourcearchivedir")
    archives = cleaning is not None and options[cleaning].strip().lower() == "archive"
    if cleaning is not None and archives and archive is None:
        return cleaning, f"option '{cleaning}' is 'archive'; say where to with sourceArchiveDir 'directory'"
    if archive is not None and not archives:
        return archive, f"option '{archive}' has no effect without cleanSource 'archive'; add that, or leave it out"
    for name in _INFERRING.split() if has_columns else ():
        written = names.get(folded(name))
        if written is not None and options[written].strip().lower() != "false":
            return written, f"option '{written}' has no effect where columns are declared; leave it or the columns out"
    return None


def _value_problem(name: str, value: str) -> str | None:
    lower = folded(name)
    checks: tuple[tuple[bool, Callable[[str], bool], str], ...] = (
        (lower in folded(_SWITCHES).split(), lambda text: text in ("true", "false"), "true or false"),
        (
            lower in folded(_COUNTS).split(),
            lambda text: re.fullmatch(r"0*[1-9]\d{0,8}", text) is not None,
            "a whole number above zero",
        ),
        (lower in folded(_CHARACTERS).split(), lambda text: len(text) <= 1, "a single character"),
        (lower in folded(_TEXTS).split(), lambda text: bool(text), "at least one character"),
        (
            lower in _SHAPES,
            lambda text: re.fullmatch(_SHAPES[lower][0], text) is not None,
            _SHAPES.get(lower, ("", ""))[1],
        ),
        (lower in _CHOICES, lambda text: text in _CHOICES[lower], ", ".join(_CHOICES.get(lower, ()))),
    )
    for applies, accepts, expected in checks:
        if applies and not accepts(value.strip().lower() or value):
            return f"option '{name}' is '{value}'; expected {expected}"
    return None
