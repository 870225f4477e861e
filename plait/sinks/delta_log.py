"""What the log of a Delta table says of the batches that it has.

A commit of a table is a file of one JSON object a line, ``_delta_log/<version>.json``; now and then all that came
before is put together in Parquet, and ``_last_checkpoint`` says of which version. A line ``txn`` says which was the
last version of its own that an application has written (protocol of Delta, "Transaction Identifiers"); what it said of
it besides, its mark, stands in the line ``commitInfo`` of the same commit, and not in Parquet.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from typing import Any

import pyarrow.fs as pafs
import pyarrow.parquet as pq

from plait.errors import SinkError
from plait.sinks.kind import Note
from plait.sinks.staging import locate

_COMMIT = re.compile(r"(\d{20})\.json")


def last_transaction(table: str, application: str, since: int = 0) -> Note | None:
    """Return the last version that an application has written to a table, None if it has written none; with its mark,
    if a commit that is left tells that and the version is not before `since`. Raises SinkError for a log that cannot be
    understood, OSError for one that cannot be read.
    """
    filesystem, log = locate(posixpath.join(table, "_delta_log"))
    try:
        version, known = _checkpoint(filesystem, log, application)
        commits = commits_of(filesystem, log)
        last = None if known is None else Note(batch=known, mark=None)
        after = (_noted(filesystem, path, application) for number, path in reversed(commits) if number > version)
        found = next((note for note in after if note is not None), None)
        if found is not None or last is None or last.batch < since:
            return found or last
        # The commits that are put together in Parquet are left for a while.
        before = (_noted(filesystem, path, application) for number, path in reversed(commits) if number <= version)
        return next((note for note in before if note is not None and note.batch == last.batch), last)
    except (ValueError, KeyError, TypeError) as error:
        raise SinkError(f"the log of the Delta table '{table}' cannot be understood: {error}") from error


def _noted(filesystem: pafs.FileSystem, commit: str, application: str) -> Note | None:
    """Return what a commit says of an application, None if nothing."""
    batch, mark = None, None
    for action in actions_of(filesystem, commit, "txn", "commitInfo"):
        mark = action.get("commitInfo", {}).get("userMetadata", mark)
        if "txn" in action and action["txn"]["appId"] == application:
            batch = int(action["txn"]["version"])
    return None if batch is None else Note(batch=batch, mark=mark)


def _checkpoint(filesystem: pafs.FileSystem, log: str, application: str) -> tuple[int, int | None]:
    """Return the version of the last checkpoint of a table, -1 for none, and what it says of an application."""
    path = posixpath.join(log, "_last_checkpoint")
    if filesystem.get_file_info(path).type != pafs.FileType.File:
        return -1, None
    with filesystem.open_input_stream(path) as stream:
        said = json.loads(stream.read())
    version, parts = int(said["version"]), said.get("parts")
    if "v2Checkpoint" in said:
        raise ValueError("its checkpoints are of the second kind; set the property delta.checkpointPolicy to classic")
    names = [""] if parts is None else [f".{part:010}.{parts:010}" for part in range(1, parts + 1)]
    known = None
    for name in names:
        with filesystem.open_input_file(posixpath.join(log, f"{version:020}.checkpoint{name}.parquet")) as file:
            actions = pq.read_table(file, columns=["txn"]).column("txn").drop_null().to_pylist()
        known = next((int(action["version"]) for action in actions if action["appId"] == application), known)
    return version, known


def commits_of(filesystem: pafs.FileSystem, log: str) -> list[tuple[int, str]]:
    """Return versions and paths of the commits that are left, in order."""
    infos = filesystem.get_file_info(pafs.FileSelector(log, allow_not_found=True))
    return sorted((int(match[1]), info.path) for info in infos if (match := _COMMIT.fullmatch(info.base_name)))


def actions_of(filesystem: pafs.FileSystem, commit: str, *names: str) -> Iterator[dict[str, Any]]:
    """Yield the actions of a commit that have one of these names, and whatever else mentions one."""
    with filesystem.open_input_stream(commit) as stream:
        content = stream.read()
    mentions = [f'"{name}"'.encode() for name in names]
    return (json.loads(line) for line in content.splitlines() if any(each in line for each in mentions))


__all__ = ["actions_of", "commits_of", "last_transaction"]
