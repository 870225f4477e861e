"""What the options of Spark's readers and writers accept, one `Values` for each kind of value.

Spark takes any text for an option. One that it cannot use makes it fail in the first batch, or is taken for the default
without a word; both are told by these before anything is started. Taken from Spark 4.2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final
from zoneinfo import available_timezones


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """`expects` completes "expected ..."; `accepts` judges a value as written. `problem`: says more of what is wrong
    with one that is not accepted.
    """

    expects: str
    accepts: Callable[[str], bool]
    problem: Callable[[str], str | None] = lambda value: None

    def problem_of(self, name: str, value: str) -> str | None:
        """Say what is wrong with the value of option `name`, or None."""
        if self.accepts(value):
            return None
        more = self.problem(value)
        return f"option '{name}' is '{value}'{'' if more is None else f', where {more}'}; expected {self.expects}"


def words(*values: str) -> Values:
    """Return one of some words, whatever their case."""
    shown = values[0] if len(values) == 1 else " or ".join((", ".join(values[:-1]), values[-1]))
    known = frozenset(value.lower() for value in values)
    return Values(expects=shown, accepts=lambda value: value.lower() in known)


def _matching(pattern: str, expects: str) -> Values:
    compiled = re.compile(pattern)
    return Values(expects=expects, accepts=lambda value: compiled.fullmatch(value) is not None)


def _units(text: str) -> int:
    """Return how many characters a text has for the JVM, which counts some twice."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


ANY: Final = Values(expects="a text", accepts=lambda value: True)
SWITCH: Final = words("true", "false")
COUNT: Final = _matching(r"0*[1-9]\d{0,8}", "a whole number above zero")
LONG_COUNT: Final = _matching(r"0*[1-9]\d{0,17}", "a whole number above zero")
LIMIT: Final = _matching(r"\d{1,9}", "a whole number of at least 0")
LONG_LIMIT: Final = _matching(r"\d{1,18}", "a whole number of at least 0")
DELTA_SIZE: Final = _matching(r"0*[1-9]\d{0,17}[bkmgtBKMGT]?", "a number of bytes above zero, such as 64m")
DELTA_START: Final = _matching(r"\d{1,18}|latest", "the number of a version, or latest")
PORT: Final = Values(
    expects="a whole number from 1 to 65535",
    accepts=lambda value: re.fullmatch(r"\d{1,5}", value) is not None and 1 <= int(value) <= 65535,
)
COUNT_OR_NONE: Final = _matching(r"-1|0*[1-9]\d{0,8}", "a whole number above zero, or -1 for any number")
SHARE_ABOVE_ZERO: Final = _matching(r"0?\.0*[1-9]\d*|1(\.0*)?", "a share above 0, at most 1")
DURATION: Final = _matching(r"\d{1,15}(us|ms|s|m|min|h|d)?", "a number and its unit without a blank, such as 7d")
MOMENT: Final = _matching(
    r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?)?", "a time such as 2026-01-31T10:00:00"
)
CHARACTER: Final = Values(expects="a single character, or none", accepts=lambda value: _units(value) <= 1)
LOCALE: Final = _matching(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*", "a language, such as en-US")
TAG: Final = _matching(r"[^<>\s]+", "the name of an element, without angle brackets")
EXTENSION: Final = _matching(r"[A-Za-z]{3}", "three letters")
NAME: Final = Values(expects="a name", accepts=lambda value: value.strip() != "")
SEPARATOR: Final = _matching(
    r"(?s:[^\\]|\\[trbf\"'\\]|\\u0000)+",
    r"at least one character, with a backslash only in \t, \r, \b, \f, \\, \' or \"",
)
LINE_SEPARATOR: Final = Values(expects="at least one character, such as '\\n'", accepts=lambda value: value != "")
SHORT_LINE_SEPARATOR: Final = Values(
    expects="one character or two, such as '\\r\\n'", accepts=lambda value: 1 <= _units(value) <= 2
)
CHARSET: Final = words("UTF-8", "ISO-8859-1", "US-ASCII", "UTF-16", "UTF-16BE", "UTF-16LE", "UTF-32")
"""All that Spark takes; other names of the same (``utf8``, ``latin1``) it does not know."""

UTF_8: Final = words("UTF-8")


def _is_balanced(glob: str) -> bool:
    text = re.sub(r"\\.", "", glob)
    return text.count("[") == text.count("]") and text.count("{") == text.count("}")


GLOB: Final = Values(expects="a pattern such as *.csv, with each [ and { closed", accepts=_is_balanced)

_SHORT_ZONES: Final = """
    ACT AET AGT ART AST BET BST CAT CNT CST CTT EAT ECT EST HST IET IST JST MIT MST NET NST PLT PNT PRT PST SST VST Z UT
"""
_OFFSET: Final = r"[+-]\d{1,2}(:\d{1,2}(:\d{2})?)?|[+-]\d{4}(\d{2})?"


def _is_zone(value: str) -> bool:
    if re.fullmatch(rf"(UTC|GMT|UT)?({_OFFSET})", value) or value in _SHORT_ZONES.split():
        return True
    known = available_timezones()
    return value in known or not known


ZONE: Final = Values(expects="a time zone such as Europe/Berlin or +01:00", accepts=_is_zone)

_MOST: Final = {"G": 4, "y": 6, "M": 4, "L": 4, "d": 2, "D": 3, "Q": 4, "q": 4, "E": 4, "F": 1, "a": 1, "h": 2, "k": 2}
_MOST_OTHERS: Final = {"K": 2, "H": 2, "m": 2, "s": 2, "S": 9, "g": 19, "z": 4, "X": 5, "x": 5, "Z": 5}
_LETTERS: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType(
    {
        **{letter: tuple(range(1, most + 1)) for letter, most in (_MOST | _MOST_OTHERS).items()},
        "V": (2,),
        "O": (1, 4),
        "v": (1, 4),
    }
)
"""How often each letter may stand in a pattern for times."""

_OF_DATES: Final = frozenset("GyMLdDQqEFg")
_OF_TIMES: Final = frozenset("ahkKHmsS")
_ADVICE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Y": "use y for the year",
        "u": "use E for the day of the week",
        "e": "use E for the day of the week",
        "T": "write it as 'T', in quotes of its own",
        "%": "Java's letters are wanted: yyyy-MM-dd HH:mm:ss",
        "n": "use S for fractions of a second",
    }
)
_PIECE: Final = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|.", re.DOTALL)


@cache
def _pattern_problem(pattern: str, needed: frozenset[str], missing: frozenset[str]) -> str | None:
    """Say what Spark's formatter does not take in a pattern; None if it takes it. `needed`: the letters that what is
    written has values for, `missing`: those that what is read cannot have.
    """
    depth = 0
    for piece in (match[0] for match in _PIECE.finditer(pattern)):
        letter = piece[0]
        depth += (letter == "[") - (letter == "]")
        if depth < 0:
            return "a ] closes nothing"
        if piece == "'":
            return "a quote is never closed"
        if letter in "{}#":
            return f"{letter} is reserved; put it in quotes"
        if letter == "%":
            return f"% means nothing; {_ADVICE['%']}"
        if not (letter.isascii() and letter.isalpha()):
            continue
        if letter not in _LETTERS:
            return f"the letter {letter} means nothing to Spark; {_ADVICE.get(letter, 'put plain text in quotes')}"
        if len(piece) not in _LETTERS[letter]:
            return f"the letter {letter} stands {len(piece)} times; it may stand {_times(_LETTERS[letter])}"
        if letter in missing:
            return f"the letter {letter} is for writing only; leave it out"
        if depth == 0 and needed and letter not in needed:
            return f"the letter {letter} says what such a value has not got; leave it out"
    return None


def _times(counts: tuple[int, ...]) -> str:
    if len(counts) == 1:
        return "once" if counts == (1,) else f"{counts[0]} times"
    return f"{counts[0]} or {counts[1]} times" if len(counts) == 2 else f"up to {counts[-1]} times"


def _pattern(needed: frozenset[str] = frozenset(), missing: frozenset[str] = frozenset()) -> Values:
    def problem(value: str) -> str | None:
        return _pattern_problem(value, needed, missing)

    return Values(
        expects="a pattern such as yyyy-MM-dd'T'HH:mm:ss",
        accepts=lambda value: problem(value) is None,
        problem=problem,
    )


READ_PATTERN: Final = _pattern(missing=frozenset("EF"))
"""A pattern to read dates or times of files with."""

PARSED_PATTERN: Final = _pattern(missing=frozenset("EFQq"))
"""A pattern that a function reads texts with."""

WRITTEN_TIMESTAMP: Final = _pattern()
WRITTEN_NTZ: Final = _pattern(needed=_OF_DATES | _OF_TIMES)
WRITTEN_DATE: Final = _pattern(needed=_OF_DATES)
WRITTEN_TIME: Final = _pattern(needed=_OF_TIMES)
