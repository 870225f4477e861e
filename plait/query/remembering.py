"""What is worked out of queries is remembered, and forgotten with them.

Planning asks the same about hundreds of queries each time that one of them comes or goes. A cache has room for all of
them, so what it knows of queries that are gone would stay until as many others have come: some thousands, each with all
that it consists of. Whoever lets queries go says so, and once as many are gone as are left all caches begin anew.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

FEWEST_GONE: Final = 64
"""So many queries may be gone, however few are left."""

_caches: list[Any] = []


def remembered(size: int) -> Callable[[Function], Function]:
    """Let a function remember its last `size` answers, about queries or what they consist of."""

    def remembering(function: Function) -> Function:
        cache: Any = lru_cache(maxsize=size)(function)
        _caches.append(cache)
        return cast(Function, cache)

    return remembering


class Gone:
    """Counts the queries that go, and has what is remembered of queries forgotten once there are enough of them."""

    def __init__(self) -> None:
        self._count = 0

    def note(self, gone: int, left: int) -> None:
        """Note that so many more queries are gone, and so many left."""
        self._count += gone
        if self._count > max(FEWEST_GONE, left):
            forget()
            self._count = 0


def forget() -> None:
    """Forget all that is remembered of queries."""
    for cache in _caches:
        cache.cache_clear()


__all__ = ["FEWEST_GONE", "Gone", "forget", "remembered"]
