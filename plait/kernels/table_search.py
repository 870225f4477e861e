"""Search for a choice of partitions: clusters of key groups that share rows, and moves and swaps that make it cheaper.

What a choice costs is said in `plait.optimizer.partitioning.objective`. Here it is changed group by group. For each
row class of a group the most that its other groups want in each partition is looked up; so a look at a group costs as
much as its classes have pins, whatever the number of partitions.

The largest load alone is a bad guide: of two partitions that are both the fullest, relieving one gains nothing. So
loads are judged by their power mean of an exponent that the caller raises; exponent 0 stands for the maximum itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.kernels.compiled import Int64s, helper, kernel

Float64s = NDArray[np.float64]

_TINY = 1e-9


class Incidence(NamedTuple):
    """Classes and groups both ways, all read-only: `start`, `group`, `rows` of the pins by class, `source` of a class;
    `first` and `pin` of the pins by group; `row_class` of a pin. `load` and `latency` by source.
    """

    source: Int64s
    start: Int64s
    group: Int64s
    rows: Float64s
    row_class: Int64s
    first: Int64s
    pin: Int64s
    load: Float64s
    latency: Float64s
    processing: float


@kernel
def cluster(incidence: Incidence, weight: Float64s, cap: float, order: Int64s, label: Int64s) -> int:
    """Let each group in `order` join the cluster it shares most rows with, none heavier than `cap`; return the moves.

    `label` (int64[groups]) is changed in place; a label is the number of some group.
    """
    heavy = np.zeros(len(label))
    for group in range(len(label)):
        heavy[label[group]] += weight[group]
    score, touched = np.zeros(len(label)), np.zeros(len(label), np.int64)
    moves = 0
    for group in order:
        count = 0
        for at in range(incidence.first[group], incidence.first[group + 1]):
            pin = incidence.pin[at]
            row_class = incidence.row_class[pin]
            low, high = incidence.start[row_class], incidence.start[row_class + 1]
            for other in range(low, high):
                if other != pin:
                    theirs = label[incidence.group[other]]
                    if score[theirs] == 0.0:
                        touched[count] = theirs
                        count += 1
                    score[theirs] += min(incidence.rows[pin], incidence.rows[other]) / (high - low - 1) + 1e-300
        mine = label[group]
        best, best_score = mine, score[mine]
        for at in range(count):
            theirs = touched[at]
            if score[theirs] > best_score and heavy[theirs] + weight[group] <= cap:
                best, best_score = theirs, score[theirs]
        for at in range(count):
            score[touched[at]] = 0.0
        if best != mine:
            heavy[mine] -= weight[group]
            heavy[best] += weight[group]
            label[group] = best
            moves += 1
    return moves


@helper
def _level(incidence: Incidence, processed: Float64s, exponent: float) -> float:
    """Return what processing costs: the power mean of the loads of each source, added up."""
    found = 0.0
    for source in range(processed.shape[0]):
        highest = 0.0
        for partition in range(processed.shape[1]):
            highest = max(highest, processed[source, partition] * incidence.latency[source, partition])
        if exponent == 0.0 or highest <= 0.0:
            found += highest
            continue
        powers = 0.0
        for partition in range(processed.shape[1]):
            load = max(processed[source, partition], 0.0) * incidence.latency[source, partition]
            powers += (load / highest) ** exponent
        found += highest * (powers / processed.shape[1]) ** (1.0 / exponent)
    return found * incidence.processing


@helper
def _shift(incidence: Incidence, processed: Float64s, group: int, to: int, by: float) -> None:
    for source in range(processed.shape[0]):
        processed[source, to] += by * incidence.load[source, group]


@helper
def _arrivals(
    incidence: Incidence, choice: Int64s, group: int, highest: Float64s, touched: Int64s, arriving: Float64s
) -> float:
    """Write what the group adds to what is sent in each partition, as if it were in none; return it for its own.

    `highest` (float64[partitions]) is zero before and after; `touched` is scratch.
    """
    partitions = incidence.latency.shape[1]
    arriving[:] = 0.0
    for at in range(incidence.first[group], incidence.first[group + 1]):
        pin = incidence.pin[at]
        row_class = incidence.row_class[pin]
        wanted, source = incidence.rows[pin], incidence.source[row_class]
        low, high = incidence.start[row_class], incidence.start[row_class + 1]
        count = 0
        for other in range(low, high):
            if other != pin:
                there = choice[incidence.group[other]]
                if there >= 0 and incidence.rows[other] > 0.0:
                    if highest[there] == 0.0:
                        touched[count] = there
                        count += 1
                    highest[there] = max(highest[there], incidence.rows[other])
        for partition in range(partitions):
            arriving[partition] += incidence.latency[source, partition] * wanted
        for at_touched in range(count):
            there = touched[at_touched]
            arriving[there] -= incidence.latency[source, there] * min(wanted, highest[there])
            highest[there] = 0.0
    return arriving[choice[group]] if choice[group] >= 0 else 0.0


@helper
def _scales(incidence: Incidence, processed: Float64s) -> Float64s:
    """Return the even load of each source, by which loads are divided so that their powers stay within bounds."""
    scales = np.ones(processed.shape[0])
    for source in range(processed.shape[0]):
        even = incidence.load[source].sum() * incidence.latency[source].mean() / processed.shape[1]
        if even > 0.0:
            scales[source] = even
    return scales


@helper
def _summarize(incidence: Incidence, processed: Float64s, exponent: float, scales: Float64s, summary: Float64s) -> None:
    """Write for each source (float64[sources, 2]) the sum of powers of the loads, and the largest of them."""
    for source in range(processed.shape[0]):
        powers, largest = 0.0, 0.0
        for partition in range(processed.shape[1]):
            load = max(processed[source, partition], 0.0) * incidence.latency[source, partition]
            if exponent > 0.0:
                powers += (load / scales[source]) ** exponent
            largest = max(largest, load)
        summary[source, 0], summary[source, 1] = powers, largest


@helper
def _level_with(
    incidence: Incidence,
    processed: Float64s,
    exponent: float,
    scales: Float64s,
    summary: Float64s,
    group: int,
    there: int,
) -> float:
    """Return `_level` with a group added to a partition; `summary` is of the loads without it."""
    found = 0.0
    for source in range(processed.shape[0]):
        latency = incidence.latency[source, there]
        before = max(processed[source, there], 0.0) * latency
        load = before + incidence.load[source, group] * latency
        if exponent == 0.0:
            found += max(summary[source, 1], load)
        else:
            scale = scales[source]
            powers = summary[source, 0] - (before / scale) ** exponent + (load / scale) ** exponent
            found += scale * (max(powers, 0.0) / processed.shape[1]) ** (1.0 / exponent)
    return found * incidence.processing


@kernel
def descend(incidence: Incidence, order: Int64s, exponent: float, choice: Int64s, processed: Float64s) -> int:
    """Move each group in `order` to where it costs least, if that is less; return the moves.

    `choice` (int64[groups], -1: in none yet, to be placed) and `processed` (float64[sources, partitions], the loads
    under the choice) are changed in place.
    """
    partitions = incidence.latency.shape[1]
    highest, arriving = np.zeros(partitions), np.zeros(partitions)
    touched = np.zeros(partitions, np.int64)
    scales, summary = _scales(incidence, processed), np.zeros((processed.shape[0], 2))
    moves = 0
    for group in order:
        here = choice[group]
        _arrivals(incidence, choice, group, highest, touched, arriving)
        if here >= 0:
            _shift(incidence, processed, group, here, -1.0)
        _summarize(incidence, processed, exponent, scales, summary)
        best, least = here, np.inf
        if here >= 0:
            least = arriving[here] + _level_with(incidence, processed, exponent, scales, summary, group, here)
        for there in range(partitions):
            # The loads alone cost something: most partitions need no second look.
            if there != here and arriving[there] < least:
                cost = arriving[there] + _level_with(incidence, processed, exponent, scales, summary, group, there)
                if best < 0 or cost < least - _TINY * abs(least):
                    best, least = there, cost
        _shift(incidence, processed, group, best, 1.0)
        if best != here:
            choice[group] = best
            moves += 1
    return moves


@kernel
def swap(incidence: Incidence, exponent: float, most: int, choice: Int64s, processed: Float64s) -> int:
    """Exchange groups of the fullest partitions with others', at most so many times; return how often it paid.

    For each source the exchange is tried that levels the fullest partition and another best; rows that are then sent
    differently are counted in whether it pays.
    """
    partitions = incidence.latency.shape[1]
    highest, arriving = np.zeros(partitions), np.zeros(partitions)
    touched = np.zeros(partitions, np.int64)
    done = 0
    while done < most:
        before = done
        for source in range(processed.shape[0]):
            one, other = _best_exchange(incidence, source, choice, processed)
            if one < 0:
                continue
            here, there = choice[one], choice[other]
            change = -_level(incidence, processed, exponent)
            change -= _arrivals(incidence, choice, one, highest, touched, arriving) - arriving[there]
            choice[one] = there
            change -= _arrivals(incidence, choice, other, highest, touched, arriving) - arriving[here]
            choice[other] = here
            for group, sign in ((one, 1.0), (other, -1.0)):
                _shift(incidence, processed, group, here, -sign)
                _shift(incidence, processed, group, there, sign)
            change += _level(incidence, processed, exponent)
            if change < -_TINY:
                done += 1
                continue
            choice[one], choice[other] = here, there
            for group, sign in ((one, 1.0), (other, -1.0)):
                _shift(incidence, processed, group, here, sign)
                _shift(incidence, processed, group, there, -sign)
        if done == before:
            break
    return done


@helper
def _best_exchange(incidence: Incidence, source: int, choice: Int64s, processed: Float64s) -> tuple[int, int]:
    """Return the groups, one of the fullest partition, whose exchange leaves the fuller of the two least; or -1, -1."""
    full, most = 0, 0.0
    for partition in range(processed.shape[1]):
        if processed[source, partition] * incidence.latency[source, partition] > most:
            full, most = partition, processed[source, partition] * incidence.latency[source, partition]
    best = most * (1.0 - _TINY)
    found_one, found_other = -1, -1
    for one in range(len(choice)):
        if choice[one] != full or incidence.load[source, one] == 0.0:
            continue
        for other in range(len(choice)):
            there = choice[other]
            moved = incidence.load[source, one] - incidence.load[source, other]
            if there == full or moved <= 0.0:
                continue
            left = (processed[source, full] - moved) * incidence.latency[source, full]
            reached = (processed[source, there] + moved) * incidence.latency[source, there]
            if max(left, reached) < best:
                best, found_one, found_other = max(left, reached), one, other
    return found_one, found_other
