"""Compile every kernel ahead of use."""

from __future__ import annotations

import numpy as np

from plait.kernels import hashing, matching, ordering, sketch


def warm() -> None:
    """Compile all kernels, or load them from the on-disk cache.

    Worker processes started afterwards on the same machine find the compiled code instead of compiling it themselves.
    """
    keys = np.array([1, 1, 2, 4], np.int64)
    hashing.combine((keys, keys))
    hashing.partition_of(keys, 2)
    ordering.sort_order(keys, keys)
    sketch.kmv(keys)
    list(
        matching.iter_matches(
            probe_key=keys,
            probe_low=keys,
            probe_high=keys,
            index_key=keys,
            index_tau=keys,
            index_row=None,
            bits=None,
            mask=1,
            capacity=8,
        )
    )
    list(
        matching.iter_cross(
            probe_low=keys,
            probe_high=keys,
            probe_count=len(keys),
            tau=keys,
            row_count=len(keys),
            bits=None,
            mask=1,
            capacity=8,
        )
    )
