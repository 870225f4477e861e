"""Compile every kernel ahead of use."""

from __future__ import annotations

import numpy as np

from plait.kernels import (
    bands,
    classing,
    dispatching,
    hashing,
    many_probes,
    matching,
    ordering,
    range_sums,
    range_trees,
    sessions,
    sketch,
    value_hashing,
)
from plait.kernels.compiled import Int64s


def warm() -> None:
    """Compile all kernels, or load them from the on-disk cache.

    Worker processes started afterwards on the same machine find the compiled code instead of compiling it themselves.
    """
    keys = np.array([1, 1, 2, 4], np.int64)
    hashing.combine((keys, keys))
    hashing.partition_of(keys, 2)
    dispatching.dispatch(keys.reshape(2, 2), keys[:2], 5)
    _warm_values(keys)
    _warm_sorting()
    _warm_bands(keys)
    _warm_ranges(keys)
    _warm_abreast(keys)
    sketch.kmv(keys)
    sessions.sessions(keys, keys, keys, 1)
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


def _warm_values(keys: Int64s) -> None:
    texts, starts = np.frombuffer(b"ab", np.uint8), np.array([0, 1, 2], np.int64)
    value_hashing.hash_texts(texts, starts)
    value_hashing.hash_narrow(keys.astype(np.int32))
    value_hashing.hash_wide(keys.reshape(2, 2))
    classes = classing.classes_of_texts(texts, starts, texts, starts)
    classing.classes_of_numbers(keys, keys)
    classing.keep_bits(classes, keys.reshape(4, 1), np.zeros((2, 1), np.int64))
    classing.bit_counts(keys, 63)


def _warm_bands(keys: Int64s) -> None:
    list(
        bands.iter_bands(
            probe_from=keys,
            probe_to=keys,
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
    rows = np.arange(len(keys), dtype=np.int32)
    bands.within(keys, keys, keys, rows, rows)


def _warm_ranges(keys: Int64s) -> None:
    places = np.array([0], np.int32)
    range_trees.sums_in(range_trees.sum_tree(keys.astype(np.float64)), places, places)
    range_trees.least_in(range_trees.least_tree(keys), places, places)
    list(
        matching.iter_ranges(
            probe_key=keys, probe_low=keys, probe_high=keys, index_key=keys, index_tau=keys, panes=(1, 0), capacity=8
        )
    )
    looked = matching.Looked(keys, keys, keys, keys, keys)
    groups, before = np.arange(len(keys), dtype=np.int32), np.arange(len(keys) + 1, dtype=np.int64)
    ours, theirs = np.stack([keys]), np.stack([before])
    list(range_sums.sums_by_probe(looked, groups, before, ours, theirs))
    list(range_sums.sums_by_pane(looked, groups, before.astype(np.int32), before, ours, theirs))


def _warm_abreast(keys: Int64s) -> None:
    flags, rows = np.zeros(len(keys), np.uint8), np.arange(len(keys), dtype=np.int32)
    columns = many_probes.Columns(values=keys, flags=flags, index_key=keys, index_tau=keys, index_row=rows)
    joined = many_probes.start_abreast(np.zeros((many_probes.START_FIELDS, 1), np.int64), columns)
    steps = np.zeros((many_probes.STEP_FIELDS, 1), np.int64)
    many_probes.find_abreast(steps, np.zeros((many_probes.EQUALITY_FIELDS, 1), np.int64), joined, columns, 1)


def _warm_sorting() -> None:
    """Take every way of `ordering`: all bits fit, short ties, long ties."""
    wide = np.array([2**63 - 1, -(2**63), 0, 0], np.int64)
    hot = np.concatenate((wide, np.zeros(96, np.int64)))
    falling = np.arange(len(hot), 0, -1, dtype=np.int64)
    ordering.sort_order(falling, falling)
    ordering.sort_order(wide, wide)
    ordering.sort_order(hot, falling)
