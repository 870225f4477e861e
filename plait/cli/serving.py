"""What `--listen` and its companions say, and the service while a command runs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from plait.errors import OptionError

if TYPE_CHECKING:
    from plait.server.service import Rules, Service

Listen: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Also serve HTTP there, such as 127.0.0.1:8040: status, plan, events; queries can be added and dropped.",
    ),
]

TokenFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="With --listen: a token that requests have to show. Only its owner may read it."),
]

AllowHost: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="With --listen: a name of this machine that requests may ask for; repeatable."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenChoices:
    """What the command line says of the service."""

    listen: str
    token_file: Path | None = None
    allow_hosts: tuple[str, ...] = ()


def listen_choices(listen: str | None, token_file: Path | None, allow_hosts: list[str] | None) -> ListenChoices | None:
    """Return them; None without a service. Raises OptionError for what means nothing without one."""
    if listen is None:
        if token_file is not None or allow_hosts:
            raise OptionError("--token-file and --allow-host say who may use the service; add --listen HOST:PORT")
        return None
    return ListenChoices(listen=listen, token_file=token_file, allow_hosts=tuple(allow_hosts or ()))


def service_rules(choices: ListenChoices, settings: Mapping[str, str], base: str) -> Rules:
    """Return how the service is to be. `settings`: what the script SETs of it; `base`: its directory. Raises
    OptionError for what cannot be, and where the extra is not installed.
    """
    # Imported here because commands without a service neither have nor load what it needs.
    try:
        from plait.server.addresses import read_listening
        from plait.server.limits import Limits
        from plait.server.secret import read_token
        from plait.server.service import Rules
    except ModuleNotFoundError as error:
        raise OptionError(f"the service needs {error.name}; install it with: pip install 'plait[server]'") from error
    from plait.sql.script.allowed_paths import read_allowed_paths
    from plait.sql.script.remote import Remote

    paths = read_allowed_paths(settings.get("plait.allow_paths", ""), base)
    most = settings.get("plait.max_queries")
    return Rules(
        listening=read_listening(choices.listen, choices.allow_hosts),
        token=None if choices.token_file is None else read_token(choices.token_file),
        allowed=Remote(allowed_paths=paths, base=base),
        limits=Limits() if most is None else Limits(queries=int(most)),
    )


def opened_service(rules: Rules | None) -> AbstractContextManager[Service | None]:
    """Return the service, which has its port as soon as this returns; None without rules."""
    if rules is None:
        return nullcontext()
    from plait.server.service import Service

    return Service(rules)


__all__ = ["AllowHost", "Listen", "ListenChoices", "TokenFile", "listen_choices", "opened_service", "service_rules"]
