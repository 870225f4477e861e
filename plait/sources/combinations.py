"""Options of sources that do not go together, or not without others: one table for what a format cannot do without,
one for options that exclude each other, and the charsets that files of lines cannot have as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from plait.spelling import folded

REQUIRED: Final[Mapping[str, tuple[tuple[tuple[str, ...], str], ...]]] = MappingProxyType(
    {
        "socket": ((("host",), "host 'localhost'"), (("port",), "port '9999'")),
        "rate-micro-batch": ((("rowsPerBatch",), "rowsPerBatch '1000'"),),
        "xml": ((("rowTag",), "rowTag 'row'"),),
        "kafka": (
            (("kafka.bootstrap.servers",), "kafka.bootstrap.servers 'host:9092'"),
            (("subscribe", "subscribePattern", "assign"), "subscribe 'topic'"),
        ),
        "jdbc": ((("url",), "url 'jdbc:...'"), (("dbtable", "query"), "dbtable 'name'")),
    }
)
"""By format: of each group one option is needed; with what to write. The path of files is looked at elsewhere."""

EXCLUSIVE: Final = (
    ("maxFilesPerTrigger", "maxBytesPerTrigger"),
    ("sep", "delimiter"),
    ("encoding", "charset"),
    ("subscribe", "subscribePattern", "assign"),
    ("dbtable", "query"),
    ("startingVersion", "startingTimestamp"),
    ("versionAsOf", "timestampAsOf"),
)
"""Of these Spark takes one: it fails on two, or takes no notice of the second."""

_OF_LINES: Final = ("csv", "json")
_MARKED: Final = ("utf-16", "utf-32")
_WIDE: Final = ("utf-16be", "utf-16le")
_NEEDING_LINE_SEPARATOR: Final = (*_WIDE, "iso-8859-1", "us-ascii")


_INFERRING: Final = """
    inferSchema samplingRatio prefersDecimal primitivesAsString preferDate inferTimestamp dropFieldIfAllNull mergeSchema
"""
"""What says how columns are found, where none are declared."""


def combination_problems(
    format_: str, options: Iterable[tuple[str, str]], *, has_columns: bool
) -> list[tuple[str | None, str]]:
    """Return what is wrong with options that are right each by itself: an option as written and why, None for one that
    is missing. `has_columns`: the columns are declared.
    """
    given = {folded(name): (name, value) for name, value in options}
    return [
        *_missing(format_, given),
        *_excluding(given),
        *_archiving(given),
        *_wide_lines(format_, given),
        *(_inferring(given) if has_columns else ()),
    ]


def _missing(format_: str, given: Mapping[str, tuple[str, str]]) -> Iterator[tuple[None, str]]:
    for names, example in REQUIRED.get(folded(format_), ()):
        if not any(folded(name) in given for name in names):
            yield None, f"{format_} needs the option {' or '.join(names)}; add OPTIONS ({example})"


def _excluding(given: Mapping[str, tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for names in EXCLUSIVE:
        folds = {folded(name) for name in names}
        both = [name for fold, (name, _) in given.items() if fold in folds]
        if len(both) > 1:
            first, second, *_ = both
            yield second, f"options '{first}' and '{second}' cannot be both set, Spark takes one; leave one of them out"


def _archiving(given: Mapping[str, tuple[str, str]]) -> Iterator[tuple[str, str]]:
    name, value = given.get("cleansource", ("", ""))
    directory, _ = given.get("sourcearchivedir", (None, None))
    if value.lower() == "archive" and directory is None:
        yield name, f"option '{name}' is 'archive'; add sourceArchiveDir 'directory' to say where files are to go"
    if value.lower() != "archive" and directory is not None:
        yield directory, f"option '{directory}' has no effect without cleanSource 'archive'; add that, or leave it out"


def _inferring(given: Mapping[str, tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for option in _INFERRING.split():
        name, value = given.get(folded(option), (option, "false"))
        if value.lower() != "false":
            yield name, f"option '{name}' has no effect where columns are declared; leave it or the columns out"


def _wide_lines(format_: str, given: Mapping[str, tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield why lines cannot be told apart: Spark looks for the bytes of a line's end in UTF-8 unless it is told."""
    name, value = given.get("encoding", given.get("charset", ("", "utf-8")))
    if folded(format_) not in _OF_LINES or folded(given.get("multiline", ("", ""))[1]) == "true":
        return
    if folded(value) in _MARKED:
        advice = "add multiLine 'true', or say UTF-16LE or UTF-16BE and lineSep"
        yield name, f"option '{name}' is '{value}', in which Spark does not find the ends of lines; {advice}"
    elif "linesep" not in given and folded(value) in (_WIDE if folded(format_) == "csv" else _NEEDING_LINE_SEPARATOR):
        advice = "add lineSep with the character at the end of lines, or multiLine 'true'"
        yield name, f"option '{name}' is '{value}', in which Spark finds no ends of lines by itself; {advice}"


__all__ = ["EXCLUSIVE", "REQUIRED", "combination_problems"]
