"""What waits to be taken up, and for how long somebody waits for that."""

from __future__ import annotations

import threading

import pytest

from plait.errors import PlaitError
from plait.runtime.requests import Request, Requests


def waited_for(request: Request) -> tuple[threading.Thread, list[bool]]:
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(request.wait()))
    thread.start()
    return thread, found


def test_nobody_waits_any_longer_once_a_run_is_over_and_the_next_one_may_take_it_up() -> None:
    requests, request = Requests(), Request("q")
    requests.add(request)
    thread, found = waited_for(request)
    while thread.is_alive():
        requests.give_up()
        thread.join(0.01)
    assert found == [False]
    assert not request.wait()  # there is no run any more
    requests.take_in_hand()
    thread, found = waited_for(request)
    assert not found
    requests.settle([request], ["q"], 3)
    thread.join()
    assert (found, request.active_since, requests.waiting()) == ([True], 3, ())


def test_nobody_waits_for_what_is_asked_for_just_after_a_run_has_ended() -> None:
    requests, request = Requests(), Request("q")
    requests.give_up()
    requests.add(request)
    assert not request.wait()


def test_whoever_waits_hears_why_a_request_is_refused() -> None:
    requests, request = Requests(), Request("q")
    requests.add(request)
    requests.refuse(request, PlaitError("no"))
    with pytest.raises(PlaitError, match="no"):
        request.wait()
