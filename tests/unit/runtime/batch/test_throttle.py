"""Batches that take slices stay below twice the median, however long rows take."""

from __future__ import annotations

from statistics import median

import pytest

from plait.runtime.batch.throttle import Throttle


class Machine:
    """A machine on which a batch takes `own_s` by itself and a row `row_s`; `took` is how long batches were."""

    def __init__(self) -> None:
        self.time = 0.0
        self.throttle = Throttle(clock=lambda: self.time)
        self.took: list[float] = []

    def batch(self, own_s: float, row_s: float | None = None, most: int | None = None) -> int:
        """Carry out a batch; return how many rows it takes. `row_s` None: nothing is left to take."""
        began, taken = self.time, 0
        self.throttle.begun()
        self.time += own_s * 0.8
        while row_s is not None and (rows := self.throttle.rows()):
            rows = rows if most is None else min(rows, most - taken)
            if not rows:
                break
            self.time += rows * row_s
            self.throttle.took(rows, rows * row_s)
            taken += rows
        self.time += own_s * 0.2
        self.throttle.over()
        self.took.append(self.time - began)
        return taken


@pytest.mark.parametrize("row_s", [1e-7, 1e-6, 1e-5, 1e-4])
def test_a_slice_takes_about_half_of_what_a_batch_takes(row_s: float) -> None:
    machine = Machine()
    for _ in range(10):
        machine.batch(1.0)
    rows = [machine.batch(1.0, row_s) for _ in range(10)]
    assert max(machine.took) < 2 * median(machine.took)
    assert all(0.3 <= each * row_s <= 0.5 for each in rows) or max(rows) == 1_000_000
    assert sum(rows) > 0


def test_a_batch_that_is_long_already_takes_less() -> None:
    machine = Machine()
    for _ in range(10):
        machine.batch(1.0)
    usual, longer = machine.batch(1.0, 1e-5), machine.batch(1.5, 1e-5)
    assert 0 < longer < usual
    assert machine.batch(2.0, 1e-5) == 0
    assert machine.took[-2] < 2.0


def test_rows_that_turn_out_dearer_make_the_next_slices_smaller_at_once() -> None:
    machine = Machine()
    for _ in range(10):
        machine.batch(1.0)
    for row_s in (1e-6, 1e-6, 3e-6, 3e-6, 1e-5):
        machine.batch(1.0, row_s)
    assert max(machine.took) < 2.0


def test_no_batch_takes_more_rows_than_the_bound_however_fast() -> None:
    machine = Machine()
    machine.throttle.most_rows = 5_000
    for _ in range(3):
        machine.batch(1.0)
    assert [machine.batch(1.0, 1e-9) for _ in range(3)] == [5_000] * 3


def test_even_where_every_batch_is_longer_than_the_one_before_something_is_taken_now_and_then() -> None:
    machine = Machine()
    taken = [machine.batch(1.3**number, 1e-3) for number in range(30)]
    assert sum(map(bool, taken[5:])) >= 3


def test_before_anything_is_known_a_batch_takes_a_share_of_what_it_has_taken_itself() -> None:
    machine = Machine()
    assert machine.batch(1.0, 1e-5) > 0
    assert machine.took[0] < 1.5
