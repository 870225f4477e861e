"""Ctrl-C: once for a clean end, twice for an end at once."""

from __future__ import annotations

import signal

import pytest

from plait.cli.execution import StopOnSignal


def test_the_first_signal_asks_for_an_end_and_says_so_once() -> None:
    said: list[str] = []
    with StopOnSignal(lambda: said.append("stopping")) as stop:
        assert not stop.requested.is_set()
        signal.raise_signal(signal.SIGINT)
        assert stop.requested.is_set()
    assert said == ["stopping"]


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_gives_up(second: signal.Signals) -> None:
    with StopOnSignal(lambda: None) as stop:
        signal.raise_signal(signal.SIGTERM)
        assert stop.requested.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(second)


def test_handlers_are_as_before_afterwards() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with StopOnSignal(lambda: None):
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] != before
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
