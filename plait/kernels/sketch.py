"""Distinct counts from the k smallest hashes (KMV).

The k-th smallest of d distinct hashes, as a share x of the hash range, tells d ≈ (k − 1) / x with a relative standard
error of about 1/√k. Sketches of parts of the data merge into the sketch of the whole, which is what lets a manifest
carry them from batch to batch.
"""

from __future__ import annotations

import numpy as np

from plait.kernels.compiled import Int64s, UInt64s, frozen, kernel
from plait.kernels.hashing import mix

_SLOTS = 4096
_FILL = _SLOTS // 2
_SEED = 42


def kmv(keys: Int64s, k: int = 256) -> UInt64s:
    """Return the `k` smallest distinct hashes of `keys`, ascending (int64[n] → uint64[≤ k]). `k` is at most 1024."""
    if not 1 <= k <= _SLOTS // 4:
        raise ValueError(f"k is {k}; expected 1 to {_SLOTS // 4}")
    return _smallest(frozen(keys, np.int64), k)


def merge(left: UInt64s, right: UInt64s, k: int = 256) -> UInt64s:
    """Return the sketch of the union of two sketched sets (uint64 ascending, as `kmv` gives)."""
    return np.union1d(np.asarray(left, np.uint64), np.asarray(right, np.uint64))[:k]


def estimate_distinct(sketch: UInt64s, k: int = 256) -> float:
    """Estimate how many distinct keys a sketch of size `k` has seen; exact while it is not full."""
    if len(sketch) < k:
        return float(len(sketch))
    return float((k - 1) / (float(sketch[k - 1]) / 2.0**64))


@kernel
def _smallest(keys: Int64s, k: int) -> UInt64s:
    """Keep the hashes below a falling threshold in an open-addressing set; 0 marks a free slot.

    The set makes repeated keys cheap, the threshold makes new ones rare: after n distinct keys one in n/k passes it.
    """
    slots = np.zeros(_SLOTS, np.uint64)
    has_zero = False
    used = 0
    threshold = np.uint64(0xFFFFFFFFFFFFFFFF)
    for i in range(len(keys)):
        hashed = mix(keys[i], _SEED)
        if hashed > threshold:
            continue
        if hashed == np.uint64(0):
            has_zero = True
            continue
        at = np.int64(hashed & np.uint64(_SLOTS - 1))
        while slots[at] != np.uint64(0) and slots[at] != hashed:
            at = (at + 1) & (_SLOTS - 1)
        if slots[at] == hashed:
            continue
        slots[at] = hashed
        used += 1
        if used == _FILL:
            kept = np.sort(slots[slots != np.uint64(0)])[:k]
            threshold = kept[k - 1]
            slots[:] = np.uint64(0)
            for value in kept:
                at = np.int64(value & np.uint64(_SLOTS - 1))
                while slots[at] != np.uint64(0):
                    at = (at + 1) & (_SLOTS - 1)
                slots[at] = value
            used = k
    smallest: UInt64s = np.sort(slots[slots != np.uint64(0)])
    if has_zero:
        smallest = np.concatenate((np.zeros(1, np.uint64), smallest))
    return smallest[:k]
