"""The service itself: it listens in a thread beside the engine, from before Spark is there until the run is over."""

from __future__ import annotations

import asyncio
import socket
import threading
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final

import uvicorn

from plait.errors import OptionError
from plait.server.addresses import Listening, bound_socket
from plait.server.desk import Desk
from plait.server.event_feed import EventFeed
from plait.server.gate import Gate
from plait.server.limits import Limits
from plait.server.patience import impatient
from plait.server.routes import Counterpart, application
from plait.server.secret import Secret
from plait.server.served import Served
from plait.sql.script.remote import Remote

_PATIENCE_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Where the service listens, whom it answers (`token` None: everybody), and what it lets in. Raises OptionError for
    a service that others could reach and that asks for no token.
    """

    listening: Listening
    token: str | None = field(default=None, repr=False)
    allowed: Remote = field(default_factory=Remote)
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if self.token is None and not self.listening.is_loopback:
            raise OptionError(
                f"--listen {self.listening.host}:{self.listening.port} can be reached from other machines: add "
                "--token-file FILE, which everybody who asks then has to know, or listen on 127.0.0.1"
            )


class Service:
    """Listens as long as it is entered. The port is taken when it is made, so that one that is in use is told early."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._socket: socket.socket = bound_socket(rules.listening)
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self._feed = EventFeed(rules.limits.listeners)
        self._desk = Desk(rules.limits.pending)

    @property
    def url(self) -> str:
        """Where it is."""
        host, port = self._socket.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def begin(self, served: Served) -> None:
        """Begin to answer for an engine."""
        limits = self._rules.limits
        counterpart = Counterpart(
            served=served, allowed=self._rules.allowed, limits=limits, feed=self._feed, desk=self._desk
        )
        secret = None if self._rules.token is None else Secret.of(self._rules.token)
        gate = Gate(application(counterpart), self._rules.listening, secret, limits)
        self._server = uvicorn.Server(_config(gate, limits))
        self._thread = threading.Thread(target=self._serve, name="plait-service", daemon=True)
        served.listen(self._feed.hear)
        self._thread.start()

    def _serve(self) -> None:
        assert self._server is not None, "it has begun"
        asyncio.run(self._serving(self._server))

    async def _serving(self, server: uvicorn.Server) -> None:
        self._feed.open(asyncio.get_running_loop())
        watch = asyncio.ensure_future(self._let_go(server))
        try:
            await server.serve(sockets=[self._socket])
        finally:
            watch.cancel()

    async def _let_go(self, server: uvicorn.Server) -> None:
        """End what never ends by itself once the service is to end."""
        while not server.should_exit:
            await asyncio.sleep(0.1)
        self._feed.close()

    def end(self) -> None:
        """Answer what is under way, and nothing else."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join(_PATIENCE_SECONDS)
        self._desk.close()
        self._socket.close()

    def __enter__(self) -> Service:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()


def _config(gate: Gate, limits: Limits) -> uvicorn.Config:
    return uvicorn.Config(
        gate,
        http=impatient(limits.head_seconds, limits.stalled_seconds),
        ws="none",
        lifespan="off",
        proxy_headers=False,  # whoever asks could name any address
        server_header=False,
        date_header=False,
        access_log=False,
        log_config=None,
        log_level="critical",
        limit_concurrency=limits.connections,
        h11_max_incomplete_event_size=limits.head_bytes,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=2,
    )


__all__ = ["Rules", "Service"]
