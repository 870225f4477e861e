"""What the service does when there is too much of something, and when somebody does not get on."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from plait.server.addresses import Listening
from plait.server.allowance import Rate
from plait.server.limits import Limits
from plait.server.service import Rules, Service
from plait.sql.script.remote import Remote
from tests.served.asking import TOKEN, Asked, adding, ask, connected, read_reply
from tests.served.stand_in import StandIn

SELECT = "SELECT o.id FROM orders o JOIN items i ON o.id = i.id"


@contextmanager
def serving(engine: StandIn, limits: Limits, token: str | None = None) -> Iterator[str]:
    listening = Listening(host="127.0.0.1", port=0)
    with Service(Rules(listening=listening, token=token, allowed=Remote(), limits=limits)) as service:
        service.begin(engine)
        yield service.url


def until(holds: Callable[[], bool], seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def listening_to(url: str, buffer: int | None = None) -> socket.socket:
    wire = connected(url, buffer)
    wire.sendall(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert b"200" in wire.recv(1024)
    return wire


def test_there_are_no_more_queries_than_may_be() -> None:
    engine = StandIn()
    with serving(engine, Limits(queries=3, writes=Rate(a_second=1000, at_once=1000))) as url:
        statuses = [ask(url, adding(SELECT, name=f"q{number}")).status for number in range(10)]
    assert statuses == [202] * 3 + [409] * 7
    assert len(engine.held) == 3


def test_who_writes_too_fast_has_to_wait_and_may_still_read() -> None:
    engine = StandIn()
    with serving(engine, Limits(writes=Rate(a_second=0.001, at_once=5))) as url:
        replies = [ask(url, adding(SELECT, name=f"q{number}")) for number in range(8)]
        assert ask(url, Asked()).status == 200
    assert [reply.status for reply in replies] == [202] * 5 + [429] * 3
    assert replies[-1].headers["retry-after"] == "1"


def test_who_guesses_tokens_is_not_answered_any_more_even_with_the_right_one() -> None:
    right = (("Authorization", f"Bearer {TOKEN}"),)
    with serving(StandIn(), Limits(refusals=Rate(a_second=0.001, at_once=3)), TOKEN) as url:
        assert ask(url, Asked(headers=right)).status == 200
        guesses = [ask(url, Asked(headers=(("Authorization", f"Bearer {each}"),))).status for each in range(5)]
        assert guesses == [401] * 3 + [429] * 2
        assert ask(url, Asked(headers=right)).status == 429


def test_guesses_behind_the_page_are_counted_and_the_page_itself_is_always_there() -> None:
    with serving(StandIn(), Limits(refusals=Rate(a_second=0.001, at_once=3)), TOKEN) as url:
        guesses = [ask(url, Asked(path=f"/?{each}")).status for each in range(5)]
        assert guesses == [200] * 3 + [429] * 2
        assert ask(url, Asked(path=f"/?{TOKEN}")).status == 429
        assert ask(url, Asked(path="/")).status == 200


def test_no_more_listen_than_may_and_the_place_of_one_who_goes_is_free() -> None:
    with serving(StandIn(), Limits(listeners=2)) as url:
        first, second = listening_to(url), listening_to(url)
        assert ask(url, Asked(path="/events")).status == 503
        first.close()
        second.close()
        until(lambda: _may_listen(url))


def test_of_a_burst_no_more_listen_than_may() -> None:
    with serving(StandIn(), Limits(listeners=3)) as url:
        wires = [connected(url) for _ in range(40)]
        for wire in wires:
            wire.sendall(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        answers = [wire.recv(1024).split()[1] for wire in wires]
        assert sorted(answers) == [b"200"] * 3 + [b"503"] * 37
        for wire in wires:
            wire.close()
        until(lambda: _may_listen(url))


def _may_listen(url: str) -> bool:
    with connected(url) as wire:
        wire.sendall(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        return b"200 OK" in wire.recv(1024)


def test_who_does_not_read_is_let_go_and_all_others_hear_every_event() -> None:
    engine = StandIn()
    with serving(engine, Limits(stalled_seconds=0.5)) as url:
        idle, reader = listening_to(url, 4096), listening_to(url)
        until(lambda: bool(engine.hears))
        heard = b""
        for number in range(200):
            engine.tell(batch=number, padding="x" * 100_000)
            while f'"batch":{number},'.encode() not in heard:
                heard = heard[-64:] + reader.recv(1 << 20)
        time.sleep(1.5)  # nobody reads the one connection for longer than may be
        assert _is_over(idle)
        idle.close()
        reader.close()


def _is_over(wire: socket.socket) -> bool:
    """Tell whether the other side has ended a connection, of which nothing has been read before."""
    wire.settimeout(5)
    try:
        while wire.recv(1 << 20):
            pass
    except ConnectionResetError:
        return True
    return True


def test_who_does_not_say_what_he_wants_is_let_go() -> None:
    with serving(StandIn(), Limits(head_seconds=1.0)) as url:
        silent, slow, slow_again = connected(url), connected(url), connected(url)
        slow.sendall(b"GET /status HTTP/1.1\r\nHost: 127")
        slow_again.sendall(b"GET /status HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert b"200 OK" in slow_again.recv(1024)
        slow_again.sendall(b"GET /sta")
        for wire in (silent, slow, slow_again):
            wire.settimeout(10)
            begun = time.monotonic()
            assert _ends(wire)
            assert time.monotonic() - begun < 8
            wire.close()
        assert ask(url, Asked()).status == 200


def _ends(wire: socket.socket) -> bool:
    try:
        while wire.recv(4096):
            pass
    except ConnectionResetError:
        pass
    return True


def test_one_look_at_the_engine_serves_all_who_ask_at_the_time() -> None:
    engine = StandIn("a")
    with serving(engine, Limits(snapshot_seconds=60)) as url:
        assert {ask(url, Asked()).body for _ in range(50)} == {b'{"running":true,"queries":["a"]}'}
        assert engine.looked == 1
        assert ask(url, adding(SELECT, name="b")).status == 202
        assert ask(url, Asked()).json["queries"] == ["a", "b"]


def test_a_connection_serves_one_request_after_another() -> None:
    with serving(StandIn(), Limits()) as url, connected(url) as wire:
        for _ in range(3):
            wire.sendall(b"GET /plan/history HTTP/1.1\r\nHost: localhost\r\n\r\n")
            heard = b""
            while b'{"epochs":[]}' not in heard:
                heard += wire.recv(4096)
        wire.sendall(b"GET /plan/history HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert read_reply(wire).json == {"epochs": []}
