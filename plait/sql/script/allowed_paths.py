"""Where somebody else than who wrote the script may write: below the paths that it allows, and nowhere else."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from plait.sql.script.paths import absolute

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_ODD: Final = re.compile(r"[\x00-\x1f\x7f%\\*?\[\]{}#@;|<>\"']")
"""Escapes, wildcards and what shells or terminals take for something else: no path needs them, and each is read
otherwise by one file system or another.
"""


def read_allowed_paths(value: str, base: str) -> tuple[str, ...]:
    """Return the paths of ``SET plait.allow_paths = 'out, s3://bucket/results'``, absolute as seen from `base`."""
    return tuple(absolute(path.strip(), base) for path in value.split(",") if path.strip())


def path_problem(path: str, allowed: Iterable[str]) -> str | None:
    """Say why nothing may be written to an absolute path or a URI, or None. Links are followed, as they would be by
    who writes.
    """
    if _ODD.search(path):
        return "it has characters that have no place in it; use letters, digits, '.', '-', '_' and '/'"
    if any(_lies_within(path, each) for each in allowed):
        return None
    return "the script does not allow it; name a path below one of SET plait.allow_paths, or add it there"


def _lies_within(path: str, allowed: str) -> bool:
    if bool(_SCHEME.match(path)) != bool(_SCHEME.match(allowed)):
        return False
    if not _SCHEME.match(path):
        if ":" in path:
            return False
        inner, outer = os.path.realpath(path), os.path.realpath(allowed)
        return os.path.commonpath([inner, outer]) == outer
    mine, theirs = urlsplit(path), urlsplit(allowed)
    if (mine.scheme.lower(), mine.netloc) != (theirs.scheme.lower(), theirs.netloc):
        return False
    steps, whole = mine.path.strip("/").split("/"), theirs.path.strip("/")
    if any(step in ("", ".", "..") for step in steps):
        return False
    needed = whole.split("/") if whole else []
    return steps[: len(needed)] == needed


__all__ = ["path_problem", "read_allowed_paths"]
