"""Requests of the command line to a service (`--to URL`)."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias
from urllib.parse import quote, urlencode, urlsplit

import typer

from plait.errors import NotAllowedError, OptionError, PlaitError, SqlError

_SECONDS = 120.0
_ATTEMPTS = 60

To: TypeAlias = Annotated[
    str | None,
    typer.Option("--to", metavar="URL", help="The service of a running engine, such as http://127.0.0.1:8040."),
]

Token: TypeAlias = Annotated[
    Path | None, typer.Option("--token-file", metavar="FILE", help="With --to: the token that the service wants.")
]


class TooFastError(PlaitError):
    """The service wants to be asked more slowly."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A token is shown to nobody but the service that was named."""

    def redirect_request(self, *_: Any) -> None:
        """Follow none."""


@dataclass(frozen=True, slots=True)
class Client:
    """A service. `token`: what it wants to see, if anything."""

    url: str
    token: str | None = None

    def get(self, *path: str, **parameters: str) -> Any:
        """Return what the service says. Raises PlaitError with its words where it refuses."""
        return self._ask("GET", _path(path, {name: (value,) for name, value in parameters.items()}))

    def post(self, *path: str, body: str, **parameters: Iterable[str]) -> Any:
        """Have something done, and return what comes of it."""
        return self._ask("POST", _path(path, parameters), body)

    def delete(self, *path: str) -> Any:
        """Have something taken away."""
        return self._ask("DELETE", _path(path, {}))

    def _ask(self, method: str, path: str, body: str | None = None) -> Any:
        """Ask, and once more where that was too fast."""
        for _ in range(_ATTEMPTS):
            try:
                return self._asked(method, path, body)
            except TooFastError:
                time.sleep(1)
        return self._asked(method, path, body)

    def _asked(self, method: str, path: str, body: str | None) -> Any:
        headers = {"Accept": "application/json"}
        headers |= {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        headers |= {} if body is None else {"Content-Type": "application/sql"}
        request = urllib.request.Request(
            self.url + path, data=None if body is None else body.encode(), headers=headers, method=method
        )
        opener = urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=_SECONDS) as reply:
                return json.loads(reply.read())
        except urllib.error.HTTPError as error:
            raise _refused(error.code, error.read()) from error
        except (urllib.error.URLError, OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise PlaitError(f"there is no service of Plait at {self.url}: {reason}; is the run under way?") from error


def _path(parts: Iterable[str], parameters: Mapping[str, Iterable[str]]) -> str:
    given = [(name, value) for name, values in parameters.items() for value in values]
    path = "/" + "/".join(quote(part, safe="") for part in parts)
    return f"{path}?{urlencode(given)}" if given else path


def client_of(url: str, token_file: Path | None) -> Client:
    """Return the service at a URL. Raises OptionError for what is none, or holds more than where it is."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
        raise OptionError(f"--to '{url}' is no address of a service; expected one such as http://127.0.0.1:8040")
    token = None if token_file is None else token_file.read_text(encoding="utf-8").strip()
    return Client(url.rstrip("/"), token)


def _refused(status: int, body: bytes) -> PlaitError:
    """Return what the service said as the error it was there."""
    try:
        told = json.loads(body)
        message, line, column = str(told["error"]), told.get("line"), told.get("column")
    except (ValueError, KeyError, TypeError, AttributeError):
        return PlaitError(f"the service answered with status {status} and nothing that Plait says")
    match status:
        case 403:
            return NotAllowedError(message, line=line, column=column)
        case 422 | 404 | 409:
            return SqlError(message, line=line, column=column)
        case 429:
            return TooFastError(message)
        case 401:
            return OptionError(f"{message} (--token-file FILE)")
        case _:
            return PlaitError(f"{message} (status {status})")


__all__ = ["Client", "To", "Token", "client_of"]
