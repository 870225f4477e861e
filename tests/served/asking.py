"""Requests as they go over the wire, wrong ones too."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

SQL = ("Content-Type", "application/sql")
SECONDS = 120.0
TOKEN = "correct-horse-battery-staple"


@dataclass(frozen=True, kw_only=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request. `host` None: the service's own; `more`: bytes in the place of everything else."""

    method: str = "GET"
    path: str = "/status"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    host: str | None = None
    more: bytes | None = field(default=None)

    def wire(self, own: str) -> bytes:
        if self.more is not None:
            return self.more.replace(b"{own}", own.encode())
        lines = [f"{self.method} {self.path} HTTP/1.1", f"Host: {self.host or own}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        if self.body is not None and not any(name.lower() == "content-length" for name, _ in self.headers):
            lines.append(f"Content-Length: {len(self.body)}")
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + (self.body or b"")


def connected(url: str, buffer: int | None = None) -> socket.socket:
    """Connect; `buffer`: how much the other side may send before it is read."""
    parts = urlsplit(url)
    wire = socket.socket()
    if buffer is not None:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    wire.settimeout(SECONDS)
    wire.connect((parts.hostname, parts.port))
    return wire


def ask(url: str, asked: Asked) -> Reply:
    """Send one request and read the answer to its end."""
    with connected(url) as wire:
        with suppress(OSError):  # refused before all of it was sent
            wire.sendall(asked.wire(urlsplit(url).netloc))
        return read_reply(wire)


def read_reply(wire: socket.socket) -> Reply:
    data = b""
    try:
        while piece := wire.recv(65536):
            data += piece
    except ConnectionResetError:
        pass  # what was not read any more is thrown away with the connection
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    assert first, "closed without an answer"
    pairs = (line.partition(": ") for line in lines)
    return Reply(status=int(first.split()[1]), headers={name.lower(): value for name, _, value in pairs}, body=body)


def adding(select: str, sink: str = "noop", name: str = "q") -> Asked:
    """Return a request to add a query."""
    return posting(f"CREATE QUERY {name} INTO {sink} AS {select}")


def posting(text: str | bytes, headers: Iterable[tuple[str, str]] = (SQL,), path: str = "/queries") -> Asked:
    body = text if isinstance(text, bytes) else text.encode()
    return Asked(method="POST", path=path, headers=tuple(headers), body=body)
