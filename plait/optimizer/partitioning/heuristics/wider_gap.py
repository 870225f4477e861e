"""Heuristic 2: reduce the precision asked for.

Algorithm 1 doubles the relative gap at which the solver may stop, each time that no solution within it was proved.
"""

from __future__ import annotations

from collections.abc import Iterator


def gaps(first: float, iterations: int, *, widen: bool = True) -> Iterator[float]:
    """Yield the gap of each iteration.

    >>> list(gaps(0.01, 3))
    [0.01, 0.02, 0.04]
    """
    for turn in range(iterations):
        yield first * 2**turn if widen else first
