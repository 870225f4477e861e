"""What the log of a Delta table says of the batches that it has.

A commit of a table is a file of one JSON object a line, ``_delta_log/<version>.json``; now and then all that came
before is put together in Parquet, and ``_last_checkpoint`` says of which version. A line ``txn`` says which was the
last version of its own that an application has written (protocol of Delta, "Transaction Identifiers").
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator

import pyarrow.fs as pafs
import pyarrow.parquet as pq

from plait.errors import SinkError
from plait.sinks.staging import locate

_COMMIT = re.compile(r"(\d{20})\.json")


def last_transaction(table: str, application: str) -> int | None:
    """Return the last version that an application has written to a table, None if it has written none. Raises
    SinkError for a log that cannot be understood, OSError for one that cannot be read.
    """
    filesystem, log = locate(posixpath.join(table, "_delta_log"))
    try:
        version, known = _checkpoint(filesystem, log, application)
        for content in _commits(filesystem, log, version):
            for line in content.splitlines():
                action = json.loads(line).get("txn") if b'"txn"' in line else None
                if action is not None and action["appId"] == application:
                    known = int(action["version"])
    except (ValueError, KeyError, TypeError) as error:
        raise SinkError(f"the log of the Delta table '{table}' cannot be understood: {error}") from error
    return known


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


def _commits(filesystem: pafs.FileSystem, log: str, after: int) -> Iterator[bytes]:
    """Yield the commits of later versions, in order."""
    infos = filesystem.get_file_info(pafs.FileSelector(log, allow_not_found=True))
    commits = sorted((int(match[1]), info.path) for info in infos if (match := _COMMIT.fullmatch(info.base_name)))
    for version, path in commits:
        if version > after:
            with filesystem.open_input_stream(path) as stream:
                yield stream.read()


__all__ = ["last_transaction"]
