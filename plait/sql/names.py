"""Names: how they are compared, quoted and suggested, and which ones a source or query may have."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_NAME = re.compile(r"[^\W\d]\w*")
_RESERVED = frozenset({"self", "sqlQuery", "args"})
_LONGEST = 100


def folded(name: str) -> str:
    """Return what makes names equal: Spark does not tell upper from lower case."""
    return name.casefold()


def backquoted(name: str) -> str:
    """Return the name in backquotes, backquotes inside doubled."""
    return "`" + name.replace("`", "``") + "`"


def naming_problem(what: str, name: str) -> str | None:
    """Say why a stream, table or query cannot be called so, or None. Names become directories and parameters."""
    if not _NAME.fullmatch(name):
        return (
            f"'{name}' cannot be the name of a {what}; use letters, digits and underscores, not starting with a digit"
        )
    if len(name) > _LONGEST:
        return f"the name of {what} '{name[:20]}...' has {len(name)} characters; use at most {_LONGEST}"
    if what != "query" and name in _RESERVED:
        return f"'{name}' is reserved and cannot be the name of a {what}; choose another"
    return None


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
