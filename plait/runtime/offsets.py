"""Spark's own offset log: checked against Plait's manifests, and completed where Spark 4.2 leaves a gap.

With named sources Spark writes its offset log in format 2. On a restart after an unfinished batch Spark 4.2.0 looks
for the setting ``spark.sql.shuffle.partitions`` in the log's last two entries, which its format 2 never records, and
fails with ``None.get``. Recording it there lets the restart go on; it is compared, and otherwise means nothing to a
query without state of Spark's.
"""

from __future__ import annotations

import json
import posixpath

from plait.errors import CheckpointError
from plait.state.model import Manifest
from plait.state.storage import Storage

_SETTING = "spark.sql.shuffle.partitions"
_FORMAT = "v2"


def check_offsets(checkpoint: str, manifest: Manifest) -> None:
    """Raise CheckpointError unless Spark has logged the offsets of the last committed batch.

    With another offset log batches would be skipped or repeated.
    """
    newest = max(_entries(_spark(checkpoint), "offsets"), default=-1)
    if newest < manifest.batch:
        raise CheckpointError(
            f"checkpoint '{checkpoint}' is incomplete: Plait has committed batch {manifest.batch}, Spark's offset log "
            f"in spark/offsets ends at batch {newest}. Restore both from the same backup, or use another checkpoint."
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


def _read(storage: Storage, batch: int) -> list[str] | None:
    """Return the lines of an entry: format, metadata, then an offset per source; None if there is none of this
    format.
    """
    path = f"offsets/{batch}"
    if not storage.exists(path):
        return None
    lines = storage.read_bytes(path).decode().split("\n")
    return lines if lines[0] == _FORMAT and len(lines) > 1 else None


def _settings(lines: list[str]) -> dict[str, str]:
    settings: dict[str, str] = json.loads(lines[1]).get("conf", {})
    return settings


def _record(storage: Storage, batch: int, lines: list[str], value: str) -> None:
    settings = _settings(lines)
    if settings.get(_SETTING) == value:
        return
    metadata = {**json.loads(lines[1]), "conf": {**settings, _SETTING: value}}
    content = "\n".join([lines[0], json.dumps(metadata, separators=(",", ":")), *lines[2:]])
    storage.delete(f"offsets/.{batch}.crc")  # Hadoop's checksum of the file as it was
    storage.write_file(f"offsets/{batch}", content.encode(), durable=True)


def _spark(checkpoint: str) -> Storage:
    return Storage.open(posixpath.join(checkpoint, "spark"))


def _entries(storage: Storage, log: str) -> list[int]:
    names = (posixpath.basename(file.path) for file in storage.list(log))
    return [int(name) for name in names if name.isdigit()]
