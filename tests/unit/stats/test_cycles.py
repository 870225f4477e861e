"""Series of counts by cycle lose nothing, stay bounded, and keep the last cycle last."""

from __future__ import annotations

import random

from plait.stats.cycles import COUNTED, MOST_SERIES, Count, CycleLength, Cycles, Series, with_batch

EVERY_BATCH = CycleLength(batches=1)


def step(name: str, probes: int, matched: int = 0, matches: int = 0) -> Count:
    return Count(kind="step", name=(name, f"{name}⋈t"), counts=(probes, matched, matches))


def after(*batches: list[Count], length: CycleLength = EVERY_BATCH, history: int = 60, every_ms: int = 1_000) -> Cycles:
    cycles = Cycles()
    for number, counts in enumerate(batches):
        cycles = with_batch(cycles, number * every_ms, counts, length, history)
    return cycles


def only(cycles: Cycles) -> Series:
    (series,) = cycles.series
    return series


def test_batches_of_one_cycle_add_up_and_the_next_cycle_begins_when_it_is_over() -> None:
    counts = [step("r", 10, 2, 7)]
    by_batches = after(*[counts] * 5, length=CycleLength(batches=2))
    assert only(by_batches).counts == ((20, 20, 10), (4, 4, 2), (14, 14, 7))
    assert (by_batches.number, by_batches.batches) == (3, (2, 2, 1))
    # The first batch has no beginning that the clock knows of, so 10 seconds are over after the fifth.
    by_clock = after(*[counts] * 7, length=CycleLength(seconds=10.0), every_ms=2_500)
    assert (by_clock.batches, by_clock.seconds) == ((5, 2), (10.0, 5.0))


def test_a_cycle_without_counts_is_a_gap_and_series_end_together() -> None:
    cycles = after([step("r", 1)], [], [step("r", 3), step("s", 4)], [step("s", 5)])
    assert {series.name[0]: series.counts[0] for series in cycles.series} == {"r": (1, 0, 3, 0), "s": (4, 5)}


def test_what_is_older_than_the_history_is_kept_as_one_sum() -> None:
    cycles = after(*[[step("r", number, 1, 2)] for number in range(10)], history=3)
    series = only(cycles)
    assert (series.counts, series.earlier) == (((7, 8, 9), (1, 1, 1), (2, 2, 2)), (21, 7, 14))
    assert series.totals == (45, 10, 20)
    assert (cycles.number, cycles.batches) == (10, (1, 1, 1))


def test_a_step_that_is_not_in_force_any_more_is_remembered_without_its_zeros() -> None:
    cycles = after([step("r", 8, 4, 4)], *[[]] * 5, history=3)
    assert only(cycles) == Series(kind="step", name=("r", "r⋈t"), counts=((), (), ()), earlier=(8, 4, 4))
    back = with_batch(cycles, 10**6, [step("r", 2)], EVERY_BATCH, 3)
    assert (only(back).counts[0], only(back).earlier) == ((2,), (8, 4, 4))


def test_there_are_never_more_series_than_allowed_and_those_that_count_stay() -> None:
    many = [step(f"r{number:04}", number) for number in range(MOST_SERIES + 50)]
    cycles = after(many, many)
    assert len(cycles.series) == MOST_SERIES
    assert cycles.series[0].name[0] == "r0050"
    assert [series.name for series in cycles.series] == sorted(series.name for series in cycles.series)


def test_what_is_new_is_learned_before_what_was_busy_once_is_remembered() -> None:
    busy = [step(f"r{number:04}", 1_000_000) for number in range(MOST_SERIES)]
    cycles = after(busy, busy, [step("new", 1)], [step("new", 1)], [step("newer", 1)])
    counted = {series.name[0]: series.counts[0] for series in cycles.series}
    assert (len(cycles.series), counted["new"], counted["newer"]) == (MOST_SERIES, (1, 1, 0), (1,))


def test_no_count_is_lost_whatever_the_lengths() -> None:
    for seed in range(30):
        rng = random.Random(seed)
        history, length = rng.randint(1, 6), CycleLength(batches=rng.randint(1, 4))
        sums: dict[tuple[str, tuple[str, ...]], list[int]] = {}
        cycles = Cycles()
        for batch in range(40):
            counts = [
                Count(kind=kind, name=(name,), counts=tuple(rng.randrange(100) for _ in fields))
                for kind, fields in COUNTED.items()
                for name in "ab"
                if rng.random() < 0.3
            ]
            for count in counts:
                total = sums.setdefault((count.kind, count.name), [0] * len(count.counts))
                total[:] = [before + more for before, more in zip(total, count.counts, strict=True)]
            cycles = with_batch(cycles, batch, counts, length, history)
            assert {(each.kind, each.name): list(each.totals) for each in cycles.series} == sums
            assert len(cycles.batches) == len(cycles.seconds) <= history
            assert all(len(counts) <= len(cycles.batches) for each in cycles.series for counts in each.counts)
