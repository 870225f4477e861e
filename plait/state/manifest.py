"""Manifests as files: one JSON object per committed batch, ``manifests/<batch>.json``.

Layout of the file: the first line opens the object and holds format, batch, watermark and per source the event time
before which its rows are late; the second holds the rest; the third closes it with the checksum of the bytes before.
Repeated values (layouts, store names, sort keys) are stored once, buckets column by column.
"""

from __future__ import annotations

import json
import re
from typing import Any

from plait.errors import CheckpointError, InvalidPlanError
from plait.state import codec
from plait.state.codec import FORMAT, READ, held_to_one_watermark, with_series, without_sums
from plait.state.model import Manifest
from plait.state.storage import Storage, checksum_of

FOLDER = "manifests"
_NAME = re.compile(rf"{FOLDER}/(-?\d+)\.json")
_SEAL = b',\n"checksum":"'
_WHAT_TO_DO = "Restore it from a backup, or start over with a new checkpoint directory."


def encode(manifest: Manifest) -> bytes:
    """Return the manifest as the bytes of its file; equal manifests give equal bytes."""
    head = {
        "format": FORMAT,
        "batch": manifest.batch,
        "watermark_us": manifest.watermark_us,
        "late_before": {source.source: source.late_before_us for source in manifest.sources},
    }
    rest = codec.to_json(manifest)
    body = f"{_compact(head)[:-1]},\n{_compact(rest)[1:-1]}".encode()
    return body + _SEAL + checksum_of(body).encode() + b'"}\n'


def decode(content: bytes, name: str) -> Manifest:
    """Return the manifest in `content`, the file called `name`; raise `CheckpointError` if it is damaged or of a
    newer format.
    """
    document = _parse(content, name, header_only=False)
    bars = document.pop("late_before", None)
    try:
        if document["format"] > 1:
            return codec.from_json(document)
        document, series = without_sums(document)
        manifest = with_series(codec.from_json(document), series)
        return manifest if bars is not None else held_to_one_watermark(manifest)
    except (KeyError, IndexError, TypeError, ValueError, InvalidPlanError) as error:
        raise _damaged(name, f"{type(error).__name__}: {error}") from error


class ManifestLog:
    """The manifests of a checkpoint, by batch. The newest is the state."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def batches(self) -> tuple[int, ...]:
        """Return the batches there is a manifest for, ascending."""
        names = (_NAME.fullmatch(file.path) for file in self._storage.list(FOLDER))
        return tuple(sorted(int(name.group(1)) for name in names if name))

    def latest(self) -> Manifest | None:
        """Return the newest manifest, None on a new checkpoint."""
        batches = self.batches()
        return self.read(batches[-1]) if batches else None

    def read(self, batch: int) -> Manifest:
        """Return the manifest of `batch`."""
        path = manifest_path(batch)
        manifest = decode(self._storage.read_bytes(path), self._storage.name(path))
        if manifest.batch != batch:
            raise _damaged(self._storage.name(path), f"expected batch {batch}, found {manifest.batch}")
        return manifest

    def read_late_before(self, batch: int, source: str) -> int | None:
        """Return the event time before which rows of `source` are late in the batch after `batch`, without decoding the
        rest of the manifest. None: no row is late; so too if `batch` is before the first (< 0) and has no manifest.
        """
        path = manifest_path(batch)
        if batch < 0 and not self._storage.exists(path):
            return None
        head = _parse(self._storage.read_bytes(path), self._storage.name(path), header_only=True)
        watermark = head.get("watermark_us")
        bars = head.get("late_before")
        bar = bars.get(source) if isinstance(bars, dict) else watermark
        if head.get("batch") != batch or not isinstance(watermark, int | None) or not isinstance(bar, int | None):
            raise _damaged(self._storage.name(path), f"expected batch {batch} and its watermark, found {head}")
        return bar

    def commit(self, manifest: Manifest) -> None:
        """Write the manifest, atomically and durably. Doing it again with an equal one changes nothing; a different
        one is refused.
        """
        path, content = manifest_path(manifest.batch), encode(manifest)
        if not self._storage.create_file(path, content) and self._storage.read_bytes(path) != content:
            raise CheckpointError(
                f"Batch {manifest.batch} is committed already, with another outcome: {self._storage.name(path)}. "
                "A second engine may run on this checkpoint: stop it, or give this one a checkpoint of its own."
            )

    def amend(self, manifest: Manifest) -> None:
        """Put a manifest in the place of the newest one, which is of the same batch, atomically and durably: what the
        batch was is not touched, only what has become of its results.
        """
        newest = self.batches()[-1:]
        if newest != (manifest.batch,):
            raise CheckpointError(
                f"Batch {manifest.batch} is not the last one any more: {self._storage.name(FOLDER)} has {newest}. A "
                "second engine may run on this checkpoint: stop it, or give this one a checkpoint of its own."
            )
        self._storage.write_file(manifest_path(manifest.batch), encode(manifest), durable=True)

    def prune(self, keep: int = 10) -> None:
        """Delete all manifests but the newest `keep`."""
        if keep < 1:
            raise ValueError(f"keep is {keep}; at least the newest manifest must stay")
        for batch in self.batches()[:-keep]:
            self._storage.delete(manifest_path(batch))


def manifest_path(batch: int) -> str:
    """Return the path of a batch's manifest in the storage."""
    return f"{FOLDER}/{batch}.json"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _parse(content: bytes, name: str, *, header_only: bool) -> dict[str, Any]:
    """Check format, then checksum, then return the object, or its first line alone."""
    first = content.partition(b"\n")[0].rstrip(b",")
    try:
        head = json.loads(first + b"}")
        version = head["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(name, "its first line is not the beginning of a manifest") from error
    if version not in READ:
        raise CheckpointError(
            f"Manifest {name} has format {version}; this Plait reads formats {READ[0]} to {READ[-1]}. Run the Plait "
            "that wrote it, or start over with a new checkpoint directory."
        )
    body, seal, checksum = content.rpartition(_SEAL)
    if not seal or checksum != checksum_of(body).encode() + b'"}\n':
        raise _damaged(name, "its checksum is wrong")
    document = head if header_only else json.loads(content)
    if not isinstance(document, dict):
        raise _damaged(name, "it is not an object")
    return document


def _damaged(name: str, reason: str) -> CheckpointError:
    return CheckpointError(f"Manifest {name} is damaged: {reason}. {_WHAT_TO_DO}")
