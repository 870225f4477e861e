"""Open a checkpoint and bring it to a consistent state before anything runs."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from dataclasses import replace
from urllib.parse import quote

from plait import __version__
from plait.errors import CheckpointError
from plait.query.model import Stream
from plait.runtime.binding import Binding
from plait.runtime.catalog import PATH, Catalog, read_catalog
from plait.runtime.offsets import check_offsets, complete_offsets
from plait.sinks.kinds import kind_of
from plait.sinks.staging import discard_staged, publish
from plait.state.buckets import verify_all
from plait.state.garbage import collect
from plait.state.manifest import ManifestLog
from plait.state.model import Manifest
from plait.state.storage import Storage


def open_checkpoint(checkpoint: str, cache_bytes: int | None = None) -> tuple[Storage, Catalog | None, Manifest | None]:
    """Return the checkpoint's storage, catalog and last manifest, both None if it is new. `cache_bytes`: for local
    copies of a remote one.

    Raises CheckpointError if the directory holds something else, or if a live bucket is missing or damaged.
    """
    storage = replace(Storage.open(posixpath.join(checkpoint, "plait")), cache_bytes=cache_bytes)
    catalog = read_catalog(storage, __version__)
    if catalog is None:
        _refuse_foreign(checkpoint)
        return storage, None, None
    complete_offsets(checkpoint)
    manifest = ManifestLog(storage).latest()
    if manifest is not None:
        check_offsets(checkpoint, manifest)
        verify_all(storage, manifest.buckets)
    return storage, catalog, manifest


def _refuse_foreign(checkpoint: str) -> None:
    """A directory with files but without our catalog belongs to somebody else."""
    root = Storage.open(checkpoint)
    files = root.list(recursive=False)
    foreign = [file.path for file in files if not posixpath.basename(file.path).startswith(".")]
    if foreign or root.exists("spark") or root.exists("offsets") or root.exists("commits"):
        found = foreign[0] if foreign else "a Spark checkpoint without Plait's catalog"
        raise CheckpointError(
            f"'{checkpoint}' is not a Plait checkpoint: expected plait/{PATH}, found {found}. Choose "
            "an empty or new directory."
        )


def finish_last_batch(
    storage: Storage, manifest: Manifest | None, bindings: Iterable[Binding], streams: Iterable[Stream]
) -> None:
    """Publish what the last batch committed, then delete what attempts that lost have staged or stored."""
    if manifest is not None:
        publish(manifest.publications)
    for binding in bindings:
        kind_of(binding.sink.spec).recover(binding.sink.spec, binding.query.name)
    for stream in streams:
        if stream.dead_letter is not None:
            discard_staged(stream.dead_letter, quote(stream.name, safe="") + "-")
    if manifest is not None:
        log = ManifestLog(storage)
        collect(storage, tuple(log.read(number) for number in log.batches()))
