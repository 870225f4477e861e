"""How long rows wait, over the last batches."""

from __future__ import annotations

import random

from plait.stats.latency import Arrived, Latency, LatencyWindow


def batches(window: LatencyWindow, *waits_ms: int, rows: float = 1) -> LatencyWindow:
    """Add a batch for each wait, one a second."""
    for number, wait in enumerate(waits_ms):
        now = 10_000 + 1000 * number
        window.add([Arrived(at_ms=now - wait, rows=rows)], now)
    return window


def test_half_of_the_rows_waited_no_longer_than_the_median_and_all_but_one_of_a_hundred_than_p99() -> None:
    waits = list(range(1, 101))
    random.Random(1).shuffle(waits)
    found = batches(LatencyWindow(since_ms=0), *waits).latency()
    assert (found.p50_seconds, found.p99_seconds, found.batches) == (0.05, 0.099, 100)


def test_rows_count_and_not_files_or_batches() -> None:
    window = LatencyWindow(since_ms=0)
    window.add([Arrived(at_ms=900, rows=98), Arrived(at_ms=0, rows=2)], 1000)
    window.add([Arrived(at_ms=1950, rows=100)], 2000)
    found = window.latency()
    assert (found.p50_seconds, found.p99_seconds) == (0.05, 0.1)


def test_only_the_last_hundred_batches_count() -> None:
    window = batches(LatencyWindow(since_ms=0), *[5000] * 300)
    assert batches(window, *[10] * 100).latency() == Latency(batches=100, p50_seconds=0.01, p99_seconds=0.01)


def test_what_is_held_does_not_grow_with_the_files_of_a_batch_and_no_wait_is_understated() -> None:
    window = LatencyWindow(since_ms=0)
    window.add([Arrived(at_ms=20_000 - wait, rows=1) for wait in range(1, 10_001)], 20_000)
    (kept,) = window._batches
    assert len(kept) <= 64
    found = window.latency()
    assert 5.0 <= (found.p50_seconds or 0) <= 5.2
    assert 9.9 <= (found.p99_seconds or 0) <= 10.0
    assert sum(each.rows for each in kept) == 10_000


def test_rows_that_were_there_before_anybody_looked_wait_from_then_on() -> None:
    window = LatencyWindow(since_ms=1_000_000)
    window.add([Arrived(at_ms=5, rows=1)], 1_000_300)
    assert window.latency().p50_seconds == 0.3


def test_a_file_that_another_clock_dates_into_the_future_waited_nothing() -> None:
    assert batches(LatencyWindow(since_ms=0), -500).latency().p99_seconds == 0


def test_without_rows_nothing_is_known_and_streams_nobody_can_tell_of_are_named() -> None:
    window = LatencyWindow(since_ms=0)
    window.add([Arrived(at_ms=5, rows=0)], 10)
    assert window.latency() == Latency()
    window.add([], 10, {"t"})
    window.add([], 10, {"s"})
    assert window.latency() == Latency(unknown=("s", "t"))
    assert window.latency().as_json() == {"batches": 0, "p50_seconds": None, "p99_seconds": None, "unknown": ["s", "t"]}
