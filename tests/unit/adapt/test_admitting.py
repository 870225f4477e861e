"""When the shares of a batch are settled anew."""

from __future__ import annotations

from dataclasses import replace

from plait.adapt.admission import Waiting, admit, level_rows
from plait.adapt.admitting import Watch


def files(source: str, count: int, rows_each: int, row_bytes: float = 10.0) -> Waiting:
    rows = count * rows_each
    return Waiting(
        source=source, unit="bytes", files=count, bytes=int(rows * row_bytes), rows=rows, row_bytes=row_bytes
    )


def watch_of(*waiting: Waiting, batch_rows: int = 1000) -> Watch:
    return Watch(batch_rows=batch_rows, shares=admit(waiting, batch_rows))


def asks(watch: Watch, *batches: dict[str, int]) -> list[bool]:
    return [watch.batch_done(batch) for batch in batches]


def test_batches_as_large_as_they_should_be_are_no_reason_to_look() -> None:
    watch = watch_of(files("r", 100, 100), files("s", 100, 100))
    assert asks(watch, *[{"r": 500, "s": 500}] * 10, {"r": 900, "s": 1000}) == [False] * 11


def test_small_batches_are_no_reason_to_look_while_nobody_is_held_back() -> None:
    watch = watch_of(files("r", 0, 0), files("s", 0, 0))
    assert asks(watch, *[{"r": 100, "s": 20}] * 10, *[{}] * 10) == [False] * 20


def test_a_batch_that_is_much_too_large_is_looked_at_and_ended_by_smaller_shares() -> None:
    watch = watch_of(files("r", 100, 10, row_bytes=100.0))
    assert asks(watch, {"r": 5000}) == [True]
    really = [files("r", 100, 100)]
    assert watch.settled(really, admit(really, 1000))


def test_a_file_that_is_larger_than_a_batch_may_be_is_no_reason_for_a_restart_and_is_looked_at_ever_less() -> None:
    huge = [files("r", 10, 50_000)]
    watch = Watch(batch_rows=1000, shares=admit(huge, 1000))
    looks = []
    for number in range(40):
        if watch.batch_done({"r": 50_000}):
            looks.append(number)
            assert not watch.settled(huge, admit(huge, 1000))
    assert looks == [0, 2, 6, 14, 30]


def test_a_stream_held_back_by_the_share_it_had_in_a_backlog_gets_more_when_it_has_need_of_it() -> None:
    watch = watch_of(files("r", 10_000, 100), files("s", 10, 10))
    assert asks(watch, *[{"s": 10}] * 3) == [False, False, True]
    now = [files("r", 0, 0), files("s", 50, 10)]
    assert watch.settled(now, admit(now, 1000))


def test_what_is_done_in_a_few_batches_is_not_worth_a_restart() -> None:
    watch = watch_of(files("r", 10_000, 100), files("s", 10, 10))
    assert asks(watch, *[{"s": 10}] * 3)[-1]
    now = [files("r", 0, 0), files("s", 4, 10)]
    assert not watch.settled(now, admit(now, 1000))
    assert asks(watch, *[{"s": 10}] * 6) == [False] * 5 + [True]


def test_without_streams_that_plait_bounds_there_is_nothing_to_look_at() -> None:
    watch = watch_of(Waiting(source="rate", rows=1e9))
    assert asks(watch, {"rate": 10**9}) == [False]


def test_a_stream_whose_rows_are_all_later_than_the_first_backlog_gets_its_share_when_that_has_ended() -> None:
    short = replace(files("short", 50, 100), first_us=0, last_us=100)
    long = replace(files("long", 1000, 100), first_us=0, last_us=2000)
    later = replace(files("later", 1000, 10), first_us=200, last_us=2000)
    waiting = (short, long, later)
    watch = Watch(batch_rows=1000, shares=admit(waiting, 1000), level_rows=level_rows(waiting))
    assert {share.source: share.rows for share in watch.shares}["later"] == 0
    batch = {"short": 500, "long": 500, "later": 10}
    assert asks(watch, *[batch] * 10) == [False] * 9 + [True]
    # Estimates were wrong: the short one goes on, so nothing is gained, and it is looked at later.
    assert not watch.settled(waiting, admit(waiting, 1000))
    assert asks(watch, *[batch] * 5) == [False] * 4 + [True]
    now = (files("short", 0, 0), replace(long, first_us=100), later)
    assert watch.settled(now, admit(now, 1000))


def test_streams_that_end_together_are_not_looked_at_for_it() -> None:
    waiting = tuple(replace(files(name, 100, 100), first_us=0, last_us=100) for name in "rs")
    assert level_rows(waiting) is None
    assert level_rows((files("r", 10, 10), files("s", 1, 1))) is None
