"""Latency from the arrival of the newest member to the delivery, and whether a system keeps up."""

from __future__ import annotations

import pytest

from benchmarks.suite.pacing import Feed, judge, latencies
from benchmarks.systems.task import Delivery, Outcome

FILES = 20
ARRIVED_US = [1_000_000 * file for file in range(FILES)]


def delivered(latency_s: float, file: int, rows: int = 10) -> Delivery:
    return Delivery(delivered_us=ARRIVED_US[file] + round(latency_s * 1e6), file=file, rows=rows)


def judged(deliveries: list[Delivery], expected: int | None = None):
    feed = Feed(rows_per_file=100, rows_per_s=100, grace_s=1, arrived_us=ARRIVED_US)
    outcome = Outcome(rows_in=2000, startup_seconds=1, seconds=20, deliveries=tuple(deliveries))
    found = sum(delivery.rows for delivery in deliveries)
    return judge("case", "plait", 0, feed, outcome, found if expected is None else expected)


def test_percentiles_count_results_not_batches():
    deliveries = [delivered(0.5, 5, rows=94), delivered(2.0, 6, rows=4), delivered(9.0, 7, rows=2)]
    assert latencies(deliveries, ARRIVED_US, range(5, FILES)) == pytest.approx((0.5, 2.0, 9.0))
    assert latencies(deliveries, ARRIVED_US, range(7, FILES)) == pytest.approx((9.0, 9.0, 9.0))
    assert latencies(deliveries, ARRIVED_US, range(8, FILES)) == ()


def test_a_steady_system_keeps_up_and_the_first_third_does_not_count():
    found = judged([delivered(30.0 if file < 6 else 0.4, file) for file in range(FILES)])
    assert found.is_sustained
    assert (found.p50_s, found.p99_s, found.backlog_s) == pytest.approx((0.4, 0.4, 0.0))
    assert found.seconds == pytest.approx(19.0)


@pytest.mark.parametrize(("share", "keeps_up"), [(0.5, False), (0.8, False), (0.95, True)])
def test_latency_that_grows_is_falling_behind(share: float, keeps_up: bool):
    found = judged([delivered(5.0 + (1 - share) * file, file) for file in range(FILES)])
    assert found.is_sustained == keeps_up


def test_results_that_are_missing_are_no_keeping_up():
    found = judged([delivered(0.4, file) for file in range(FILES)], expected=201)
    assert not found.is_sustained


def test_no_results_have_no_latency():
    found = judged([], expected=0)
    assert (found.p50_s, found.backlog_s, found.is_sustained) == (None, None, False)
