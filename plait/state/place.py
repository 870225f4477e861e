"""Where the state of a checkpoint lies: in a directory of its own, beside Spark's."""

from __future__ import annotations

import posixpath
from typing import Final

from plait.state.storage import Storage

STATE: Final = "plait"
"""The directory within a checkpoint."""


def state_of(checkpoint: str) -> Storage:
    """Return the state of a checkpoint, which need not be there yet."""
    return Storage.open(posixpath.join(checkpoint, STATE))


__all__ = ["STATE", "state_of"]
