"""When the rows of a batch arrived: the files it read and when each was last changed, by Spark's log of each source.

Of other sources than files, and of sessions whose streams have no names, nobody can tell.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field

from plait.errors import PlaitError
from plait.runtime.checkpoint.offsets import offsets_at
from plait.sources import spark_name
from plait.state.storage import Storage
from plait.stats.latency import Arrived

_MOST_BYTES = 4 << 20
"""Now and then Spark writes all that a source has ever read into one entry, what is new last: no more of it is read."""


@dataclass(slots=True)
class Arrivals:
    """Reads the logs of one run, batch by batch."""

    checkpoint: str
    _before: tuple[int, Mapping[str, str]] | None = field(default=None)

    def of_batch(self, batch: int, rows: Mapping[str, int]) -> tuple[list[Arrived], frozenset[str]]:
        """Return when how many of the batch's rows arrived, each file with an equal part of its stream's; and the
        streams with rows of which that is not known.
        """
        try:
            before, now = self.offsets(batch)
        except (PlaitError, OSError, ValueError):
            before, now = {}, {}
        arrived: list[Arrived] = []
        unknown = set()
        for stream, count in rows.items():
            name = spark_name(stream)
            times = (
                self._times(name, entry_of_offset(before.get(name)), entry_of_offset(now.get(name))) if count else []
            )
            arrived += [Arrived(at_ms=time, rows=count / len(times)) for time in times]
            unknown |= {stream} if count and not times else set()
        return arrived, frozenset(unknown)

    def offsets(self, batch: int) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Return from where and up to where a batch has read each source, by its name in Spark's logs."""
        known = self._before
        before = known[1] if known is not None and known[0] == batch - 1 else offsets_at(self.checkpoint, batch - 1)
        now = offsets_at(self.checkpoint, batch)
        self._before = (batch, now)
        return before, now

    def _times(self, name: str, before: int | None, now: int | None) -> list[int]:
        """Return when the files of the entries after `before` up to `now` were last changed. A stream that was not read
        in the batch before has one entry for this one: those before that are of batches long ago.
        """
        if now is None:
            return []
        log = Storage.open(posixpath.join(self.checkpoint, "spark", "sources", name))
        times: list[int] = []
        try:
            for number in range(now - 1 if before is None else before, now):
                times += _changed(log, number + 1)
        except (PlaitError, OSError, ValueError, KeyError):
            return []
        return times


def entry_of_offset(offset: str | None) -> int | None:
    """Return the entry of a file source's log that an offset names; None for another kind of source."""
    try:
        stored = None if offset is None else json.loads(offset)
    except ValueError:
        return None
    entry = stored.get("logOffset") if isinstance(stored, dict) else None
    return entry if isinstance(entry, int) else None


def _changed(log: Storage, number: int) -> list[int]:
    """Return when the files of one entry were last changed, none if there are more of them than are read."""
    path = next((path for path in (str(number), f"{number}.compact") if log.exists(path)), None)
    content = b"" if path is None else _end_of(log, path)
    lines = content.decode(errors="replace").split("\n")[1:]  # the first is the version, or was cut off
    entries = [json.loads(line) for line in lines if line]
    is_cut = len(content) == _MOST_BYTES and bool(entries) and entries[0]["batchId"] == number
    return [] if is_cut else [int(entry["timestamp"]) for entry in entries if entry["batchId"] == number]


def _end_of(log: Storage, path: str) -> bytes:
    local = log.local_path(path)
    if local is None:
        return log.read_bytes(path)[-_MOST_BYTES:]
    with local.open("rb") as file:
        file.seek(max(local.stat().st_size - _MOST_BYTES, 0))
        return file.read(_MOST_BYTES)
