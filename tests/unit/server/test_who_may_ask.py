"""Addresses, names and tokens: who is let in."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.errors import OptionError
from plait.server.addresses import Listening, bound_socket, is_own_origin, read_listening
from plait.server.secret import Secret, read_token
from plait.server.service import Rules

TOKEN = "0123456789abcdef"


@pytest.mark.parametrize(
    ("text", "host", "port"), [("127.0.0.1:8040", "127.0.0.1", 8040), ("[::1]:80", "::1", 80), (" box:0 ", "box", 0)]
)
def test_an_address_is_a_host_and_a_port(text: str, host: str, port: int) -> None:
    listening = read_listening(text)
    assert (listening.host, listening.port) == (host, port)


@pytest.mark.parametrize("text", ["8040", ":8040", "host:", "host:99999", "host:-1", "host:८", "", "host:80/x"])
def test_what_is_no_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(OptionError, match="expected HOST:PORT"):
        read_listening(text)


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [
        *((host, True) for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost")),
        *((host, False) for host in ("0.0.0.0", "::", "10.0.0.1", "box", "127.0.0.1.evil", "localhost.evil")),
    ],
)
def test_only_what_stays_on_the_machine_is_loopback(host: str, is_loopback: bool) -> None:
    assert Listening(host=host, port=0).is_loopback == is_loopback


def test_a_service_that_others_reach_needs_a_token() -> None:
    elsewhere = Listening(host="0.0.0.0", port=0)
    with pytest.raises(OptionError, match="add --token-file FILE"):
        Rules(listening=elsewhere)
    assert TOKEN not in repr(Rules(listening=elsewhere, token=TOKEN))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8040", "localhost:1", "LOCALHOST", "[::1]:8040", "[::1]"])
def test_this_machine_is_known_by_its_own_names(host: str) -> None:
    assert Listening(host="127.0.0.1", port=8040).knows(host)


@pytest.mark.parametrize(
    "host", ["", "evil", "10.0.0.1", "[::1", "[::1]x", "localhost:80:80", "127.0.0.1:x", "a@localhost"]
)
def test_this_machine_is_known_by_no_other_name(host: str) -> None:
    assert not Listening(host="127.0.0.1", port=8040).knows(host)


def test_a_service_for_others_is_known_by_addresses_and_the_names_it_was_told() -> None:
    listening = Listening(host="0.0.0.0", port=8040, names=frozenset({"plait.example"}))
    assert [listening.knows(host) for host in ("10.0.0.1:8040", "Plait.Example:443", "localhost")] == [True] * 3
    assert not listening.knows("evil.example")


def test_a_page_is_ours_if_it_comes_from_the_host_that_it_asks() -> None:
    assert is_own_origin("http://127.0.0.1:8040", "127.0.0.1:8040")
    assert is_own_origin("https://plait.example", "plait.example")
    assert not is_own_origin("http://127.0.0.1:8041", "127.0.0.1:8040")
    assert not is_own_origin("null", "127.0.0.1:8040")
    assert not is_own_origin("file://127.0.0.1:8040", "127.0.0.1:8040")


def test_a_port_in_use_is_told_before_anything_else_starts() -> None:
    taken = bound_socket(Listening(host="127.0.0.1", port=0))
    taken.listen()
    with taken, pytest.raises(OptionError, match="in use; choose another port"):
        bound_socket(Listening(host="127.0.0.1", port=taken.getsockname()[1]))


def _token_file(folder: Path, text: str, mode: int = 0o600) -> Path:
    file = folder / "token"
    file.write_text(text)
    file.chmod(mode)
    return file


def test_a_token_is_what_its_file_holds(tmp_path: Path) -> None:
    assert read_token(_token_file(tmp_path, f"  {TOKEN}\n")) == TOKEN


@pytest.mark.parametrize(
    ("text", "mode", "advice"),
    [
        (TOKEN, 0o644, "chmod 600"),
        (TOKEN, 0o620, "chmod 600"),
        ("short", 0o600, "openssl rand"),
        ("", 0o600, "openssl rand"),
        (f"{TOKEN} {TOKEN}", 0o600, "without blanks"),
        (f"{TOKEN}\u00e9", 0o600, "letters and digits"),
    ],
)
def test_a_token_that_others_know_or_guess_is_refused(tmp_path: Path, text: str, mode: int, advice: str) -> None:
    with pytest.raises(OptionError, match=advice) as refused:
        read_token(_token_file(tmp_path, text, mode))
    assert TOKEN not in str(refused.value)


def test_a_token_that_is_not_there_is_told_with_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="openssl rand"):
        read_token(tmp_path / "none")


def test_only_the_whole_token_in_its_scheme_is_shown() -> None:
    secret = Secret.of(TOKEN)
    assert secret.is_shown_by(f"Bearer {TOKEN}")
    assert secret.is_shown_by(f"bearer {TOKEN} ")
    wrong = ["", TOKEN, f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Bearer", "Bearer \udcff"]
    assert not any(secret.is_shown_by(each) for each in wrong)
    assert TOKEN not in repr(secret)


def test_the_token_is_found_wherever_a_url_has_it() -> None:
    secret = Secret.of(TOKEN)
    assert all(secret.is_in(url) for url in (f"/status?token={TOKEN}", f"/queries/{TOKEN}/why", f"/x a=1&b={TOKEN}"))
    assert not secret.is_in(f"/status?x={TOKEN}0")
