"""What matches come to, added up by group while they are looked for: no pair is made, and no range either.

As in `plait.kernels.matching`, the matches of a probe are a range [at, end) of index positions. How many of them count
is told by numbers before each position, and so is what a column of theirs comes to: prefix sums, a row of `theirs` for
each column. What a probe brings itself, a row of `ours` for each column, is there once for each match. Sums are exact
as long as they fit: a call stops before the matches of all groups together come to 2³¹, so that limbs of 32 bits do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from plait.kernels.compiled import Int32s, Int64s, frozen, helper, kernel
from plait.kernels.matching import Looked, Tests, next_range

MOST = 1 << 31


class Sums(NamedTuple):
    """By group, `counts` of matches (int64[groups]), and what columns come to, `ours` and `theirs` (int64[columns,
    groups]); `matched`: the probes that have any.
    """

    counts: Int64s
    ours: Int64s
    theirs: Int64s
    matched: Int32s


def sums_by_probe(looked: Looked, groups: Int32s, counts: Int64s, ours: Int64s, theirs: Int64s) -> Iterator[Sums]:
    """Yield sums by the group of the probe. `groups` (int32[probes]): ascending from 0; `counts`, `theirs`
    (int64[positions + 1], int64[columns, positions + 1]): sums of what comes before each position; `ours`
    (int64[columns, probes]).
    """
    number = int(groups[-1]) + 1 if len(groups) else 0
    given = frozen(groups, np.int32), frozen(counts, np.int64), frozen(ours, np.int64), frozen(theirs, np.int64)
    keys, state = (frozen(looked.probe_key, np.int64), frozen(looked.index_key, np.int64)), _begun()
    while state[0] < len(looked.probe_key):
        found = _nothing(number, len(ours), len(theirs), len(groups))
        _add_by_probe(*keys, looked.tests(), *given, state, MOST, found.counts, found.ours, found.theirs, found.matched)
        yield found


def sums_by_pane(
    looked: Looked, panes: Int32s, pane_begins: Int32s, counts: Int64s, ours: Int64s, theirs: Int64s
) -> Iterator[Sums]:
    """Yield sums by what stands in the index. `panes` (int32[positions]): the number of each position's group,
    ascending from 0, of rows with one key; `pane_begins` (int32[groups + 1]): where they begin, and end. The others as
    of `sums_by_probe`. Of a group that a probe matches as a whole only that is noted, however many there are.
    """
    number = len(pane_begins) - 1
    given = frozen(panes, np.int32), frozen(pane_begins, np.int32)
    given_sums = frozen(counts, np.int64), frozen(ours, np.int64), frozen(theirs, np.int64)
    keys, state = (frozen(looked.probe_key, np.int64), frozen(looked.index_key, np.int64)), _begun()
    in_panes = np.diff(counts[pane_begins]), np.diff(theirs[:, pane_begins], axis=1)
    while state[0] < len(looked.probe_key):
        found = _nothing(number, len(ours), len(theirs), len(looked.probe_key))
        whole, whole_ours = np.zeros(number + 1, np.int64), np.zeros((len(ours), number + 1), np.int64)
        _add_by_pane(
            *keys,
            looked.tests(),
            *given,
            *given_sums,
            state,
            MOST,
            found.counts,
            found.ours,
            found.theirs,
            found.matched,
            whole,
            whole_ours,
        )
        probes = np.cumsum(whole[:-1])
        found.counts[:] += probes * in_panes[0]
        found.theirs[:] += probes * in_panes[1]
        found.ours[:] += np.cumsum(whole_ours[:, :-1], axis=1) * in_panes[0]
        yield found


def _begun() -> Int64s:
    return np.array([-1, 0, 0, 0, 0, 0, 0], np.int64)


def _nothing(groups: int, ours: int, theirs: int, probes: int) -> Sums:
    return Sums(
        counts=np.zeros(groups, np.int64),
        ours=np.zeros((ours, groups), np.int64),
        theirs=np.zeros((theirs, groups), np.int64),
        matched=np.zeros(probes, np.int32),
    )


@helper
def _add(
    group: int,
    probe: int,
    at: int,
    end: int,
    counts: Int64s,
    ours: Int64s,
    theirs: Int64s,
    out_counts: Int64s,
    out_ours: Int64s,
    out_theirs: Int64s,
) -> None:
    """Add the matches of a probe at [at, end) to a group."""
    count = counts[end] - counts[at]
    out_counts[group] += count
    for column in range(ours.shape[0]):
        out_ours[column, group] += ours[column, probe] * count
    for column in range(theirs.shape[0]):
        out_theirs[column, group] += theirs[column, end] - theirs[column, at]


@kernel
def _add_by_probe(
    probe_key: Int64s,
    index_key: Int64s,
    tests: Tests,
    groups: Int32s,
    counts: Int64s,
    ours: Int64s,
    theirs: Int64s,
    state: Int64s,
    most: int,
    out_counts: Int64s,
    out_ours: Int64s,
    out_theirs: Int64s,
    matched: Int32s,
) -> None:
    """Add up the matches of probes, from where `state` says on (`plait.kernels.matching._match`), as long as they fit:
    what does not is left in its range [at, end).
    """
    low, high, tau, _, _, _, has_low, has_high, _, _ = tests
    probes = len(probe_key)
    probe, run, run_end, at, at_end, began, ended = state[0], state[1], state[2], state[3], state[4], state[5], state[6]
    total = np.int64(0)
    while True:
        if at < at_end:
            if total > 0 and total + at_end - at > most:
                break
            total += at_end - at
            if counts[at_end] > counts[at]:
                matched[probe] = 1
                _add(groups[probe], probe, at, at_end, counts, ours, theirs, out_counts, out_ours, out_theirs)
            at = at_end
        probe, run, run_end, at, at_end, began, ended = next_range(
            probe_key, index_key, low, high, tau, has_low, has_high, probe, run, run_end, began, ended
        )
        if probe >= probes:
            break
    state[0], state[1], state[2], state[3], state[4] = probe, run, run_end, at, at_end
    state[5], state[6] = began, ended


@kernel
def _add_by_pane(
    probe_key: Int64s,
    index_key: Int64s,
    tests: Tests,
    panes: Int32s,
    pane_begins: Int32s,
    counts: Int64s,
    ours: Int64s,
    theirs: Int64s,
    state: Int64s,
    most: int,
    out_counts: Int64s,
    out_ours: Int64s,
    out_theirs: Int64s,
    matched: Int32s,
    whole: Int64s,
    whole_ours: Int64s,
) -> None:
    """As `_add_by_probe`, by group of the index. `whole`: by group, how many more probes match all of it than of the
    group before, and in `whole_ours` how much more they bring.
    """
    low, high, tau, _, _, _, has_low, has_high, _, _ = tests
    probes = len(probe_key)
    probe, run, run_end, at, at_end, began, ended = state[0], state[1], state[2], state[3], state[4], state[5], state[6]
    total = np.int64(0)
    while True:
        if at < at_end:
            if total > 0 and total + at_end - at > most:
                break
            total += at_end - at
            if counts[at_end] > counts[at]:
                matched[probe] = 1
                first, last = panes[at], panes[at_end - 1]
                if at > pane_begins[first]:
                    end = min(int(pane_begins[first + 1]), at_end)
                    _add(first, probe, at, end, counts, ours, theirs, out_counts, out_ours, out_theirs)
                    first += 1
                if first <= last and at_end < pane_begins[last + 1]:
                    begin = int(pane_begins[last])
                    _add(last, probe, begin, at_end, counts, ours, theirs, out_counts, out_ours, out_theirs)
                    last -= 1
                if first <= last:
                    whole[first] += 1
                    whole[last + 1] -= 1
                    for column in range(ours.shape[0]):
                        whole_ours[column, first] += ours[column, probe]
                        whole_ours[column, last + 1] -= ours[column, probe]
            at = at_end
        probe, run, run_end, at, at_end, began, ended = next_range(
            probe_key, index_key, low, high, tau, has_low, has_high, probe, run, run_end, began, ended
        )
        if probe >= probes:
            break
    state[0], state[1], state[2], state[3], state[4] = probe, run, run_end, at, at_end
    state[5], state[6] = began, ended


__all__ = ["Sums", "sums_by_pane", "sums_by_probe"]
