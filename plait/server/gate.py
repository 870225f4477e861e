"""What every request passes before anything looks at what it asks: who asks, from where, how much, how fast.

As small as can be and by itself, so that it can be read at one sitting. In order: a host that is ours (else some
foreign name leads here), a page that is ours (else a browser was sent here), a rate, the token, a body of a size and a
kind that is expected, that arrives in time. Whatever is refused here is refused before it costs anything.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from plait.server.addresses import Listening, is_own_origin
from plait.server.allowance import Allowance
from plait.server.limits import Limits
from plait.server.page_files import FILES
from plait.server.secret import Secret

BODY_KINDS: Final = frozenset({"application/sql"})
"""What a browser does not send for a foreign page without asking first, which nobody answers."""

PUBLIC: Final = frozenset(FILES)
"""The page itself, which has nothing in it; what it shows it asks for with the token."""

_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"cache-control", b"no-store"),
)
_WRITES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An answer without more ado."""

    status: int
    error: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What is looked at of a request. `headers` in lower case; of one that is given twice all values."""

    method: str
    path: str
    query: str
    address: str
    headers: dict[str, list[str]]

    @classmethod
    def of(cls, scope: Scope) -> Head:
        """Read it."""
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        return cls(
            method=scope["method"],
            path=scope["path"],
            query=scope["query_string"].decode("latin-1"),
            address=(scope.get("client") or ("unknown", 0))[0],
            headers=headers,
        )

    def only(self, name: str) -> str | None:
        """Return the value of a header that is given once; None if it is not given, or several times."""
        values = self.headers.get(name, [])
        return values[0] if len(values) == 1 else None

    @property
    def writes(self) -> bool:
        """Whether something may change."""
        return self.method in _WRITES


Check: TypeAlias = Callable[["Head"], "Refusal | None"]


@dataclass(slots=True)
class Gate:
    """Lets requests through to `app`. `secret` None: whoever can reach the service may ask."""

    app: ASGIApp
    listening: Listening
    secret: Secret | None = None
    limits: Limits = field(default_factory=Limits)
    clock: Callable[[], float] = time.monotonic
    _reads: Allowance = field(init=False)
    _writes: Allowance = field(init=False)
    _refusals: Allowance = field(init=False)

    def __post_init__(self) -> None:
        self._reads = Allowance(self.limits.reads, self.clock)
        self._writes = Allowance(self.limits.writes, self.clock)
        self._refusals = Allowance(self.limits.refusals, self.clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        head = Head.of(scope)
        refusal = self.refusal_of(head)
        body = b""
        if refusal is None:
            read = await self._body(head, receive)
            refusal, body = (read, b"") if isinstance(read, Refusal) else (None, read)
        if refusal is not None:
            await _refuse(refusal, send)
            return
        await self.app(scope, _once(body, receive), _with_headers(send))

    def refusal_of(self, head: Head) -> Refusal | None:
        """Return why a request is not let through, as far as its head tells; None if it is."""
        whence: tuple[Check, ...] = (self._of_size, self._of_host, self._of_origin)
        for check in (*whence, self._of_rate, self._of_token, self._of_kind):
            refusal = check(head)
            if refusal is not None:
                return refusal
        return None

    def _of_size(self, head: Head) -> Refusal | None:
        """Look at the whole head, which the server takes at any length if it comes in one piece."""
        given = sum(len(name) + len(value) for name, values in head.headers.items() for value in values)
        if given + len(head.path) + len(head.query) <= self.limits.head_bytes:
            return None
        return Refusal(status=431, error=f"the head of a request has at most {self.limits.head_bytes} bytes")

    def _of_host(self, head: Head) -> Refusal | None:
        host = head.only("host")
        if host is not None and self.listening.knows(host):
            return None
        return Refusal(
            status=421,
            error="this host name is not the service's; ask for it by its address, or name it with --allow-host",
        )

    def _of_origin(self, head: Head) -> Refusal | None:
        origins = head.headers.get("origin", [])
        is_own = all(is_own_origin(origin, head.only("host") or "") for origin in origins)
        site = head.only("sec-fetch-site") or "none"
        opens_page = head.method == "GET" and head.path == "/" and head.only("sec-fetch-mode") == "navigate"
        if is_own and (site in ("none", "same-origin") or opens_page):
            return None
        return Refusal(status=403, error="this comes from a page of another site, which may ask for nothing here")

    def _of_rate(self, head: Head) -> Refusal | None:
        allowance = self._writes if head.writes else self._reads
        if allowance.take(head.address):
            return None
        return Refusal(status=429, error="too many requests; wait a second", headers=((b"retry-after", b"1"),))

    def _of_token(self, head: Head) -> Refusal | None:
        if self.secret is None:
            return None
        is_page = head.path in PUBLIC and not head.writes
        if is_page and not head.query:
            return None
        if not self._refusals.is_left(head.address):
            return Refusal(status=429, error="too many wrong tokens; wait", headers=((b"retry-after", b"10"),))
        if self.secret.is_in(unquote(f"{head.path} {head.query}")):
            self._refusals.take(head.address)
            return Refusal(
                status=400,
                error="the token is in the URL, which logs and histories keep: make another one, and send it as the "
                "header 'Authorization: Bearer TOKEN'",
            )
        if is_page:
            self._refusals.take(head.address)  # that it is let through tells of a guess behind it that it was wrong
            return None
        if self.secret.is_shown_by(head.only("authorization") or ""):
            return None
        self._refusals.take(head.address)
        return Refusal(
            status=401,
            error="the token is missing or wrong; send it as the header 'Authorization: Bearer TOKEN'",
            headers=((b"www-authenticate", b'Bearer realm="plait"'),),
        )

    def _of_kind(self, head: Head) -> Refusal | None:
        length = head.only("content-length")
        if length is not None and (not length.isdigit() or int(length) > self.limits.body_bytes):
            return Refusal(status=413, error=f"a body has at most {self.limits.body_bytes} bytes")
        if head.method != "POST":
            return None
        kind = (head.only("content-type") or "").partition(";")[0].strip().lower()
        if kind in BODY_KINDS and head.only("content-encoding") is None:
            return None
        return Refusal(status=415, error="send SQL as it is, with the header 'Content-Type: application/sql'")

    async def _body(self, head: Head, receive: Receive) -> bytes | Refusal:
        """Read the whole body, which is small."""
        if "content-length" not in head.headers and "transfer-encoding" not in head.headers:
            return b""
        try:
            return await asyncio.wait_for(_read(receive, self.limits.body_bytes), self.limits.body_seconds)
        except (TimeoutError, asyncio.TimeoutError):
            return Refusal(status=408, error=f"the body did not arrive within {self.limits.body_seconds:g} seconds")
        except _TooLongError:
            return Refusal(status=413, error=f"a body has at most {self.limits.body_bytes} bytes")


class _TooLongError(Exception):
    """A body goes on beyond the limit."""


async def _read(receive: Receive, most: int) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return bytes(body)
        body += message.get("body", b"")
        if len(body) > most:
            raise _TooLongError
        if not message.get("more_body", False):
            return bytes(body)


def _once(body: bytes, receive: Receive) -> Receive:
    """Return what gives the body that was read, and then tells when the client has gone."""
    told = False

    async def again() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = {name.lower() for name, _ in message.get("headers", ())}
            more = [(name, value) for name, value in _HEADERS if name not in given]
            message = {**message, "headers": [*message.get("headers", ()), *more]}
        await send(message)

    return sending


async def _refuse(refusal: Refusal, send: Send) -> None:
    """Answer with what was wrong and end the connection: what else comes on it belongs to what was refused."""
    body = json.dumps({"error": refusal.error}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *refusal.headers,
        *_HEADERS,
    ]
    start: MutableMapping[str, Any] = {"type": "http.response.start", "status": refusal.status, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": body})


__all__ = ["BODY_KINDS", "PUBLIC", "Gate", "Head", "Refusal"]
