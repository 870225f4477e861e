"""Which disk is full: the system's error says that one is, but seldom which."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_NEXT_TO_NOTHING_BYTES: Final = 1 << 20


def full_places(paths: Iterable[str], *, least_bytes: int = _NEXT_TO_NOTHING_BYTES) -> tuple[str, ...]:
    """Return those of these local paths, and of the directories for temporary files, whose file system has less than
    so much left.
    """
    temporary = (*os.environ.get("SPARK_LOCAL_DIRS", "").split(","), tempfile.gettempdir())
    places = dict.fromkeys(path.removeprefix("file://") for path in (*paths, *temporary))
    return tuple(place for place in places if place.startswith("/") and _left_bytes(Path(place)) < least_bytes)


def _left_bytes(place: Path) -> float:
    """Return what is left where a path is, or will be; infinity where that cannot be told."""
    for directory in (place, *place.parents):
        try:
            return float(shutil.disk_usage(directory).free)
        except FileNotFoundError:
            continue
        except OSError:
            break
    return float("inf")


__all__ = ["full_places"]
