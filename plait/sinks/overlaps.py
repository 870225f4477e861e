"""Which directories sources and sinks use, and those that lie in each other: a sink in what a query reads would feed on
itself.
"""

from __future__ import annotations

import fnmatch
import os
import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import unquote, urlsplit

from typing_extensions import assert_never

from plait.query.model import SinkSpec, Source, Stream
from plait.sinks.kinds import format_problem, kind_of
from plait.sinks.options import option_of
from plait.spelling import folded

Role: TypeAlias = Literal["sink", "source", "cleaned source", "archive", "dead letters", "checkpoint"]
"""What a directory is for. From a `cleaned source` files are taken away once they are read; an `archive` is where such
files go.
"""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_GLOB = re.compile(r"[*?\[{]")
_BRACES = re.compile(r"\{([^{}]*)\}")

_READ: frozenset[Role] = frozenset(("source", "cleaned source"))
_BESIDE_A_CHECKPOINT: frozenset[Role] = _READ | {"checkpoint"}
_SHARED: frozenset[Role] = frozenset(("source", "archive", "dead letters"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A path or URI, whose it is (``query 'q'``) and what for. That of a source may have Hadoop's wildcards."""

    owner: str
    role: Role
    path: str


def overlap(place: Place, others: Iterable[Place]) -> str | None:
    """Say which of the others this place must not share directories with, and what to do; None if all is well."""
    mine = [_parts(path) for path in _expanded(place)]
    for other in others:
        theirs = [_parts(path) for path in _expanded(other)] if _conflict(place.role, other.role) else []
        if any(one == another for one in mine for another in theirs):
            return _message(place, other, "is")
        if any(_lies_in(one, another) for one in mine for another in theirs):
            return _message(place, other, "lies inside")
        if any(_lies_in(another, one) for one in mine for another in theirs):
            return _message(place, other, "holds")
    return None


def _conflict(one: Role, other: Role) -> bool:
    """Streams may share a folder for dead letters, and one for archives; tables and streams may share files unless one
    of them takes them away; and a source may have a checkpoint beside its files. Everything else that is written wants
    a place of its own.
    """
    if {one, other} <= _BESIDE_A_CHECKPOINT and "checkpoint" in (one, other):
        return False
    return not (one == other and one in _SHARED)


def _message(place: Place, other: Place, how: Literal["is", "lies inside", "holds"]) -> str:
    match other.role:
        case "sink":
            use = f"which {other.owner} writes to"
        case "source":
            use = f"which {other.owner} reads"
        case "cleaned source":
            use = f"which {other.owner} reads and clears away (cleanSource)"
        case "archive":
            use = f"where {other.owner} moves the files it has read"
        case "dead letters":
            use = f"where {other.owner} puts dead letters"
        case "checkpoint":
            use = "where the checkpoint is"
        case _:
            assert_never(other.role)
    where = f"'{place.path}' is" if how == "is" else f"'{place.path}' {how} '{other.path}',"
    if place.role == "cleaned source":
        use += ", and cleanSource would take files away from there"
    return f"{where} {use}; give each a directory of its own".replace("is which", "is what")


def _expanded(place: Place) -> Sequence[str]:
    """Return the paths that ``{a,b}`` stands for; only sources have wildcards."""
    if place.role not in _READ:
        return (place.path,)
    pending, done = [place.path], []
    while pending:
        path = pending.pop()
        braces = _BRACES.search(path)
        if braces is None:
            done.append(path)
        else:
            pending += [path[: braces.start()] + choice + path[braces.end() :] for choice in braces[1].split(",")]
    return done


def _parts(path: str) -> tuple[str, ...]:
    """Return where a path leads, step by step: links and ``..`` resolved, a ``file:`` URI as the path it is."""
    if path.lower().startswith("file:"):
        path = unquote(urlsplit(path).path)
    elif _SCHEME.match(path):
        scheme, _, below = path.partition(":")
        scheme = re.sub("^s3[an]$", "s3", scheme.lower())
        return (scheme, *(part for part in posixpath.normpath(below.strip("/")).split("/") if part))
    wild = _GLOB.search(path)
    plain = path if wild is None else path[: path.rfind("/", 0, wild.start()) + 1]
    rest = [part for part in path[len(plain) :].split("/") if part not in ("", ".")]
    return ("file", *(part for part in os.path.realpath(plain or ".").split("/") if part), *rest)


def _lies_in(inner: tuple[str, ...], outer: tuple[str, ...]) -> bool:
    """Tell whether a path can lie in another, or be it; wildcards of either match one step each."""
    return len(outer) <= len(inner) and all(map(_can_be_same, inner, outer))


def _can_be_same(one: str, other: str) -> bool:
    return one == other or fnmatch.fnmatchcase(one, _shell(other)) or fnmatch.fnmatchcase(other, _shell(one))


def _shell(pattern: str) -> str:
    """Return Hadoop's wildcards as Python has them: ``[^a]`` is ``[!a]``."""
    return pattern.replace("[^", "[!")


def checkpoint_place(checkpoint: str) -> Place:
    """Return where a checkpoint lies."""
    return Place(owner="the checkpoint", role="checkpoint", path=checkpoint)


def read_places(source: Source) -> tuple[Place, ...]:
    """Return what a source reads, as far as it says so itself."""
    path = _option(source, "path")
    is_cleaned = isinstance(source, Stream) and folded(_option(source, "cleanSource") or "off") != "off"
    return (
        (Place(owner=owner_of(source), role="cleaned source" if is_cleaned else "source", path=path),) if path else ()
    )


def archive_places(source: Source) -> tuple[Place, ...]:
    """Return where a stream moves the files it has read, if anywhere."""
    path = _option(source, "sourceArchiveDir")
    if not path or not isinstance(source, Stream) or folded(_option(source, "cleanSource") or "") != "archive":
        return ()
    return (Place(owner=owner_of(source), role="archive", path=path),)


def _option(source: Source, name: str) -> str | None:
    return None if source.connector is None else option_of(source.connector.options, name)


def letter_places(source: Source) -> tuple[Place, ...]:
    """Return where a stream puts its dead letters, if anywhere."""
    if not isinstance(source, Stream) or not source.dead_letter:
        return ()
    return (Place(owner=owner_of(source), role="dead letters", path=source.dead_letter),)


def sink_places(query: str, sink: SinkSpec) -> tuple[Place, ...]:
    """Return where a sink writes, if it writes to a directory."""
    path = option_of(sink.options, "path")
    if not path or format_problem(sink.format) is not None or "path" not in kind_of(sink).required:
        return ()
    return (Place(owner=f"query '{query}'", role="sink", path=path),)


def owner_of(source: Source) -> str:
    """Name a source as messages do."""
    return f"{'stream' if isinstance(source, Stream) else 'table'} '{source.name}'"
