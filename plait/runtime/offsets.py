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
    """Record the setting Spark misses, in the entry of an unfinished batch and the one before it."""
    storage = _spark(checkpoint)
    started = max(_entries(storage, "offsets"), default=-1)
    if started <= max(_entries(storage, "commits"), default=-1):
        return
    for batch in (started - 1, started):
        if storage.exists(f"offsets/{batch}"):
            _complete(storage, batch)


def _complete(storage: Storage, batch: int) -> None:
    path = f"offsets/{batch}"
    lines = storage.read_bytes(path).decode().split("\n")
    if lines[0] != _FORMAT or len(lines) < 2:
        return
    metadata = json.loads(lines[1])
    if _SETTING in metadata.get("conf", {}):
        return
    metadata["conf"] = {**metadata.get("conf", {}), _SETTING: "200"}
    lines[1] = json.dumps(metadata, separators=(",", ":"))
    storage.delete(f"offsets/.{batch}.crc")  # Hadoop's checksum of the file as it was
    storage.write_file(path, "\n".join(lines).encode(), durable=True)


def _spark(checkpoint: str) -> Storage:
    return Storage.open(posixpath.join(checkpoint, "spark"))


def _entries(storage: Storage, log: str) -> list[int]:
    names = (posixpath.basename(file.path) for file in storage.list(log))
    return [int(name) for name in names if name.isdigit()]
