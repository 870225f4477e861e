"""Which directories sources and sinks use."""

from __future__ import annotations

from plait.query.model import SinkSpec, Source, Stream
from plait.sinks.kinds import format_problem, kind_of
from plait.sinks.options import option_of
from plait.sinks.overlaps import Place


def checkpoint_place(checkpoint: str) -> Place:
    """Return where a checkpoint lies."""
    return Place(owner="the checkpoint", role="checkpoint", path=checkpoint)


def read_places(source: Source) -> tuple[Place, ...]:
    """Return what a source reads, as far as it says so itself."""
    path = None if source.connector is None else option_of(source.connector.options, "path")
    return (Place(owner=owner_of(source), role="source", path=path),) if path else ()


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
