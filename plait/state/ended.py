"""Whether nothing is left to do on a checkpoint whose input has ended: told from its newest manifest alone, before
anything else is loaded or started. Only of a local directory, and only where it is certain: a run tells of all others.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from plait.errors import OptionError

_MANIFESTS: Final = os.path.join("plait", "manifests")
_NAME: Final = re.compile(r"(-?\d+)\.json")


def refuse_finished(checkpoint: str) -> None:
    """Raise OptionError if the input of a checkpoint has ended, and all of its results are where they belong."""
    manifest = _newest(checkpoint)
    if manifest.get("ended") is not True or manifest.get("backlog"):
        return
    staged = [str(each.get("staged")) for each in manifest.get("publications", ()) if isinstance(each, dict)]
    if not any("://" in path or os.path.exists(path) for path in staged):
        raise ended_error(checkpoint)


def ended_error(checkpoint: str) -> OptionError:
    """Return the refusal of a checkpoint whose input has ended."""
    return OptionError(
        f"the input of checkpoint '{checkpoint}' has ended: it was run with --close (in Python close=True), which says "
        "that nothing more will come, so all there is to know has been written. For more input choose another "
        "checkpoint and other sinks"
    )


def _newest(checkpoint: str) -> dict[str, Any]:
    """Return what the file of the newest manifest says; nothing if there is none, or none that can be read here."""
    parts = urlsplit(checkpoint)
    if len(parts.scheme) > 1 and parts.scheme != "file":
        return {}
    folder = os.path.join(unquote(parts.path) if parts.scheme == "file" else checkpoint, _MANIFESTS)
    try:
        numbers = [int(found[1]) for found in map(_NAME.fullmatch, os.listdir(folder)) if found]
        if not numbers:
            return {}
        with open(os.path.join(folder, f"{max(numbers)}.json"), "rb") as file:
            document = json.load(file)
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


__all__ = ["ended_error", "refuse_finished"]
