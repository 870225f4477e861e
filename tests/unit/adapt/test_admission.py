"""What a batch takes of each stream."""

from __future__ import annotations

from typing import Any

import pytest

from plait.adapt.admission import Share, Waiting, admit, horizon_us

SECOND = 1_000_000


def files(source: str, count: int, rows_each: int, *, row_bytes: float = 10.0, **more: Any) -> Waiting:
    """Return a stream of which some files wait, all alike."""
    rows = count * rows_each
    return Waiting(
        source=source,
        unit="bytes",
        files=count,
        bytes=int(rows * row_bytes),
        rows=rows,
        row_bytes=row_bytes,
        basis="counted",
        **more,
    )


def taken(stream: Waiting, share: Share) -> int:
    """Return how many of its files, all alike, Spark takes: as many as fit, at least one."""
    return max(share.value // (stream.bytes // stream.files), 1)


def rows_of(waiting: list[Waiting], batch_rows: int) -> dict[str, float]:
    return {share.source: round(share.rows, 3) for share in admit(waiting, batch_rows)}


def test_shares_are_in_proportion_to_what_waits_so_that_all_backlogs_end_together() -> None:
    waiting = [files("r", 40, 1000), files("s", 20, 1000), files("t", 40, 500)]
    shares = admit(waiting, 8000)
    assert [share.rows for share in shares] == [4000, 2000, 2000]
    assert [taken(*pair) for pair in zip(waiting, shares, strict=True)] == [4, 2, 4]


def test_a_backlog_is_divided_into_whole_batches_without_a_small_one_at_its_end() -> None:
    waiting = [files(name, 40, 25_000) for name in "rst"]
    shares = admit(waiting, 1_000_000)
    assert [taken(*pair) for pair in zip(waiting, shares, strict=True)] == [14, 14, 14]
    assert sum(share.rows for share in shares) == pytest.approx(1_000_000)
    # Of few files in many batches one at a time; those of many files keep to the number of batches, so all end alike.
    few, many = files("few", 3, 10_000), files("many", 100, 300)
    assert [taken(stream, share) for stream, share in zip((few, many), admit([few, many], 20_000), strict=True)] == [
        1,
        34,
    ]


def test_where_everything_fits_it_is_all_taken_and_the_rest_of_the_room_is_divided_equally() -> None:
    waiting = [files("r", 3, 1000), files("s", 1, 500)]
    shares = admit(waiting, 10_000)
    assert [share.rows for share in shares] == [6250, 3750]
    assert all(share.value >= stream.bytes for stream, share in zip(waiting, shares, strict=True))


def test_files_of_uneven_size_that_fit_together_are_all_taken() -> None:
    (share,) = admit([files("r", 2, 500, row_bytes=10.0)], 1000)
    assert share.value >= 10_000


def test_without_a_backlog_rates_divide_the_room_but_nobody_starves() -> None:
    waiting = [Waiting(source=name, unit="rows", rate=rate) for name, rate in (("fast", 990.0), ("slow", 10.0))]
    found = rows_of(waiting, 1000)
    assert found["fast"] > 850
    assert found["slow"] > 100
    assert sum(found.values()) == pytest.approx(1000)


def test_a_rate_that_is_not_known_of_all_divides_nothing() -> None:
    waiting = [Waiting(source="r", unit="rows", rate=990.0), Waiting(source="s", unit="rows")]
    assert rows_of(waiting, 1000) == {"r": 500, "s": 500}


def test_a_stream_the_user_has_bounded_is_left_alone_and_the_others_keep_level_with_it() -> None:
    bounded = files("r", 100, 10, own="maxFilesPerTrigger", own_rows=10.0)
    waiting = [bounded, files("s", 50, 1000)]
    (share,) = admit(waiting, 1_000_000)
    assert (share.source, share.rows) == ("s", 500)


def test_what_a_bounded_stream_takes_is_not_there_for_the_others() -> None:
    fast = files("r", 10, 1000, own="maxFilesPerTrigger", own_rows=6000.0)
    (share,) = admit([fast, files("s", 100, 1000)], 10_000)
    assert share.rows == pytest.approx(4000)


def test_streams_that_cannot_be_bounded_leave_the_others_a_fourth_of_the_room_at_least() -> None:
    everything = Waiting(source="r", rows=5e6)
    (share,) = admit([everything, Waiting(source="s", unit="rows", rows=1e6)], 1_000_000)
    assert share.rows == pytest.approx(250_000)
    assert admit([everything], 1_000_000) == ()


def test_a_stream_of_which_nothing_waits_gets_a_little_of_the_room_while_others_are_drained() -> None:
    found = rows_of([files("r", 100, 1000), Waiting(source="s", unit="bytes", row_bytes=10.0)], 10_000)
    assert found == {"r": pytest.approx(100_000 / 12), "s": 1250}
    assert sum(found.values()) <= 10_000


def test_a_huge_file_is_one_file() -> None:
    waiting = [files("r", 1, 50_000_000), files("s", 50, 10_000)]
    shares = admit(waiting, 1_000_000)
    assert taken(waiting[0], shares[0]) == 1
    assert sum(share.rows for share in shares) == pytest.approx(1_000_000, rel=0.02)


def test_a_bound_is_never_less_than_one() -> None:
    shares = admit([files("r", 1000, 1_000_000), Waiting(source="s", unit="rows", rows=1.0)], 1)
    assert min(share.value for share in shares) == 1


def test_streams_that_begin_at_different_times_end_together() -> None:
    old = files("r", 100, 1000, first_us=0, last_us=1000 * SECOND)
    new = files("s", 10, 1000, first_us=900 * SECOND, last_us=1000 * SECOND)
    assert horizon_us([old, new]) == 1000 * SECOND
    assert rows_of([old, new], 11_000) == {"r": 10_000, "s": 1000}


def test_a_stream_that_ends_early_is_kept_level_up_to_its_end() -> None:
    whole = files("r", 100, 1000, first_us=0, last_us=1000 * SECOND)
    early = files("s", 10, 1000, first_us=0, last_us=100 * SECOND)
    assert rows_of([whole, early], 4000) == {"r": 2000, "s": 2000}


def test_a_stream_whose_backlog_ends_within_a_batch_does_not_keep_the_others_small() -> None:
    whole = files("r", 100, 1000, first_us=0, last_us=1000 * SECOND)
    early = files("s", 1, 10, first_us=0, last_us=1 * SECOND)
    shares = admit([whole, early], 5000)
    assert taken(whole, shares[0]) == 5
    assert taken(early, shares[1]) == 1


def test_a_stream_that_begins_after_the_others_end_waits_for_them() -> None:
    before = files("r", 10, 1000, first_us=0, last_us=100 * SECOND)
    after = files("s", 10, 1000, first_us=200 * SECOND, last_us=300 * SECOND)
    shares = admit([before, after], 2000)
    assert [share.rows for share in shares] == [2000, 0]
    assert taken(after, shares[1]) == 1


def test_without_event_times_of_all_streams_there_is_no_horizon() -> None:
    assert horizon_us([files("r", 1, 10, first_us=0, last_us=5), files("s", 1, 10)]) is None
    assert horizon_us([files("r", 1, 10, first_us=0, last_us=5), Waiting(source="s", unit="bytes")]) == 5
    assert horizon_us([]) is None


def test_rows_of_one_event_time_wait_on_one_side_of_the_horizon() -> None:
    early = files("r", 1, 10, first_us=0, last_us=5)
    at_once = files("s", 1, 10, first_us=9, last_us=9)
    assert [at_once.rows_until(horizon) for horizon in (5, 9, None)] == [0.0, 10.0, 10.0]
    assert set(rows_of([early, at_once], 15)) == {"r", "s"}
