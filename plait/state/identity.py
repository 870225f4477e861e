"""Which checkpoint this is: a name that it keeps when it is moved, or restored from a backup.

What a checkpoint publishes outside of itself (results, dead letters) bears its name, so that it is known again.
"""

from __future__ import annotations

import json
import posixpath
import uuid

from plait.state.storage import Storage

PATH = "id"


def kept_identity(storage: Storage) -> str | None:
    """Return the id the checkpoint keeps, None if it keeps none yet."""
    return storage.read_bytes(PATH).decode().strip() if storage.exists(PATH) else None


def identity_of(storage: Storage) -> str:
    """Return the checkpoint's id. One that keeps none yet, because it is new or was begun before there were ids, has it
    only after `keep_identity`. One that has run before gets the same again until then, also in a copy: Spark's own.
    """
    kept = kept_identity(storage)
    if kept is not None:
        return kept
    above = Storage.open(posixpath.dirname(storage.uri))
    if above.exists("spark/metadata"):
        try:
            return uuid.UUID(str(json.loads(above.read_bytes("spark/metadata"))["id"])).hex
        except (ValueError, KeyError, TypeError):
            pass  # not as Spark writes it: then it is no help, and no harm
    return uuid.uuid4().hex


def keep_identity(storage: Storage, identity: str) -> None:
    """Note the id in the checkpoint, durably."""
    storage.create_file(PATH, f"{identity}\n".encode())
