"""That the stored buckets are what the manifest says: looked at whenever a run starts, each file once.

To sum up all state takes minutes where there is much of it, and a run is started again whenever its queries change. So
what this process has summed up already, or has committed itself, is summed up again only if somebody has written to
the file since. Whoever reads a bucket compares its checksum in any case.
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
from typing import TypeAlias

from plait.state.buckets import Stamp, damaged, stamp_of, verify
from plait.state.model import Bucket
from plait.state.naming import STORES
from plait.state.storage import Storage

_Known: TypeAlias = dict[tuple[str, str], "Stamp | None"]

_LOCK = Lock()
_TRUSTED: dict[str, _Known] = {}
"""By storage and by (path, checksum): what the file looked like when it was known to be in order."""


def verify_all(storage: Storage, buckets: Iterable[Bucket]) -> None:
    """Raise `CheckpointError` unless the bucket files are what the manifest says.

    Of a remote storage only sizes are compared: it has checksums of its own, and reading it all would take long.
    """
    if not storage.is_local:
        _compare_sizes(storage, buckets)
        return
    before, now = _TRUSTED.get(storage.uri, {}), _Known()
    for bucket in buckets:
        key, stamp = (bucket.path, bucket.checksum), _stamp(storage, bucket)
        if stamp is None or before.get(key) != stamp:
            verify(storage, bucket)
        now[key] = stamp
    with _LOCK:
        _TRUSTED[storage.uri] = now


def trust(storage: Storage, buckets: Iterable[Bucket]) -> None:
    """Note that these are all buckets of a local storage, and that what is new of them has just been written."""
    if not storage.is_local:
        return
    before, now = _TRUSTED.get(storage.uri, {}), _Known()
    for bucket in buckets:
        key = (bucket.path, bucket.checksum)
        now[key] = before[key] if key in before else _stamp(storage, bucket)
    with _LOCK:
        _TRUSTED[storage.uri] = now


def _stamp(storage: Storage, bucket: Bucket) -> Stamp | None:
    path = storage.local_path(bucket.path)
    return None if path is None else stamp_of(path, is_copy=False)


def _compare_sizes(storage: Storage, buckets: Iterable[Bucket]) -> None:
    sizes = {file.path: file.bytes for file in storage.list(STORES, recursive=True)}
    for bucket in buckets:
        found = sizes.get(bucket.path)
        if found != bucket.bytes:
            raise damaged(
                storage,
                bucket,
                f"expected {bucket.bytes} bytes, found {'no file' if found is None else f'{found} bytes'}",
            )


__all__ = ["trust", "verify_all"]
