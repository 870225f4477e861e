"""Names: how they are compared, quoted and suggested, and which ones a source or query may have."""

from __future__ import annotations

import re

from plait.spelling import backquoted, did_you_mean, folded

_NAME = re.compile(r"[^\W\d]\w*")
_RESERVED = frozenset({"self", "sqlQuery", "args"})
_LONGEST = 100


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


def doubled(text: str) -> str:
    """Return a piece of what Spark is told with its braces doubled: single ones stand around names of relations."""
    return text.replace("{", "{{").replace("}", "}}")


__all__ = ["backquoted", "did_you_mean", "doubled", "folded", "naming_problem"]
