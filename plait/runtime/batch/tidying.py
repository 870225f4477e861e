"""Phase *tidy*: what is not needed any more goes, some of it beside the next batches, and merging of what is begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from plait.operators.traversal.results import SPOOL
from plait.runtime.batch.compacting import Compactor
from plait.runtime.batch.record import Batch
from plait.runtime.batch.sweeping import Sweeper
from plait.state.storage import Storage

_EVERY: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Tidier:
    """Deletes from `storage`; `merges`: begin to merge what is left."""

    storage: Storage
    compactor: Compactor
    sweeper: Sweeper
    merges: bool

    def tidy(self, work: Batch) -> Batch:
        """Delete spooled results that were delivered; now and then, have manifests and files deleted nothing needs;
        begin to merge.
        """
        manifest = work.settled
        kept = {path for late in manifest.undelivered for path in late.paths}
        for file in self.storage.list(SPOOL, recursive=True):
            if file.path not in kept:
                self.storage.delete(file.path)
        self.storage.delete_empty(SPOOL)
        # What a merge under way has written is named by no manifest yet, and may be old by the time it is.
        if manifest.batch % _EVERY == 0 and not self.compactor.is_running:
            self.sweeper.start()
        if self.merges:
            stored = (*manifest.buckets, *manifest.copies)
            self.compactor.start(stored, work.epoch.plan, manifest.fillings, work.epoch.readings)
        return work


__all__ = ["Tidier"]
