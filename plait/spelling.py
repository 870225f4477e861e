"""How names are compared and suggested wherever users write some, and how things are counted in sentences."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def folded(name: str) -> str:
    """Return what makes names equal: Spark does not tell upper from lower case."""
    return name.casefold()


def backquoted(name: str) -> str:
    """Return the name in backquotes, backquotes inside doubled."""
    return "`" + name.replace("`", "``") + "`"


def quoted(text: str) -> str:
    """Return a text as Spark SQL reads it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?``, or the names there are, or nothing if there are none."""
    names = list(dict.fromkeys(known))
    by_fold = {folded(candidate): candidate for candidate in names}
    close = difflib.get_close_matches(folded(name), by_fold, n=1, cutoff=0.6)
    if close:
        return f"; did you mean '{by_fold[close[0]]}'?"
    if not names:
        return ""
    listed = ", ".join(f"'{candidate}'" for candidate in names[:12]) + (", ..." if len(names) > 12 else "")
    return f"; there is {listed}" if len(names) == 1 else f"; there are {listed}"


def plural(number: int, noun: str, nouns: str | None = None) -> str:
    """Return a number with its noun.

    >>> plural(1, "batch", "batches"), plural(2_000, "row")
    ('1 batch', '2,000 rows')
    """
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"
