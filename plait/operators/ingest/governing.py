"""Tell ingest tasks of a plan that was made after Spark's query was started: tasks know what they were started with.

A start has one file for that, written between two batches and read by every task of the later ones.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping

from plait.operators.ingest.deriving import Derivation
from plait.state.storage import Storage

FOLDER = "ingest"


def changes_path(epoch: int) -> str:
    """Return where a start that began with this epoch notes what tasks are to do otherwise."""
    return f"{FOLDER}/{epoch}"


def note_changes(storage: Storage, path: str, since: int, derivations: Mapping[str, Derivation]) -> None:
    """Let tasks from batch `since` on take in rows as the derivations say, by source.

    What earlier starts noted goes only now: a start that is refused must take nothing from a run that goes on. Each
    derivation is packed by itself, because a task needs that of one source, and with hundreds of queries they are long.
    """
    packed = {source: pickle.dumps(derivation) for source, derivation in derivations.items()}
    storage.write_file(path, pickle.dumps((since, packed)))
    for file in storage.list(FOLDER):
        if file.path != path:
            storage.delete(file.path)


def changed_at(storage: Storage, path: str, batch: int, source: str) -> Derivation | None:
    """Return how the rows of a source are taken in with a batch; None: as the task was started for."""
    if not storage.exists(path):
        return None
    since: int
    packed: dict[str, bytes]
    since, packed = pickle.loads(storage.read_bytes(path))
    if batch < since or source not in packed:
        return None
    derivation: Derivation = pickle.loads(packed[source])
    return derivation


__all__ = ["changed_at", "changes_path", "note_changes"]
