"""Rates from pieces of a stream."""

from __future__ import annotations

import pytest

from plait.stats.sampled import Piece, rate_of

SECOND_US = 1_000_000


def piece(rows: int, first: int, last: int) -> Piece:
    return Piece(rows=rows, tau_min_us=first * SECOND_US, tau_max_us=last * SECOND_US)


@pytest.mark.parametrize(
    ("pieces", "rate"),
    [
        ([piece(11, 0, 10)], 1.0),
        ([piece(11, 0, 10), piece(11, 100, 110)], 1.0),
        ([piece(11, 0, 10), piece(10, 0, 10)], 2.0),
        ([piece(6, 0, 5), piece(5, 5, 10)], 1.0),
        ([piece(5, 5, 10), piece(6, 0, 5)], 1.0),
        ([piece(11, 0, 10), piece(5, 2, 4)], 1.5),
        ([piece(3, 7, 7)], None),
        ([], None),
    ],
)
def test_gaps_of_which_nothing_is_known_do_not_slow_a_stream_down(pieces: list[Piece], rate: float | None) -> None:
    assert rate_of(pieces) == (None if rate is None else pytest.approx(rate))
