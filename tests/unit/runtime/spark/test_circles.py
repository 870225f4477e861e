"""How often garbage is looked for: seldom while a run lasts, as before afterwards; and what a task leaves is not looked
at after the next.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from itertools import count

import pytest

from plait.runtime.spark import circles
from plait.runtime.spark.circles import keep_out_of_sight, seldom_collected


class Circle:
    """Garbage as soon as nobody else holds it, which only a look finds."""

    alive = 0

    def __init__(self) -> None:
        self.me = self
        Circle.alive += 1

    def __del__(self) -> None:
        Circle.alive -= 1


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    yield
    gc.set_threshold(*before)
    if not frozen:
        gc.unfreeze()


def test_garbage_is_looked_for_seldom_for_as_long_as_any_run_lasts() -> None:
    gc.set_threshold(700, 10, 10)
    with seldom_collected():
        with seldom_collected():
            assert gc.get_threshold()[0] >= 100_000
        assert gc.get_threshold()[0] >= 100_000
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("chosen", [(0, 10, 10), (500_000, 5, 5)])
def test_a_program_that_looks_more_seldom_goes_on_to_do_so(chosen: tuple[int, int, int]) -> None:
    gc.set_threshold(*chosen)
    with seldom_collected():
        assert gc.get_threshold() == chosen
    assert gc.get_threshold() == chosen


def test_what_a_program_sets_meanwhile_stays() -> None:
    gc.set_threshold(700, 10, 10)
    with seldom_collected():
        gc.set_threshold(900, 9, 9)
    assert gc.get_threshold() == (900, 9, 9)


def test_what_a_task_leaves_is_not_looked_at_but_garbage_among_it_is_found_once_in_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(circles, "_TIMES", count(1))
    monkeypatch.setattr(circles, "_LOOK_EVERY", 3)
    Circle()
    keep_out_of_sight()
    gc.collect()
    assert Circle.alive == 1
    keep_out_of_sight()
    assert Circle.alive == 1
    keep_out_of_sight()
    assert Circle.alive == 0
    assert gc.get_freeze_count() > 0
