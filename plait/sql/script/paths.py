"""Paths in options: made absolute, and looked at without Spark."""

from __future__ import annotations

import glob
import os
import re
from urllib.parse import unquote, urlparse

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_GLOB = re.compile(r"[*?\[{]")


class UnreadableFileError(Exception):
    """No columns can be found where there should be some. The message says where, why, and what to do."""


def absolute(path: str, base: str) -> str:
    """Return the path seen from directory `base`; a URI with a scheme stays as it is."""
    if _SCHEME.match(path):
        return path
    return os.path.normpath(os.path.join(os.path.abspath(base), path))


def local(path: str) -> str | None:
    """Return the path in the local file system, None if it lies elsewhere."""
    if not _SCHEME.match(path):
        return path
    return unquote(urlparse(path).path) if path.lower().startswith("file:") else None


def input_problem(path: str, *, is_stream: bool = False) -> str | None:
    """Say why a local path (Hadoop globs allowed) cannot be read, or None. Remote paths are taken on trust."""
    here = local(path)
    if here is None:
        return None
    if _GLOB.search(here):
        return None if "{" in here or glob.glob(here) else f"nothing matches the path '{path}'; correct the pattern"
    if not os.path.exists(here):
        return f"the path '{path}' does not exist; correct it, or create it first"
    if is_stream and not os.path.isdir(here):
        return f"the path '{path}' is a file; a stream reads a directory, into which files arrive: name the directory"
    needed = os.R_OK | os.X_OK if os.path.isdir(here) else os.R_OK
    return (
        None if os.access(here, needed) else f"no permission to read '{path}'; change its mode or choose another path"
    )


def output_problem(path: str) -> str | None:
    """Say why a local directory cannot be written to or made, or None. Remote paths are taken on trust."""
    here = local(path)
    if here is None:
        return None
    if "~" in here.split("/") and not os.path.isdir(here.split("~")[0] + "~"):
        return f"'~' in '{path}' would be a directory of this name and not your home; write the whole path"
    if os.path.exists(here) and not os.path.isdir(here):
        return f"'{path}' is a file, but a directory is written; choose another path"
    parent = here
    while not os.path.exists(parent):
        parent = os.path.dirname(parent)
    if not os.path.isdir(parent):
        return f"'{path}' cannot be made because '{parent}' is a file; choose another path"
    if not os.access(parent, os.W_OK | os.X_OK):
        return f"no permission to write to '{parent}'; change its mode or choose another path than '{path}'"
    return None


def data_files(path: str, ending: str = "") -> tuple[str, ...] | None:
    """Return the files Spark would read, sorted; None where only Spark knows (remote paths, globs, partitions)."""
    here = local(path)
    if here is None or _GLOB.search(here):
        return None
    if os.path.isfile(here):
        return (here,)
    files: list[str] = []
    for entry in sorted(os.scandir(here), key=lambda entry: entry.name) if os.path.isdir(here) else ():
        if entry.is_dir() and "=" in entry.name:
            return None
        if entry.is_file() and not entry.name.startswith(("_", ".")) and entry.name.endswith(ending):
            files.append(entry.path)
    return tuple(files)
