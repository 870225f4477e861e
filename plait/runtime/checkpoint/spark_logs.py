"""Spark's own logs in a checkpoint: which file is damaged, asked when Spark has failed and does not say it itself.

All of them are short texts: a line with the version, then JSON, in the offset log behind the name of a source. Spark
checks little of that, and tells what its JSON reader stumbled over, but not where.
"""

from __future__ import annotations

import json
import posixpath
import re

from plait.state.storage import Storage

_VERSION = re.compile(r"v\d+")
_NAMED = re.compile(r"^[^:{}\[\]\"\s]+:")
_LOGS = ("offsets", "commits", "sources")


def damaged_log(checkpoint: str) -> str | None:
    """Return the path of the newest file of Spark's logs that no Spark has written so; None if all look sound."""
    storage = Storage.open(posixpath.join(checkpoint, "spark"))
    if storage.exists("metadata") and not _is_json(_text(storage, "metadata")):
        return posixpath.join(checkpoint, "spark", "metadata")
    for log in _LOGS:
        entries = [path for path in _entries(storage, log) if not _is_entry(_text(storage, path))]
        if entries:
            return posixpath.join(checkpoint, "spark", max(entries, key=_number))
    return None


def damage_of(path: str) -> str:
    """Say that a file of Spark's logs is damaged, and what to do."""
    return (
        f"the file '{path}' in the checkpoint is damaged, as a loss of power may leave it: Spark cannot read "
        "its own log. Restore the checkpoint from a backup, or start over with a new checkpoint directory (state "
        "is rebuilt from what the sources still hold)."
    )


def _entries(storage: Storage, log: str) -> list[str]:
    """Return the entries of a log, ``<number>`` and ``<number>.compact``; those of sources lie a directory deeper."""
    return [file.path for file in storage.list(log, recursive=True) if _number(file.path) >= 0]


def _number(path: str) -> int:
    name = posixpath.basename(path).removesuffix(".compact")
    return int(name) if name.isdigit() else -1


def _text(storage: Storage, path: str) -> str | None:
    """Return the text of a file, None if it is none; some sources begin theirs with a zero byte."""
    try:
        return storage.read_bytes(path).removeprefix(b"\0").decode()
    except UnicodeDecodeError:
        return None


def _is_entry(text: str | None) -> bool:
    if text is None:
        return False
    version, *lines = text.rstrip("\n").split("\n")
    bodies = (_NAMED.sub("", line, count=1) for line in lines)
    return _VERSION.fullmatch(version) is not None and all(body in ("", "-") or _is_json(body) for body in bodies)


def _is_json(text: str | None) -> bool:
    try:
        json.loads(text or "")
    except ValueError:
        return False
    return True


__all__ = ["damage_of", "damaged_log"]
