"""Where the service listens, and by which names it is known there.

A browser that somebody else's page is open in sends requests to wherever that page says, also to this machine, and a
name of that page's may be made to lead here (DNS rebinding). Such a request names another host or another origin than
ours.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from dataclasses import dataclass

from plait.errors import OptionError
from plait.spelling import folded


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """`host` (a name or an address) and `port`, 0 for any; `names`: by which it is known besides."""

    host: str
    port: int
    names: frozenset[str] = frozenset()

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        address = _address(self.host)
        return folded(self.host) == "localhost" if address is None else address.is_loopback

    def knows(self, host: str) -> bool:
        """Tell whether this is what a request to us has as its ``Host``: our name, or an address, which no foreign name
        leads to.
        """
        name = _without_port(host)
        if name is None:
            return False
        address = _address(name)
        if address is not None:
            return address.is_loopback or not self.is_loopback
        return folded(name) in {"localhost", folded(self.host), *map(folded, self.names)}


def read_listening(text: str, names: Iterable[str] = ()) -> Listening:
    """Read ``HOST:PORT``. Raises OptionError."""
    host, sign, port = text.strip().rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    is_port = port.isascii() and port.isdigit() and int(port) <= 65535
    if not (sign and host and is_port):
        raise OptionError(f"--listen '{text}' is no address; expected HOST:PORT, such as 127.0.0.1:8040")
    return Listening(host=host, port=int(port), names=frozenset(names))


def bound_socket(listening: Listening) -> socket.socket:
    """Return a socket that listens there. Raises OptionError if that cannot be."""
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((listening.host, listening.port))
        bound.listen(1024)
    except OSError as error:
        bound.close()
        raise OptionError(
            f"--listen {listening.host}:{listening.port}: {error.strerror or error}; choose another port, or an "
            "address of this machine"
        ) from error
    return bound


def is_own_origin(origin: str, host: str) -> bool:
    """Tell whether a page that asks is one of ours: from the host it asks."""
    return folded(origin) in (f"http://{folded(host)}", f"https://{folded(host)}")


def _without_port(host: str) -> str | None:
    """Return the host of ``host:port``; None if it is neither."""
    if host.startswith("["):
        name, closing, rest = host[1:].partition("]")
        return name if closing and (not rest or rest[1:].isdigit()) else None
    name, _, port = host.partition(":")
    return name if name and (not port or port.isdigit()) else None


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


__all__ = ["Listening", "bound_socket", "is_own_origin", "read_listening"]
