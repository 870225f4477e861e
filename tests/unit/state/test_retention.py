from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.state.retention import is_expired, retain
from tests.unit.state.builders import described

TIMES = st.integers(0, 40)


@pytest.mark.parametrize(
    ("tau_max", "window", "watermark", "expired"),
    [(10, 5, 15, False), (10, 5, 16, True), (None, 5, 99, False), (10, None, 99, False), (10, 5, None, False)],
)
def test_a_bucket_expires_once_its_youngest_row_is_out_of_reach(
    tau_max: int | None, window: int | None, watermark: int | None, expired: bool
) -> None:
    assert is_expired(described(tau_max=tau_max), window, watermark) is expired


@given(st.lists(st.lists(TIMES, min_size=1, max_size=5), max_size=8), st.none() | TIMES, st.none() | TIMES, TIMES)
def test_nothing_a_tuple_that_is_not_late_could_join_is_dropped(
    buckets: list[list[int]], window: int | None, watermark: int | None, arriving: int
) -> None:
    live = [described(path=str(n), tau_min=min(rows), tau_max=max(rows)) for n, rows in enumerate(buckets)]
    kept = {bucket.path for bucket in retain(live, {"s": window}, watermark).kept}
    if watermark is not None and arriving < watermark:
        return  # late: not joined
    for n, rows in enumerate(buckets):
        joins = any(window is None or max(arriving, tau) - tau <= window for tau in rows)
        assert str(n) in kept or not joins


@given(st.lists(TIMES, max_size=8), TIMES, TIMES)
def test_what_nothing_can_join_any_more_is_dropped(taus: list[int], window: int, watermark: int) -> None:
    live = [described(path=str(n), tau_min=tau, tau_max=tau) for n, tau in enumerate(taus)]
    kept = [bucket.tau_max for bucket in retain(live, {"s": window}, watermark).kept]
    assert kept == [tau for tau in taus if tau + window >= watermark]


def test_stores_nobody_needs_any_more_are_dropped_and_order_is_kept() -> None:
    live = [described(path=str(n), store="sgs"[n]) for n in range(3)]
    found = retain(live, {"s": None}, 99)
    assert (found.kept, found.abandoned) == ((live[0], live[2]), (live[1],))


@given(st.lists(TIMES, max_size=8), st.none() | TIMES, st.none() | TIMES)
def test_every_bucket_is_kept_or_expired_or_of_a_store_that_is_gone(
    taus: list[int], window: int | None, watermark: int | None
) -> None:
    live = [described(path=str(n), store="sg"[n % 2], tau_min=tau, tau_max=tau) for n, tau in enumerate(taus)]
    found = retain(live, {"s": window}, watermark)
    assert sorted((*found.kept, *found.expired, *found.abandoned), key=lambda bucket: int(bucket.path)) == live
    assert all(is_expired(bucket, window, watermark) for bucket in found.expired)
    assert {bucket.store for bucket in found.abandoned} <= {"g"}
