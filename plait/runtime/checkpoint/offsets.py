"""Spark's own offset log: checked against Plait's manifests, completed where Spark 4.2 leaves a gap, and told where
each stream goes on when a checkpoint is opened again: where our last finished batch left it, or at its start.

The log alone cannot say that. It notes how far a batch reads before it is carried out, so a batch that was begun with a
stream and finished without it has noted rows that nobody has seen; and it forgets a stream that was left out.

With named sources Spark writes its offset log in format 2. On a restart after an unfinished batch Spark 4.2.0 looks
for the setting ``spark.sql.shuffle.partitions`` in the log's last two entries, which its format 2 never records, and
fails with ``None.get``. Recording it there lets the restart go on; it is compared, and otherwise means nothing to a
query without state of Spark's.

Spark looks for where a source had come to in the log's last two entries only. A stream that was left out for more
batches would be read again from its start, and all its results would come twice. So Plait remembers what a stream had
come to, and writes it into these entries when the stream comes back. The reverse too: a batch that was begun with a new
stream and finished without it leaves there how far it would have read, and Spark would skip the rows before that. So
what the entries say of a stream that no finished batch has read is taken out.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Collection, Mapping
from dataclasses import replace

from plait.errors import CheckpointError
from plait.runtime.checkpoint.catalog import Catalog
from plait.runtime.checkpoint.spark_logs import damage_of
from plait.sources import spark_name
from plait.state.model import Manifest
from plait.state.storage import Storage

_SETTING = "spark.sql.shuffle.partitions"
_FORMAT = "v2"


def check_offsets(checkpoint: str, manifest: Manifest) -> None:
    """Raise CheckpointError unless Spark has logged the offsets of the last committed batch.

    With another offset log batches would be skipped or repeated.
    """
    newest = max(_entries(_spark(checkpoint), "offsets"), default=-1)
    if newest < manifest.spark_batch:
        raise CheckpointError(
            f"checkpoint '{checkpoint}' is incomplete: Plait has committed batch {manifest.spark_batch}, Spark's "
            f"offset log in spark/offsets ends at batch {newest}. Restore both from the same backup, or use another "
            "checkpoint."
        )


def complete_offsets(checkpoint: str) -> None:
    """Record the setting Spark misses, alike in the entry of an unfinished batch and the one before it.

    Once it is recorded Spark carries it on, with the session's value; two entries that differ would pass for a change
    of Spark's own state.
    """
    storage = _spark(checkpoint)
    started = max(_entries(storage, "offsets"), default=-1)
    if started <= max(_entries(storage, "commits"), default=-1):
        return
    entries = {batch: lines for batch in (started, started - 1) if (lines := _read(storage, batch)) is not None}
    recorded = [_settings(lines)[_SETTING] for lines in entries.values() if _SETTING in _settings(lines)]
    for batch, lines in entries.items():
        _record(storage, batch, lines, recorded[0] if recorded else "200")


def offsets_at(checkpoint: str, batch: int) -> dict[str, str]:
    """Return where the sources of a batch had come to with it, by name."""
    return _offsets(_read(_spark(checkpoint), batch) or [])


def offsets_by_batch(checkpoint: str) -> dict[int, dict[str, str]]:
    """Return where the sources had come to with each batch that the log has, by name."""
    storage = _spark(checkpoint)
    return {batch: _offsets(_read(storage, batch) or []) for batch in _entries(storage, "offsets")}


def last_offsets(checkpoint: str, batch: int, names: Collection[str]) -> dict[str, str]:
    """Return where these sources had come to when last read, up to a batch and as far back as the log goes."""
    storage = _spark(checkpoint)
    last: dict[str, str] = {}
    for number in sorted((number for number in _entries(storage, "offsets") if number <= batch), reverse=True):
        if last.keys() >= set(names):
            break
        for name, offset in _offsets(_read(storage, number) or []).items():
            if name in names:
                last.setdefault(name, offset)
    return last


def resume_offsets(checkpoint: str, known: Mapping[str, str]) -> None:
    """Let Spark find where these sources (by name) had come to: in the last two entries of its log, whatever a batch
    that was never finished may have noted there.

    Of a batch that was begun and not finished the newer entry says what it reads, the older one from where: a source
    that comes back with it adds nothing to that batch.
    """
    storage = _spark(checkpoint)
    newest = max(_entries(storage, "offsets"), default=-1)
    for batch in (newest - 1, newest):
        lines = _read(storage, batch)
        if lines is None or not known:
            continue
        others = [line for line in lines[2:] if line.partition(":")[0] not in known]
        resumed = [*lines[:2], *others, *(f"{name}:{offset}" for name, offset in sorted(known.items()))]
        if resumed != lines:
            _write(storage, batch, resumed)


def forget_offsets(checkpoint: str, names: Collection[str]) -> None:
    """Let Spark begin with these sources (by name) where they begin: take them out of the last two entries of its log,
    where a batch that was begun with them and finished without has noted how far it would have read.
    """
    storage = _spark(checkpoint)
    newest = max(_entries(storage, "offsets"), default=-1)
    for batch in (newest - 1, newest):
        lines = _read(storage, batch)
        if lines is None:
            continue
        others = [line for line in lines[2:] if line.partition(":")[0] not in names]
        if others != lines[2:]:
            _write(storage, batch, [*lines[:2], *others])


def _offsets(lines: list[str]) -> dict[str, str]:
    """Return the offsets of an entry by the name of the source; ``-`` stands for none."""
    pairs = (line.partition(":") for line in lines[2:] if line)
    return {name: offset for name, _, offset in pairs if offset != "-"}


def _read(storage: Storage, batch: int) -> list[str] | None:
    """Return the lines of an entry: format, metadata, then an offset per source; None if there is none of this
    format. Raises CheckpointError for one that is damaged.
    """
    path = f"offsets/{batch}"
    if not storage.exists(path):
        return None
    try:
        lines = storage.read_bytes(path).decode().split("\n")
        if lines[0] != _FORMAT or len(lines) < 2:
            return None
        json.loads(lines[1])
    except ValueError as error:
        raise CheckpointError(damage_of(posixpath.join(storage.uri, path))) from error
    return lines


def _settings(lines: list[str]) -> dict[str, str]:
    settings: dict[str, str] = json.loads(lines[1]).get("conf", {})
    return settings


def _record(storage: Storage, batch: int, lines: list[str], value: str) -> None:
    settings = _settings(lines)
    if settings.get(_SETTING) == value:
        return
    metadata = {**json.loads(lines[1]), "conf": {**settings, _SETTING: value}}
    _write(storage, batch, [lines[0], json.dumps(metadata, separators=(",", ":")), *lines[2:]])


def _write(storage: Storage, batch: int, lines: list[str]) -> None:
    content = "\n".join(lines)
    storage.delete(f"offsets/.{batch}.crc")  # Hadoop's checksum of the file as it was
    storage.write_file(f"offsets/{batch}", content.encode(), durable=True)


def _spark(checkpoint: str) -> Storage:
    return Storage.open(posixpath.join(checkpoint, "spark"))


def _entries(storage: Storage, log: str) -> list[int]:
    names = (posixpath.basename(file.path) for file in storage.list(log))
    return [int(name) for name in names if name.isdigit()]


def resume_streams(checkpoint: str, last: Catalog | None, now: Catalog, manifest: Manifest | None) -> Catalog:
    """Let each stream of the plan (`now.read`) go on where it had come to when a finished batch last read it, and begin
    where none has; return the catalog with where that is. `last`: the catalog of the start before.
    """
    if manifest is None or manifest.spark_batch < 0 or not now.named:
        return now
    noted = offsets_at(checkpoint, manifest.spark_batch)
    was_read = noted.keys() if last is None or last.read is None else {spark_name(name) for name in last.read}
    # What the log says of a stream that was not read stems from a batch that was begun with it and finished without.
    offsets = dict(now.offsets) | {name: offset for name, offset in noted.items() if name in was_read}
    added = {spark_name(name) for name in now.read or ()} - was_read
    seen = added & {spark_name(known.source) for known in manifest.sources if known.rows}
    offsets = last_offsets(checkpoint, manifest.spark_batch, seen - offsets.keys()) | offsets
    resume_offsets(checkpoint, {name: offsets[name] for name in added & offsets.keys()})
    forget_offsets(checkpoint, added - offsets.keys() - seen)
    return replace(now, offsets=tuple(sorted(offsets.items())))
