"""The files of a Delta table by its log: which commit added each, how many rows it says that they have, and of which
event times.

What a commit says of a file is in its line ``add``; ``dataChange`` is false where rows were only put into other files.
The rows of a file are in its statistics (``numRecords``, ``minValues``, ``maxValues``), a text of JSON, if the writer
has made them (protocol of Delta, "Add File" and "Per-file Statistics").
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any
from urllib.parse import unquote

import pyarrow.fs as pafs
import pyarrow.parquet as pq

from plait.sinks.delta_log import actions_of, commits_of
from plait.sinks.staging import locate


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedFile:
    """A file that a commit has added; `name`: the last part of its path, which no other file of the table has.
    `version`: None where only a checkpoint of the log tells of it. `order`: when it was made, and its path. `rows` and
    the event times between which they lie are None where nothing says that.
    """

    name: str
    version: int | None
    is_new: bool
    bytes: int
    order: tuple[int, str] = (0, "")
    rows: int | None = None
    first_us: int | None = None
    last_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLog:
    """What is left of a table's log. `first`: the version of its first commit that is left; `added`: in the order of
    commits; `removed`: the names of files that a commit has taken out.
    """

    first: int
    last: int
    added: tuple[AddedFile, ...]
    removed: frozenset[str]


def read_log(table: str, time: str | None = None) -> TableLog:
    """Return what is left of the commits of a table. `time`: the column of event times. Raises ValueError, KeyError or
    TypeError for a log in a form unknown, OSError for one that cannot be read.
    """
    filesystem, log = locate(posixpath.join(table, "_delta_log"))
    commits = commits_of(filesystem, log)
    if not commits:
        raise ValueError(f"'{table}' has no log of commits")
    added: list[AddedFile] = []
    removed: set[str] = set()
    for version, path in commits:
        for action in actions_of(filesystem, path, "add", "remove"):
            if "add" in action:
                added.append(_added(action["add"], version, time))
            elif "remove" in action:
                removed.add(_name(action["remove"]["path"]))
    known = {file.name for file in added}  # a checkpoint has those of its own commit, which may be left beside it
    before = [file for file in _from_checkpoint(filesystem, log, commits[0][0], time) if file.name not in known]
    return TableLog(first=commits[0][0], last=commits[-1][0], added=(*before, *added), removed=frozenset(removed))


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """How far a stream of a table has come: all versions before `version`, and of that one what comes up to and with
    number `index`, nothing if that is negative. `in_snapshot`: it has begun with the table as it was with that version,
    whose files it reads in the order they were made in; else a version's files are those of its commit, in the order
    they stand there.
    """

    version: int
    index: int
    in_snapshot: bool

    def has_read(self, log: TableLog) -> set[str]:
        """Return the names of the files it has read.

        >>> files = [AddedFile(name=f"f{n}", version=n // 2, is_new=True, bytes=1, order=(-n, "")) for n in range(4)]
        >>> log = TableLog(first=0, last=1, added=tuple(files), removed=frozenset())
        >>> [sorted(Position(version=1, index=0, in_snapshot=each).has_read(log)) for each in (False, True)]
        [['f0', 'f1', 'f2'], ['f3']]
        """
        known = [(log.first - 1 if file.version is None else file.version, file) for file in log.added]
        last = [
            file for version, file in known if version <= self.version and (version == self.version or self.in_snapshot)
        ]
        if self.in_snapshot:
            last.sort(key=lambda file: file.order)
        before = [] if self.in_snapshot else [file for version, file in known if version < self.version]
        return {file.name for file in (*before, *last[: max(self.index + 1, 0)])}


def position_of(offset: str | None) -> Position | None:
    """Return what an offset of Spark's says; None for one of another kind.

    >>> position_of('{"sourceVersion":1,"reservoirVersion":3,"index":-1,"isStartingVersion":false}')
    Position(version=3, index=-1, in_snapshot=False)
    """
    try:
        told = json.loads(offset or "")
        return Position(
            version=int(told["reservoirVersion"]), index=int(told["index"]), in_snapshot=bool(told["isStartingVersion"])
        )
    except (ValueError, KeyError, TypeError):
        return None


def _from_checkpoint(filesystem: pafs.FileSystem, log: str, first: int, time: str | None) -> Iterator[AddedFile]:
    """Yield the files that were there before the first commit that is left."""
    path = posixpath.join(log, "_last_checkpoint")
    if first == 0 or filesystem.get_file_info(path).type != pafs.FileType.File:
        return
    infos = filesystem.get_file_info(pafs.FileSelector(log))
    names = (info.path for info in infos if ".checkpoint." in info.base_name and info.base_name.endswith(".parquet"))
    oldest = min((posixpath.basename(name)[:20] for name in names), default=None)
    for info in infos:
        if oldest is not None and info.base_name.startswith(f"{oldest}.checkpoint."):
            with filesystem.open_input_file(info.path) as file:
                actions = pq.read_table(file, columns=["add"]).column("add").drop_null().to_pylist()
            yield from (_added(action, None, time) for action in actions)


def _added(action: dict[str, Any], version: int | None, time: str | None) -> AddedFile:
    told = action.get("stats")
    statistics: dict[str, Any] = json.loads(told) if told else {}
    return AddedFile(
        name=_name(action["path"]),
        version=version,
        is_new=version is None or bool(action.get("dataChange", True)),
        bytes=int(action["size"]),
        order=(int(action.get("modificationTime", 0)), str(action["path"])),
        rows=statistics.get("numRecords"),
        first_us=_us((statistics.get("minValues") or {}).get(time)),
        last_us=_us((statistics.get("maxValues") or {}).get(time)),
    )


def _name(path: str) -> str:
    return posixpath.basename(unquote(path))


def _us(value: object) -> int | None:
    """Return an instant as statistics have it in microseconds since 1970, None for what is none.

    >>> _us("2026-01-01T10:00:00.250Z")
    1767261600250000
    """
    try:
        found = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except ValueError:
        return None
    since = (found if found.tzinfo else found.replace(tzinfo=timezone.utc)) - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


__all__ = ["AddedFile", "Position", "TableLog", "position_of", "read_log"]
