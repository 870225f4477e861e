"""What matches come to by group, against going through all pairs."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.kernels import range_sums
from plait.kernels.matching import Looked
from plait.kernels.range_sums import sums_by_pane, sums_by_probe

SMALL = st.integers(-(2**32), 2**32)
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.booleans(), SMALL), max_size=12)
PROBES = st.lists(st.tuples(st.integers(0, 4), st.integers(-2, 11), st.integers(0, 9), SMALL), max_size=8)


def before(values: list[int]) -> np.ndarray:
    return np.concatenate(([0], np.cumsum(values, dtype=np.int64))).astype(np.int64)


def looked(rows: list[Any], probes: list[Any]) -> Looked:
    """Probes find the rows of their key from a time on, for so long."""
    column = [np.array([each[place] for each in probes], np.int64) for place in range(3)]
    return Looked(
        probe_key=column[0],
        probe_low=column[1],
        probe_high=column[1] + column[2],
        index_key=np.array([each[0] for each in rows], np.int64),
        index_tau=np.array([each[1] for each in rows], np.int64),
    )


def matches(rows: list[Any], probes: list[Any]) -> list[tuple[int, int]]:
    """Return the pairs of a probe and a row that counts."""
    return [
        (number, place)
        for number, (key, low, length, _) in enumerate(probes)
        for place, (other, tau, counts, _) in enumerate(rows)
        if key == other and low <= tau <= low + length and counts
    ]


def wanted(rows: list[Any], probes: list[Any], groups: list[int], number: int) -> list[list[int]]:
    """Return by group how many pairs there are, what their probes bring, and what their rows do."""
    made = [[0] * number for _ in range(3)]
    for (probe, place), group in zip(matches(rows, probes), groups, strict=True):
        for values, value in zip(made, (1, probes[probe][3], rows[place][3]), strict=True):
            values[group] += value
    return made


def added(found: Any) -> tuple[list[list[int]], list[int]]:
    """Return all that was yielded as one, and the probes that have matched."""
    pieces = list(found)
    sums = np.sum([np.vstack((each.counts, each.ours, each.theirs)) for each in pieces], axis=0)
    return sums.tolist(), np.flatnonzero(np.sum([each.matched for each in pieces], axis=0)).tolist()


@pytest.mark.parametrize("most", [1 << 31, 3])
@settings(deadline=None, max_examples=150)
@given(rows=ROWS, probes=PROBES, by_pane=st.booleans(), length=st.integers(1, 5))
def test_sums_are_those_of_all_pairs(most: int, rows: list[Any], probes: list[Any], by_pane: bool, length: int) -> None:
    rows, probes = sorted(rows, key=lambda each: each[:2]), sorted(probes, key=lambda each: each[0])
    counts = before([int(each[2]) for each in rows])
    theirs = before([each[3] if each[2] else 0 for each in rows])[np.newaxis]
    ours = np.array([[each[3] for each in probes]], np.int64)
    panes = [(key, tau // length) for key, tau, *_ in rows]
    named = {pane: number for number, pane in enumerate(dict.fromkeys(panes))}
    keys = [each[0] // 2 for each in probes]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    with mock.patch.object(range_sums, "MOST", most):
        if by_pane:
            at = np.array([named[pane] for pane in panes], np.int32)
            begins = np.array([*(panes.index(pane) for pane in named), len(rows)], np.int32)
            found = added(sums_by_pane(looked(rows, probes), at, begins, counts, ours, theirs))
            groups, number = [named[panes[place]] for _, place in matches(rows, probes)], len(named)
        else:
            of = np.array([numbers[key] for key in keys], np.int32)
            found = added(sums_by_probe(looked(rows, probes), of, counts, ours, theirs))
            groups, number = [numbers[keys[probe]] for probe, _ in matches(rows, probes)], len(numbers)
    made = wanted(rows, probes, groups, number)
    assert found == (made, sorted({probe for probe, _ in matches(rows, probes)}))
