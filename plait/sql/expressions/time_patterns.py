"""Patterns for dates and times in calls such as ``to_timestamp(s, 'yyyy-MM-dd')``, judged before anything is started:
Spark looks at one when it reads the first row, and fails then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from plait.option_values import PARSED_PATTERN, WRITTEN_TIMESTAMP, Values
from plait.sql.lexis.tokens import Token, depths, split

_READING: Final = """
    to_timestamp to_timestamp_ntz to_timestamp_ltz try_to_timestamp to_date try_to_date unix_timestamp
    to_unix_timestamp
"""
_WRITING: Final = "date_format from_unixtime"

PATTERNS: Final[Mapping[str, Values]] = MappingProxyType(
    {
        **dict.fromkeys(_READING.split(), PARSED_PATTERN),
        **dict.fromkeys(_WRITING.split(), WRITTEN_TIMESTAMP),
    }
)
"""What the second argument may be, by function."""


def wrong_patterns(tokens: Sequence[Token]) -> Iterator[tuple[Token, str]]:
    """Yield (pattern, what is wrong with it) for every pattern that is a literal."""
    for index, (name, opening) in enumerate(pairwise(tokens)):
        values = PATTERNS.get(name.value.lower()) if name.kind in ("word", "quoted") else None
        if values is None or not opening.is_symbol("(") or (index and tokens[index - 1].is_symbol(".")):
            continue
        arguments = _arguments(tokens[index + 2 :])
        if len(arguments) != 2 or len(arguments[1]) != 1 or arguments[1][0].kind != "string":
            continue
        pattern = arguments[1][0]
        if not values.accepts(pattern.value):
            why = values.problem(pattern.value)
            yield pattern, f"{name.value}() has no pattern '{pattern.value}': {why}; expected {values.expects}"


def _arguments(behind: Sequence[Token]) -> list[tuple[Token, ...]]:
    """Return the arguments of a call; `behind`: the tokens after its opening parenthesis."""
    closes = next((at for at, depth, token in depths(behind) if depth < 0 and token.is_symbol(")")), None)
    if closes is None:
        return []
    inside = behind[:closes]
    return split(inside, [at for at, depth, token in depths(inside) if depth == 0 and token.is_symbol(",")])
