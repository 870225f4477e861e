"""Pairs of probe and stored row with equal keys, in bounded blocks.

A pair (probe i, row r) is a match if ``probe_key[i] == key(r)``, ``probe_low[i] ≤ τ(r) ≤ probe_high[i]`` (closed on
both ends) and ``bits[r] & mask``. Every match is yielded exactly once, in order of (probe, index position).

Both sides are sorted by key, so this is a merge. It gallops on either side: few probes into millions of rows cost a
logarithm each, as many probes as rows cost a scan. Inside a run of equal keys the rows ascend in τ; the range of a
probe is searched from where the range of the previous probe began. Nothing is expanded before it is tested, and a
block that is full stops the merge in the middle of a range: a key with millions of rows on both sides needs no more
memory than one block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from plait.kernels.compiled import Int32s, Int64s, frozen, helper, kernel

_NO_INT64: Int64s = frozen(np.zeros(0, np.int64), np.int64)
_NO_INT32: Int32s = frozen(np.zeros(0, np.int32), np.int32)
_FIRST_BLOCK = 4096


def iter_matches(
    *,
    probe_key: Int64s,
    probe_low: Int64s | None,
    probe_high: Int64s | None,
    index_key: Int64s,
    index_tau: Int64s | None,
    index_row: Int32s | None,
    bits: Int64s | None,
    mask: int,
    capacity: int = 1 << 20,
) -> Iterator[tuple[Int32s, Int32s]]:
    """Yield matches as (probe position, row), int32 arrays of equal length between 1 and `capacity`.

    `probe_key` (int64[n]) and `index_key` (int64[m]) ascend, `index_tau` (int64[m]) ascends within equal keys.
    `index_row` None: the row is the index position. A bound that is None, or an index without τ, is no test. `bits`
    (int64[rows], by row) None: no test; `mask` has the bits of which one is enough.
    """
    tests = tests_of(probe_low, probe_high, index_tau, index_row, bits, mask)
    keys = frozen(probe_key, np.int64), frozen(index_key, np.int64)
    yield from filled(_match, (*keys, tests), [-1, 0, 0, 0, 0, 0, 0], len(probe_key), capacity)


def iter_ranges(
    *,
    probe_key: Int64s,
    probe_low: Int64s | None,
    probe_high: Int64s | None,
    index_key: Int64s,
    index_tau: Int64s | None,
    panes: tuple[int, int] | None = None,
    capacity: int = 1 << 20,
) -> Iterator[tuple[Int32s, Int32s, Int32s]]:
    """Yield where matches lie, without going through them: (probe position, begin, end), int32 arrays of equal length
    between 1 and `capacity`, the matches of a probe being the index positions in [begin, end).

    Arguments as of `iter_matches`. `panes`, (length, start) in the unit of τ: no range reaches over a bound
    ``start + n · length``, so a probe may have several; the index must have τ then.
    """
    if capacity < 1:
        raise ValueError(f"capacity is {capacity}; a block holds at least one range")
    length, start = panes or (0, 0)
    # Where bounds are no test, τ is read for panes.
    tests = tests_of(probe_low, probe_high, index_tau, None, None, 0)
    if panes is not None:
        tests = tests._replace(tau=frozen(index_tau, np.int64))
    keys, state = (frozen(probe_key, np.int64), frozen(index_key, np.int64)), np.array([-1, 0, 0, 0, 0, 0, 0], np.int64)
    size = min(capacity, max(_FIRST_BLOCK, len(probe_key)))
    while state[0] < len(probe_key):
        block = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32)
        count = _find_ranges(*keys, tests, length, start, state, *block)
        if count:
            yield _trimmed(block[0], count), _trimmed(block[1], count), _trimmed(block[2], count)


def iter_cross(
    *,
    probe_low: Int64s | None,
    probe_high: Int64s | None,
    probe_count: int,
    tau: Int64s | None,
    row_count: int,
    bits: Int64s | None,
    mask: int,
    capacity: int = 1 << 20,
) -> Iterator[tuple[Int32s, Int32s]]:
    """Yield the matches of `probe_count` probes with all of `row_count` rows: as `iter_matches`, but no key to agree
    on.

    `tau` (int64[row_count]) may be in any order.
    """
    tests = tests_of(probe_low, probe_high, tau, None, bits, mask)
    begins, ends = frozen(np.zeros(probe_count, np.int64), np.int64), frozen(np.full(probe_count, row_count), np.int64)
    yield from filled(fill_ranges, (begins, ends, tests), [0, 0], probe_count, capacity)


class Looked(NamedTuple):
    """What is looked for, and where: arguments as of `iter_matches` and `iter_ranges`."""

    probe_key: Int64s
    probe_low: Int64s | None
    probe_high: Int64s | None
    index_key: Int64s
    index_tau: Int64s | None

    def tests(self) -> Tests:
        """Return the bounds as kernels read them."""
        return tests_of(self.probe_low, self.probe_high, self.index_tau, None, None, 0)


class Tests(NamedTuple):
    """What a pair must pass beside its keys, as kernels read it: an array that `has_` denies is empty.

    `low` and `high` by probe, `tau` and `row` by index position, `bits` by row. Kernels unpack it before they loop,
    because Numba counts references wherever it takes an array out of a tuple: six times slower inside.
    """

    low: Int64s
    high: Int64s
    tau: Int64s
    row: Int32s
    bits: Int64s
    mask: int
    has_low: bool
    has_high: bool
    has_row: bool
    has_bits: bool


def tests_of(
    low: Int64s | None,
    high: Int64s | None,
    tau: Int64s | None,
    row: Int32s | None,
    bits: Int64s | None,
    mask: int,
) -> Tests:
    """Return the tests; what is None is no test, and so is a bound on an index without τ."""
    tau = None if low is None and high is None else tau
    return Tests(
        low=_NO_INT64 if low is None else frozen(low, np.int64),
        high=_NO_INT64 if high is None else frozen(high, np.int64),
        tau=_NO_INT64 if tau is None else frozen(tau, np.int64),
        row=_NO_INT32 if row is None else frozen(row, np.int32),
        bits=_NO_INT64 if bits is None else frozen(bits, np.int64),
        mask=mask,
        has_low=tau is not None and low is not None,
        has_high=tau is not None and high is not None,
        has_row=row is not None,
        has_bits=bits is not None,
    )


def filled(
    kernel_: Callable[..., int], given: tuple[object, ...], begin: list[int], probe_count: int, capacity: int
) -> Iterator[tuple[Int32s, Int32s]]:
    """Yield the pairs that a kernel finds, block by block: it fills one from where `state`, which begins as `begin`,
    says that it stopped, and returns how many pairs the block holds; ``state[0] == probe_count`` when all are out.
    """
    if capacity < 1:
        raise ValueError(f"capacity is {capacity}; a block holds at least one pair")
    state = np.array(begin, np.int64)
    for probes, rows in _blocks(probe_count, capacity):
        count = kernel_(*given, state, probes, rows)
        if count:
            yield _trimmed(probes, count), _trimmed(rows, count)
        if state[0] >= probe_count:
            return


def _blocks(probe_count: int, capacity: int) -> Iterator[tuple[Int32s, Int32s]]:
    """Yield room for pairs, growing up to `capacity`: most calls find few, and room costs time."""
    size = min(capacity, max(_FIRST_BLOCK, 2 * probe_count))
    while True:
        yield np.empty(size, np.int32), np.empty(size, np.int32)
        size = min(capacity, 4 * size)


def _trimmed(block: Int32s, count: int) -> Int32s:
    """Return the first `count` entries without keeping a mostly empty block alive."""
    return block[:count] if 2 * count >= len(block) else block[:count].copy()


@helper
def at_least(values: Int64s, start: int, end: int, target: int) -> int:
    """Return the first position in [start, end) whose value is ≥ `target`, else `end`; logarithmic in the distance."""
    if start >= end or values[start] >= target:
        return start
    low, step = start, 1
    high = start + 1
    while high < end and values[high] < target:
        low = high
        step *= 2
        high = low + step
    high = min(high, end)
    while high - low > 1:
        middle = (low + high) >> 1
        if values[middle] < target:
            low = middle
        else:
            high = middle
    return high


@helper
def beyond(values: Int64s, start: int, end: int, target: int) -> int:
    """Return the first position in [start, end) whose value is > `target`, else `end`; logarithmic in the distance."""
    if start >= end or values[start] > target:
        return start
    low, step = start, 1
    high = start + 1
    while high < end and values[high] <= target:
        low = high
        step *= 2
        high = low + step
    high = min(high, end)
    while high - low > 1:
        middle = (low + high) >> 1
        if values[middle] <= target:
            low = middle
        else:
            high = middle
    return high


@helper
def next_range(
    probe_key: Int64s,
    index_key: Int64s,
    low: Int64s,
    high: Int64s,
    tau: Int64s,
    has_low: bool,
    has_high: bool,
    probe: int,
    run: int,
    run_end: int,
    began: int,
    ended: int,
) -> tuple[int, int, int, int, int, int, int]:
    """Return the next probe whose key is stored, its run [run, run_end) of equal keys, and the range [at, at_end) of
    that within the bounds, which may be empty; as many as there are probes if there is none.

    `began` and `ended`: where the range of the probe before began and ended.
    """
    probes = len(probe_key)
    probe += 1
    while probe < probes:
        key = probe_key[probe]
        if run == run_end or index_key[run] != key:
            run = at_least(index_key, run_end, len(index_key), key)
            run_end = run
            if run == len(index_key):
                break
            if index_key[run] != key:
                probe = at_least(probe_key, probe + 1, probes, index_key[run])
                continue
            run_end = beyond(index_key, run + 1, len(index_key), key)
            began = run
            ended = run
        at, at_end = run, run_end
        if has_low:
            first = low[probe]
            # Probes of one key mostly ascend in τ; one that does not starts over at the beginning of the run.
            start = began if tau[began] < first else run
            at = at_least(tau, start, run_end, first)
            began = min(at, run_end - 1)
        if has_high:
            last = high[probe]
            start = ended if at < ended and tau[ended - 1] <= last else at
            at_end = beyond(tau, start, run_end, last)
            ended = at_end
        return probe, run, run_end, at, at_end, began, ended
    return probes, run, run_end, run, run, began, ended


@kernel
def _match(
    probe_key: Int64s, index_key: Int64s, tests: Tests, state: Int64s, out_probe: Int32s, out_row: Int32s
) -> int:
    """Fill a block (`filled`).

    `state`: the probe, its run [run, run_end) of equal keys, what is left to emit of its range [at, at_end), and
    where that range began and ends.
    """
    low, high, tau, row_at, bits, mask, has_low, has_high, has_row, has_bits = tests
    probes, capacity, count = len(probe_key), len(out_probe), 0
    probe, run, run_end, at, at_end, began, ended = state[0], state[1], state[2], state[3], state[4], state[5], state[6]
    while True:
        while at < at_end and count < capacity:
            row = np.int64(row_at[at]) if has_row else at
            if not has_bits or bits[row] & mask != 0:
                out_probe[count] = probe
                out_row[count] = row
                count += 1
            at += 1
        if at < at_end:
            break
        probe, run, run_end, at, at_end, began, ended = next_range(
            probe_key, index_key, low, high, tau, has_low, has_high, probe, run, run_end, began, ended
        )
        if probe >= probes:
            break
    state[0], state[1], state[2], state[3], state[4] = probe, run, run_end, at, at_end
    state[5], state[6] = began, ended
    return count


@kernel
def _find_ranges(
    probe_key: Int64s,
    index_key: Int64s,
    tests: Tests,
    pane_us: int,
    start_us: int,
    state: Int64s,
    out_probe: Int32s,
    out_begin: Int32s,
    out_end: Int32s,
) -> int:
    """Fill a block with ranges of index positions, one for each probe and pane that has any; `state` as of `_match`."""
    low, high, tau, _, _, _, has_low, has_high, _, _ = tests
    probes, capacity, count = len(probe_key), len(out_probe), 0
    probe, run, run_end, at, at_end, began, ended = state[0], state[1], state[2], state[3], state[4], state[5], state[6]
    while True:
        while at < at_end and count < capacity:
            end = at_end
            if pane_us > 0:
                pane_end = (tau[at] - start_us) // pane_us * pane_us + start_us + pane_us
                end = at_least(tau, at, at_end, pane_end)
            out_probe[count] = probe
            out_begin[count] = at
            out_end[count] = end
            count += 1
            at = end
        if at < at_end:
            break
        probe, run, run_end, at, at_end, began, ended = next_range(
            probe_key, index_key, low, high, tau, has_low, has_high, probe, run, run_end, began, ended
        )
        if probe >= probes:
            break
    state[0], state[1], state[2], state[3], state[4] = probe, run, run_end, at, at_end
    state[5], state[6] = began, ended
    return count


@kernel
def fill_ranges(begins: Int64s, ends: Int64s, tests: Tests, state: Int64s, out_probe: Int32s, out_row: Int32s) -> int:
    """Fill a block (`filled`) with what passes in each probe's range [begin, end) of index positions.

    `state`: the probe, the index position.
    """
    low, high, tau, row_at, bits, mask, has_low, has_high, has_row, has_bits = tests
    probes, capacity, count = len(begins), len(out_probe), 0
    probe, at = state[0], state[1]
    while probe < probes:
        end = ends[probe]
        while at < end and count < capacity:
            row = np.int64(row_at[at]) if has_row else at
            if (
                (not has_low or low[probe] <= tau[at])
                and (not has_high or tau[at] <= high[probe])
                and (not has_bits or bits[row] & mask != 0)
            ):
                out_probe[count] = probe
                out_row[count] = row
                count += 1
            at += 1
        if at < end:
            break
        probe += 1
        if probe < probes:
            at = begins[probe]
    state[0], state[1] = probe, at
    return count
