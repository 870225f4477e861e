"""Which watermark a batch has and which rows are late, while streams come, go, fall silent and wake up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plait.operators.close.watermark import laggard, late_before, watermark_after, with_bars
from plait.query.model import Stream
from plait.state.model import Manifest, SourceProgress

DELAY = 2


def streams(*names: str, idle_us: int | None = None) -> list[Stream]:
    return [Stream(name=name, time="ts", delay_us=DELAY, idle_us=idle_us) for name in names]


def sent(source: str, tau_max: int | None, bar: int | None = None, active_ms: int = 0) -> SourceProgress:
    return SourceProgress(source=source, tau_max=tau_max, late_before_us=bar, active_ms=active_ms)


class Life:
    """Batches of a run: which streams take part, and the largest event time each has sent by then."""

    def __init__(self) -> None:
        self.progress: dict[str, SourceProgress] = {}
        self.manifest: Manifest | None = None

    def batch(self, *taking_part: str, **tau_max: int) -> int | None:
        """Do one batch; return the watermark of the next."""
        for name in taking_part:
            self.progress.setdefault(name, SourceProgress(source=name))
        for name, tau in tau_max.items():
            self.progress[name] = replace(self.progress[name], tau_max=tau)
        known = tuple(self.progress.values())
        watermark = watermark_after(streams(*taking_part), known, 0)
        known = with_bars(streams(*taking_part), known, watermark)
        self.progress = {found.source: found for found in known}
        self.manifest = Manifest(batch=0, watermark_us=watermark, plan="", sources=known)
        return watermark

    def bars(self, *names: str) -> list[int | None]:
        return [late_before(self.manifest, name) for name in names]


def test_the_watermark_is_the_smallest_progress() -> None:
    life = Life()
    assert life.batch("a", "b", a=100, b=90) == 88
    assert life.bars("a", "b") == [88, 88]


def test_there_is_none_until_every_stream_has_sent_something() -> None:
    life = Life()
    assert life.batch("a", "b", a=100) is None
    assert life.bars("a", "b") == [None, None]


def test_a_stream_that_joins_is_held_to_its_own_progress_alone() -> None:
    life = Life()
    life.batch("a", "b", a=100, b=100)
    assert life.bars("a", "b", "c") == [98, 98, None]
    assert life.batch("a", "b", "c", c=20) == 18
    assert life.bars("a", "b", "c") == [98, 98, 18]


def test_until_a_stream_that_joins_has_sent_something_nothing_is_forgotten_and_no_bar_moves() -> None:
    life = Life()
    life.batch("a", a=100)
    assert life.batch("a", "c", a=200) is None
    assert life.bars("a", "c") == [98, None]


def test_a_stream_that_joins_ahead_of_the_others_changes_nothing() -> None:
    life = Life()
    life.batch("a", a=100)
    assert life.batch("a", "c", c=500) == 98
    assert life.bars("a", "c") == [98, 98]


def test_once_a_stream_that_joined_has_caught_up_the_bars_rise_together() -> None:
    life = Life()
    life.batch("a", a=100)
    life.batch("a", "c", a=150, c=20)
    assert life.batch("a", "c", c=200) == 148
    assert life.bars("a", "c") == [148, 148]


def test_a_stream_that_comes_back_is_late_only_by_what_it_was_held_to_before_it_left() -> None:
    life = Life()
    life.batch("a", "b", a=100, b=100)
    assert life.batch("b", b=500) == 498
    assert life.bars("a", "b") == [98, 498]
    assert life.batch("a", "b", a=130) == 128
    assert life.bars("a", "b") == [128, 498]


def test_a_stream_that_leaves_no_longer_holds_the_others_back() -> None:
    life = Life()
    life.batch("a", "b", a=10, b=100)
    assert life.batch("b") == 98


def test_a_longer_delay_does_not_take_back_what_was_late() -> None:
    later = [replace(stream, delay_us=50) for stream in streams("a")]
    assert watermark_after(later, (sent("a", 100, bar=98),), 0) == 98


@pytest.mark.parametrize(
    ("clock_ms", "expected"), [(9, 18), (10, 98)], ids=["still awake", "idle: left out until it sends something"]
)
def test_an_idle_stream_does_not_hold_the_watermark_back(clock_ms: int, expected: int) -> None:
    known = (sent("a", 100, active_ms=clock_ms), sent("b", 20, bar=18))
    both = [*streams("a"), *streams("b", idle_us=10_000)]
    watermark = watermark_after(both, known, clock_ms)
    assert watermark == expected
    assert [found.late_before_us for found in with_bars(both, known, watermark)] == [expected, expected]


def test_an_idle_stream_that_wakes_up_does_not_turn_the_watermark_back() -> None:
    known = (sent("a", 100, bar=98), sent("b", 30, bar=98, active_ms=20))
    assert watermark_after([*streams("a"), *streams("b", idle_us=10_000)], known, 20) == 98


def test_while_all_streams_are_idle_the_watermark_stays() -> None:
    known = (sent("a", 100, bar=18), sent("b", 20, bar=18))
    assert watermark_after(streams("a", "b", idle_us=10), known, 1000) == 18


@pytest.mark.parametrize(
    ("progress", "expected"),
    [
        ((sent("a", 100), sent("b", 90)), "b"),
        ((sent("a", 100), sent("b", None)), "b"),
        ((sent("a", 100, bar=98), sent("b", 20, bar=98)), "a"),
    ],
    ids=["the one behind", "one that has sent nothing", "none is behind its bar"],
)
def test_the_stream_that_holds_the_watermark_back_is_named(progress: tuple[SourceProgress, ...], expected: str) -> None:
    assert laggard(streams("a", "b"), progress, 0) == expected
