"""What is timed is there, under the name by which it is called."""

from __future__ import annotations

import pytest

from benchmarks.components.overhead_timed import TIMED, owner_of


@pytest.mark.parametrize("place", [place for places in TIMED.values() for place in places], ids=".".join)
def test_every_function_that_is_timed_is_looked_up_where_it_is_replaced(place: tuple[str, str]) -> None:
    owner, name = owner_of(*place)
    assert name in vars(owner)
