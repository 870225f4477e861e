"""Phase *tidy*: what is not needed any more goes, and merging of what is begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from plait.operators.traversal.results import SPOOL
from plait.runtime.batch.compacting import Compactor
from plait.runtime.batch.record import Batch
from plait.state.garbage import collect
from plait.state.manifest import ManifestLog
from plait.state.storage import Storage

_KEPT_MANIFESTS: Final = 10
_EVERY: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Tidier:
    """Deletes from `storage`; `merges`: begin to merge what is left."""

    storage: Storage
    compactor: Compactor
    merges: bool

    def tidy(self, work: Batch) -> Batch:
        """Delete spooled results that were delivered and, now and then, manifests and files nothing needs; begin to
        merge.
        """
        manifest, log = work.settled, ManifestLog(self.storage)
        kept = {path for late in manifest.undelivered for path in late.paths}
        for file in self.storage.list(SPOOL, recursive=True):
            if file.path not in kept:
                self.storage.delete(file.path)
        self.storage.delete_empty(SPOOL)
        # What a merge under way has written is named by no manifest yet, and may be old by the time it is.
        if manifest.batch % _EVERY == 0 and not self.compactor.is_running:
            log.prune(_KEPT_MANIFESTS)
            collect(self.storage, tuple(log.read(number) for number in log.batches()))
        if self.merges:
            self.compactor.start(manifest.buckets, work.epoch.plan)
        return work


__all__ = ["Tidier"]
