"""Delete files nothing refers to any more.

A file under `FOLDERS` is garbage if **no given manifest names it and it last changed before the oldest given manifest
was written**. The second half protects work in flight: a task attempt or a background merge that is still to be named
by a manifest began after some recent manifest was committed, so the files it writes are younger than that manifest.
Give the last several manifests (what `ManifestLog.prune` keeps): then a merge may take as many batches as these span.
Both times come from the same file system, so no clocks are compared. Indexes live and die with their bucket.
"""

from __future__ import annotations

from collections.abc import Iterable

from plait.state.manifest import FOLDER, manifest_path
from plait.state.model import Manifest
from plait.state.naming import GROUPS, STORES, stem
from plait.state.storage import Storage

SPOOL = "results"
PLANS = "plans"
FOLDERS = (STORES, SPOOL, PLANS, GROUPS)


def plan_path(plan: str) -> str:
    """Return where the plan of this name is written down."""
    return f"{PLANS}/{plan}.json"


def collect(storage: Storage, manifests: Iterable[Manifest]) -> int:
    """Delete all garbage; return how many files that was. `manifests`: the last ones, all of them still in the log."""
    kept = tuple(manifests)
    oldest_ns = _oldest_ns(storage, kept)
    if oldest_ns is None:
        return 0
    buckets = {stem(bucket.path) for manifest in kept for bucket in manifest.named}
    named = {path for manifest in kept for late in manifest.undelivered for path in late.paths}
    named |= {file.path for manifest in kept for groups in manifest.groups for file in groups.files}
    named |= {file.path for manifest in kept for made in manifest.made for file in made.files}
    named |= {plan_path(manifest.plan) for manifest in kept}
    deleted = 0
    for folder in FOLDERS:
        for file in storage.list(folder, recursive=True):
            is_named = file.path in named or stem(file.path) in buckets
            if not is_named and file.modified_ns < oldest_ns:
                storage.delete(file.path)
                deleted += 1
    return deleted


def _oldest_ns(storage: Storage, manifests: tuple[Manifest, ...]) -> int | None:
    """Return when the oldest of these manifests was written; None if that cannot be said: then nothing is deleted."""
    written = {file.path: file.modified_ns for file in storage.list(FOLDER)}
    times = [written.get(manifest_path(manifest.batch)) for manifest in manifests]
    known = [time for time in times if time]
    return min(known) if known and len(known) == len(times) else None
