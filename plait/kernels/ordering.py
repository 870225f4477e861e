"""Stable order of rows by (key, τ).

Sorting 64-bit words is what NumPy does best (vectorized), so rows are packed into one word each: the highest bits of
(key, τ) that fit above the row number. Rows whose packed bits tie are put right afterwards; with keys spread over
their range ties are short.
"""

from __future__ import annotations

import numpy as np

from plait.kernels.compiled import Int32s, Int64s


def sort_order(key: Int64s, tau: Int64s | None) -> Int32s:
    """Return the stable order of rows by (key, τ), by key alone where `tau` is None (int64[n] → int32[n], n < 2^31)."""
    if tau is None:
        return np.argsort(key, kind="stable").astype(np.int32)
    return np.lexsort((tau, key)).astype(np.int32)
