"""Patterns whose matching can take for ever: told by how they are built, since nothing can stop Java's matcher.

What is let pass takes at most a small power of the length of a text. The other way round nothing is promised: harmless
patterns are refused too, where telling them apart would take an analysis of what their parts match.
"""

from __future__ import annotations

import re
from typing import Final

MOST_CHARACTERS: Final = 500
MOST_UNBOUNDED: Final = 3
MOST_CHOICES: Final = 6
MOST_PERCENTS: Final = 4
"""Each of them is another factor, the length of the text, or two."""

_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_COUNTS = re.compile(r"\{(\d{1,9})(,(\d{0,9}))?\}")
_REFERENCE = re.compile(r"\\(?:[1-9]|k<)")
_ODD_GROUP = re.compile(r"\(\?(?!i?[:)]|<\w)")
_HEAD = re.compile(r"\((?:\?(?:<\w+>|i?:?))?")
_QUOTED = re.compile(r"\\[QE]")


def pattern_problem(pattern: str) -> str | None:
    """Say why a regular expression of Java's may take for ever on some text, or None.

    >>> pattern_problem("^[a-z]+@[a-z.]+$")
    >>> pattern_problem("(a+)+$")
    'a part that is repeated has a repetition or a choice in it'
    """
    if len(pattern) > MOST_CHARACTERS:
        return f"it is longer than {MOST_CHARACTERS} characters"
    plain = _CLASS.sub("x", pattern)
    if _REFERENCE.search(plain):
        return "it refers back to what a group has matched"
    if _ODD_GROUP.search(plain):
        return "it looks ahead or behind, or sets flags other than (?i)"
    if _QUOTED.search(plain):
        return r"it quotes with \Q and \E: put a \ before each character"
    return _Structure().problem(plain)


def like_problem(pattern: str) -> str | None:
    """Say why a pattern of LIKE may take long, or None: each of its % may stand for any stretch of the text."""
    if len(pattern) > MOST_CHARACTERS:
        return f"it is longer than {MOST_CHARACTERS} characters"
    return None if pattern.count("%") <= MOST_PERCENTS else f"it has more than {MOST_PERCENTS} %"


class _Structure:
    """Follows a pattern without classes from left to right. `varies`: for each group that is open, and the whole,
    whether something in it can match in several ways.
    """

    def __init__(self) -> None:
        self.varies = [False]
        self.unbounded = self.choices = 0

    def problem(self, pattern: str) -> str | None:
        position, closed = 0, False
        while position < len(pattern):
            character = pattern[position]
            counts = _COUNTS.match(pattern, position) if character == "{" else None
            if character in "*+?" or counts is not None:
                if self._repeats(character, counts) and closed:
                    return "a part that is repeated has a repetition or a choice in it"
                position = position + 1 if counts is None else counts.end()
                position += pattern[position : position + 1] in ("?", "+") and position < len(pattern)
                closed = False
                continue
            closed = self._step(character)
            position = _after_group_head(pattern, position) if character == "(" else position + 1
            position += character == "\\"
        if self.unbounded > MOST_UNBOUNDED:
            return f"it has more than {MOST_UNBOUNDED} repetitions without an end"
        return None if self.choices <= MOST_CHOICES else f"it has more than {MOST_CHOICES} choices"

    def _step(self, character: str) -> bool:
        """Go on by one character; tell whether it closes a group in which something varies."""
        if character == "(":
            self.varies.append(False)
        elif character == "|":
            self.varies[-1] = True
            self.choices += 1
        elif character == ")" and len(self.varies) > 1:
            inner = self.varies.pop()
            self.varies[-1] |= inner
            return inner
        return False

    def _repeats(self, character: str, counts: re.Match[str] | None) -> bool:
        """Note a quantifier; tell whether what stands before it may come more than once."""
        least = 0 if counts is None else int(counts[1])
        most = {"*": None, "+": None, "?": 1}.get(character, least)
        if counts is not None and counts[2] is not None:
            most = int(counts[3]) if counts[3] else None
        self.varies[-1] |= most != least
        self.unbounded += most is None or (most != least and most > 1)
        self.choices += most == 1 and least == 0
        return most is None or most > 1


def _after_group_head(pattern: str, position: int) -> int:
    """Return where a group's own pattern begins: after ``(``, ``(?:`` or ``(?<name>``."""
    head = _HEAD.match(pattern, position)
    return position + 1 if head is None else head.end()


__all__ = ["like_problem", "pattern_problem"]
