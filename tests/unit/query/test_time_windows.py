"""Which windows an event time belongs to, and when they are over."""

from __future__ import annotations

import pytest

from plait.query.time_windows import TimeWindow


def window(size: int, slide: int, start: int = 0, lag: int = 0) -> TimeWindow:
    return TimeWindow(relation="r", column="ts", size_us=size, slide_us=slide, start_us=start, lag_us=lag)


@pytest.mark.parametrize(
    ("size", "slide", "start"), [(10, 10, 0), (10, 5, 0), (7, 3, 2), (7, 3, -2), (1, 1, 0), (9, 9, -4)]
)
def test_the_first_and_last_window_of_an_event_time_are_those_that_hold_it(size: int, slide: int, start: int) -> None:
    windows = window(size, slide, start)
    for tau in range(-30, 31):
        begins = [start + number * slide for number in range(-40, 41)]
        ends = [begin + size for begin in begins if begin <= tau < begin + size]
        assert (windows.first_end(tau), windows.last_end(tau)) == (min(ends), max(ends)), tau


def test_a_window_is_over_once_the_watermark_is_as_far_beyond_its_end_as_members_may_come_later() -> None:
    assert [window(10, 5, lag=lag).over_until(100) for lag in (0, 30)] == [100, 70]
