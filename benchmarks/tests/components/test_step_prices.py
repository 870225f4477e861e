"""What is measured of look-ups and matches is a cost: positive, and more for larger stores."""

from __future__ import annotations

from benchmarks.components.step_prices import measured


def test_a_look_up_takes_longer_in_a_larger_store_and_a_match_takes_time() -> None:
    found = measured(probes=500, repeat=2, seed=7)
    assert found.query > 0.1
    assert found.query_base >= 0.0
    assert found.match >= 1.0
