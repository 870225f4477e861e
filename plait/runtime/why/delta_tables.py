"""The rows of a stream of a Delta table, read once more, each with the batch that took it.

Spark's offset log says with which file of which version of the table each batch ended; the table's log, which version
added each file. Both tell together as long as nothing but additions has happened: files that were rewritten are not
those that were read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from plait.errors import OptionError
from plait.query.model import Connector
from plait.runtime.checkpoint.offsets import offsets_by_batch
from plait.runtime.inputs.delta_files import Position, TableLog, position_of, read_log
from plait.sources import spark_name
from plait.spelling import folded

_ANYWHERE: Final = ("path", "startingversion", "maxfilespertrigger", "maxbytespertrigger", "failondataloss")


def batches_of_files(stream: str, connector: Connector, checkpoint: str) -> dict[str, int | None]:
    """Return which batch took each file of a table, by the last part of its path: None where none has yet; files that
    are not rows of the stream are left out. Raises OptionError where the logs do not tell.
    """
    options = {folded(name): value for name, value in connector.options}
    for name, value in options.items():
        if name not in _ANYWHERE and "." not in name:
            raise _untold(stream, f"option {name} '{value}' decides which rows it has")
    starting = options.get("startingversion", "0")
    if not starting.isdigit():
        raise _untold(stream, f"where it began (startingVersion '{starting}') is not written down")
    try:
        log = read_log(options["path"])
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise _untold(stream, f"the log of its table cannot be read: {error}") from error
    name = spark_name(stream)
    offsets = {batch: told[name] for batch, told in offsets_by_batch(checkpoint).items() if name in told}
    return files_of_batches(stream, log, positions(stream, offsets), int(starting))


def positions(stream: str, offsets: Mapping[int, str]) -> dict[int, Position]:
    """Return how far the stream had come with each batch. Raises OptionError where that is not to be understood."""
    found = {batch: position_of(offset) for batch, offset in offsets.items()}
    known = {batch: position for batch, position in found.items() if position is not None}
    if len(known) < len(found):
        raise _untold(stream, "Spark's note of how far it has read is in a form unknown")
    return known


def files_of_batches(
    stream: str, log: TableLog, reached: Mapping[int, Position], starting: int = 0
) -> dict[str, int | None]:
    """Return which batch took each file from version `starting` on. `reached`: how far the stream had come with each.

    >>> from plait.runtime.inputs.delta_files import AddedFile
    >>> files = [AddedFile(name=f"f{n}", version=n, is_new=True, bytes=1) for n in range(4)]
    >>> log = TableLog(first=0, last=3, added=tuple(files), removed=frozenset())
    >>> after = {batch: Position(version=batch + 2, index=-1, in_snapshot=False) for batch in (0, 1)}
    >>> files_of_batches("s", log, after)
    {'f0': 0, 'f1': 0, 'f2': 1, 'f3': None}
    """
    if log.removed or not all(file.is_new for file in log.added):
        raise _untold(stream, "files of its table were taken out or rewritten since, as DELETE, UPDATE and OPTIMIZE do")
    first = min((position.version for position in reached.values()), default=0)
    if log.first > max(first, starting):
        raise _untold(stream, f"the log of its table begins at version {log.first} now, which is after its first batch")
    found: dict[str, int | None] = {file.name: None for file in log.added if (file.version or 0) >= starting}
    for batch in sorted(reached, reverse=True):
        found.update((name, batch) for name in reached[batch].has_read(log) & found.keys())
    return found


def _untold(stream: str, why: str) -> OptionError:
    return OptionError(f"which batch has read a row of stream '{stream}' cannot be told any more: {why}")


__all__ = ["batches_of_files", "files_of_batches", "positions"]
