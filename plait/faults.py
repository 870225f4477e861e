"""Fail points: places where the recovery tests kill the process.

``PLAIT_FAULT=point`` or ``PLAIT_FAULT=point:n`` ends the process at once, as ``kill -9`` does, the n-th time it reaches
`point` (the first time by default). Without the variable a fail point costs one dictionary look-up.
"""

from __future__ import annotations

import os
import signal

_VARIABLE = "PLAIT_FAULT"
_reached: dict[str, int] = {}


def reach(point: str) -> None:
    """Die here if the environment says so."""
    wanted = os.environ.get(_VARIABLE)
    if wanted is None:
        return
    name, _, count = wanted.rpartition(":") if wanted[-1].isdigit() else (wanted, "", "1")
    if name != point:
        return
    _reached[point] = _reached.get(point, 0) + 1
    if _reached[point] == int(count):
        os.kill(os.getpid(), signal.SIGKILL)
