"""How often Python looks for garbage in circles of objects: a plan of hundreds of queries is hundreds of thousands of
objects.

None of these are in circles, and each look at all of them takes as long as a batch: Python takes one whenever a quarter
more objects have lasted a while, which is once a batch, and Spark has its workers take one after every task.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from threading import Lock
from typing import Final

_THRESHOLDS: Final = (100_000, 20, 20)
"""So many objects more than were let go of begin a look at the young ones; that often, a look at older ones."""

_LOOK_EVERY: Final = 256
"""What is kept out of sight is looked at once in so many times."""


class _Sight:
    """The thresholds of this process, for as long as anybody wants them high."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._wanted = 0
        self._before = gc.get_threshold()

    def narrow(self) -> None:
        """Look seldom. Somebody who looks more seldom, or never, goes on to do so."""
        with self._lock:
            self._wanted += 1
            if self._wanted == 1:
                self._before = gc.get_threshold()
                if 0 < self._before[0] < _THRESHOLDS[0]:
                    gc.set_threshold(*_THRESHOLDS)

    def widen(self) -> None:
        """Look as often as before, once nobody wants it otherwise."""
        with self._lock:
            self._wanted -= 1
            if self._wanted == 0 and gc.get_threshold() == _THRESHOLDS:
                gc.set_threshold(*self._before)


_SIGHT: Final = _Sight()
_TIMES: Final = count(1)


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Let garbage be looked for seldom meanwhile. What is in no circle does not wait for that."""
    _SIGHT.narrow()
    try:
        yield
    finally:
        _SIGHT.widen()


def keep_out_of_sight() -> None:
    """Keep what there is from being looked at after every task. Garbage among it is found once in a while."""
    if next(_TIMES) % _LOOK_EVERY == 0:
        gc.unfreeze()
        gc.collect()
    gc.freeze()


__all__ = ["keep_out_of_sight", "seldom_collected"]
