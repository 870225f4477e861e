"""Delete old manifests, and files that none of the others names, beside the batches that follow.

Nothing that a batch under way writes is in danger: what is deleted is older than the oldest manifest that is kept
(`plait.state.garbage`). Killed at any moment, the rest is deleted another time.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from plait.errors import PlaitError
from plait.faults import reach
from plait.state.garbage import collect
from plait.state.manifest import ManifestLog
from plait.state.storage import Storage

_LOG = logging.getLogger(__name__)
_KEPT_MANIFESTS: Final = 10


class Sweeper:
    """Sweeps a checkpoint in a background thread, once at a time."""

    def __init__(self, storage: Storage) -> None:
        self._storage, self._log = storage, ManifestLog(storage)
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="plait-sweeping")
        self._running: Future[None] | None = None

    def start(self) -> None:
        """Begin to sweep, unless that is under way."""
        if self._running is None or self._running.done():
            self._running = self._pool.submit(self._sweep)

    def _sweep(self) -> None:
        try:
            self._log.prune(_KEPT_MANIFESTS)
            reach("pruned")
            collect(self._storage, tuple(self._log.read(number) for number in self._log.batches()))
        except PlaitError as error:
            # What is left lying costs room only. A disk that fails will stop a batch soon enough.
            _LOG.warning("what is not needed any more could not be deleted, which is tried again later: %s", error)

    def close(self) -> None:
        """Wait for what is under way."""
        self._pool.shutdown(wait=True)


__all__ = ["Sweeper"]
