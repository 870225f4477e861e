"""Read KMV sketches: the k smallest hashes of the keys seen (`plait.kernels.sketch` makes them).

With n distinct keys the hashes are n uniform points, so the k-th smallest, as a share u of the hash range, lies near
k / n, and (k - 1) / u is the unbiased estimate; its relative standard error is about 1 / sqrt(k - 2), 6 % for k = 256.
A union of streams has the k smallest of both sketches: merging loses nothing.

A sketch is a sorted tuple of unsigned 64-bit hashes as Python integers, the form the manifest keeps.
"""

from __future__ import annotations

SKETCH_SIZE = 256
"""Hashes kept per key."""


def merge_sketches(*sketches: tuple[int, ...], k: int = SKETCH_SIZE) -> tuple[int, ...]:
    """Return the sketch of everything the given sketches saw."""
    return tuple(sorted(frozenset().union(*sketches))[:k])


def estimate_distinct(sketch: tuple[int, ...], k: int = SKETCH_SIZE, rows: float | None = None) -> float:
    """Return the expected number of distinct keys: exact below `k`, never above `rows` if that is known."""
    if len(sketch) < k:
        return float(len(sketch))
    # A full sketch has seen k keys at least, however the k-th hash happens to lie.
    estimate = max((k - 1) * 2.0**64 / (sketch[k - 1] + 1), float(k))
    return estimate if rows is None else min(estimate, max(rows, float(k)))
