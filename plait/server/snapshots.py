"""What the service shows, made at most so often, whoever many ask: an engine's status costs more than a request may."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

_MOST: Final = 64


class Snapshots:
    """Bytes by key, each as old as `seconds` at most. Those who ask while one is made wait for that one."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._made: OrderedDict[Hashable, tuple[float, bytes]] = OrderedDict()
        self._making = threading.Lock()

    def fresh(self, key: Hashable) -> bytes | None:
        """Return what there is, None if it is too old."""
        found = self._made.get(key)
        return found[1] if found is not None and self._clock() - found[0] <= self._seconds else None

    def of(self, key: Hashable, make: Callable[[], bytes]) -> bytes:
        """Return what there is, made anew if it is too old."""
        with self._making:
            found = self.fresh(key)
            if found is None:
                found = make()
                self._made[key] = (self._clock(), found)
                self._made.move_to_end(key)
                if len(self._made) > _MOST:
                    self._made.popitem(last=False)
        return found

    def forget(self) -> None:
        """Let everything be made anew: something was changed by whoever asks next."""
        with self._making:
            self._made.clear()


__all__ = ["Snapshots"]
