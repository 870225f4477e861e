"""Which directories sources and sinks use."""

from __future__ import annotations

from plait.query.model import SinkSpec, Source, Stream
from plait.sinks.kinds import format_problem, kind_of
from plait.sinks.options import option_of
from plait.sinks.overlaps import Place
from plait.spelling import folded


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
