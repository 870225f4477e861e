"""What options accept; `tests/spark/test_option_values_spark.py` asks Spark the same."""

from __future__ import annotations

import pytest

from plait.sources.options import reader_option_problem, reader_option_problems

GOOD = {
    "encoding": ("UTF-8", "iso-8859-1", "us-ascii"),
    "sep": (";", "||", "\t", "\\t", "\\\\"),
    "quote": ("", "'", "\\"),
    "comment": ("#", ""),
    "lineSep": ("\n", "ab"),
    "mode": ("PERMISSIVE", "FailFast"),
    "header": ("TRUE", "false"),
    "maxCharsPerColumn": ("-1", "100"),
    "maxColumns": ("2000",),
    "samplingRatio": ("0.5", "1"),
    "unescapedQuoteHandling": ("skip_value", "RAISE_ERROR"),
    "timeZone": ("UTC", "PST", "+01:00", "GMT+1", "Europe/Berlin", "+1", "UTC+01:00", "EST5EDT"),
    "modifiedAfter": ("2020-01-01", "2020-01-01T00:00:00", "2020-01-01 00:00:00"),
    "timestampFormat": (
        *("yyyy-MM-dd'T'HH:mm:ss[.SSSSSS][XXX]", "dd.MM.", "[yyyy", "''", "", "yyyy;", "VV", "OOOO", "zzzz", "ZZZZZ"),
        *("xxxxx", "G", "QQQ", "a", "kk", "SSSSSSSSS", "yyyyyy", "MMMM"),
    ),
}
"""Of a CSV table."""

BAD = {
    "encoding": ("utf8", "latin1", "ascii", "cp1252", "UTF_8", "UTF-32LE", "", "x"),
    "sep": ("", "\\", "\\x", "\\u0001"),
    "quote": ("''",),
    "escape": ("ab",),
    "comment": ("##",),
    "charToEscapeQuoteEscaping": ("ab",),
    "lineSep": ("", "abc"),
    "header": ("yes", "1", ""),
    "columnPruning": ("x",),
    "maxCharsPerColumn": ("0", "-2", "x"),
    "maxColumns": ("0", "-1", "x"),
    "inputBufferSize": ("0", "-1", "x"),
    "samplingRatio": ("x",),
    "unescapedQuoteHandling": ("x",),
    "timeZone": ("x", "Mars/X"),
    "modifiedAfter": ("x",),
    "pathGlobFilter": ("[", "{a,b"),
    "timestampFormat": (
        *("YYYY-MM-dd", "yyyy]", "u", "W", "w", "zzzzz", "ZZZZZZ", "yyyyyyy", "MMMMM", "LLLLL", "ddd", "DDDD", "EEEE"),
        *("EEE MMM dd", "F", "aa", "hhh", "SSSSSSSSSS", "GGGGG", "{yyyy}", "yyyy#", "%Y-%m-%d"),
    ),
}
"""Of a CSV table: Spark fails on these."""

SILENT = {
    "mode": ("x", "", "drop"),
    "samplingRatio": ("0", "2"),
    "locale": ("x", "en_US", ""),
    "timestampFormat": (
        *("foo", "yyyy-MM-ddTHH:mm:ss", "yyyy-MM-dd'T", "e", "c", "n", "N", "A", "B", "p", "V", "VVV", "OO", "XXXXXX"),
        *("QQQQQ", "I", "T", "unix"),
    ),
}
"""Of a CSV table: Spark takes the default instead, or reads nothing."""


def problem(name: str, value: str) -> str | None:
    return reader_option_problem("csv", name, value, is_stream=False)


@pytest.mark.parametrize("name", GOOD)
def test_what_spark_takes_is_accepted(name: str) -> None:
    assert [(value, problem(name, value)) for value in GOOD[name] if problem(name, value)] == []


@pytest.mark.parametrize(("name", "values"), [*BAD.items(), *SILENT.items()])
def test_what_spark_fails_on_or_overlooks_is_refused(name: str, values: tuple[str, ...]) -> None:
    assert [value for value in values if problem(name, value) is None] == []
    assert all(f"option '{name}' is '{value}'" in str(problem(name, value)) for value in values)


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("YYYY", "where the letter Y means nothing to Spark; use y for the year; expected a pattern such as"),
        ("ddd", "the letter d stands 3 times; it may stand 1 or 2 times"),
        ("VVV", "the letter V stands 3 times; it may stand 2 times"),
        ("OO", "it may stand 1 or 4 times"),
        ("yyyy]", "a ] closes nothing"),
        ("yyyy'", "a quote is never closed"),
        ("E", "the letter E is for writing only"),
        ("{", "{ is reserved"),
    ],
)
def test_a_pattern_is_told_what_is_wrong_with_it(pattern: str, says: str) -> None:
    assert says in str(problem("dateFormat", pattern))


def test_an_option_that_needs_another_is_told_so() -> None:
    ((option, says),) = reader_option_problems("csv", [("cleanSource", "ARCHIVE")], is_stream=True, has_columns=False)
    assert (option, "add sourceArchiveDir" in says) == ("cleanSource", True)
    both = [("cleanSource", "archive"), ("sourceArchiveDir", "done")]
    assert reader_option_problems("csv", both, is_stream=True, has_columns=False) == []
