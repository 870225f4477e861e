"""What waits of a stream: the files in its folder that Spark's log does not name, and what is in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from plait.adapt.admission import Share, Unit, Waiting, admit
from plait.adapt.bounds import bounds_of, bounds_text
from plait.errors import PlaitError
from plait.query.model import Source, Stream
from plait.runtime.admission.counting import Counted, count_rows
from plait.runtime.admission.stream_files import ListedFile, folder_of, unread
from plait.runtime.admission.table_files import waiting_files
from plait.sources import format_of
from plait.spelling import folded
from plait.sql.script.set_options import UNBOUNDED
from plait.state.model import SourceProgress

BATCH_ROWS: Final = 2_000_000
"""What a batch takes of all streams together, unless ``plait.batch_rows`` says otherwise."""
_OPTIONS: Final[Mapping[Unit, str]] = {"bytes": "maxBytesPerTrigger", "rows": "maxOffsetsPerTrigger"}
_OWN: Final = ("maxFilesPerTrigger", "maxBytesPerTrigger", "maxOffsetsPerTrigger")
_ROW_BYTES: Final = {"parquet": 30.0, "orc": 30.0, "avro": 40.0, "xml": 300.0}
_TEXT_ROW_BYTES: Final = 80.0
_FEW: Final = 4


def batch_rows_option(value: str) -> int | None:
    """Read ``plait.batch_rows``, which `plait.sql.script.set_options.checked_option` let pass."""
    return None if value in UNBOUNDED else int(value)


def explained_bounds(sources: Iterable[Source], checkpoint: str | None, settings: Mapping[str, str]) -> str:
    """Say what would bound the next batch of a script with these settings."""
    batch_rows = batch_rows_option(settings.get("plait.batch_rows", str(BATCH_ROWS)))
    waiting, shares = look((each for each in sources if isinstance(each, Stream)), checkpoint, batch_rows)
    return bounds_text(batch_rows, bounds_of(waiting, shares))


def option_for(unit: Unit) -> str:
    """Return the option that bounds a reader in this unit."""
    return _OPTIONS[unit]


def look(
    streams: Iterable[Stream], checkpoint: str | None, batch_rows: int | None, progress: Iterable[SourceProgress] = ()
) -> tuple[tuple[Waiting, ...], tuple[Share, ...]]:
    """Return what waits of the streams, and what a batch should take of it; of no stream, if batches are not bounded.

    `progress`: what the checkpoint knows of them.
    """
    if batch_rows is None:
        return (), ()
    known = {each.source: each for each in progress}
    waiting = tuple(survey(stream, checkpoint, known.get(stream.name)) for stream in streams)
    return waiting, admit(waiting, batch_rows)


def survey(stream: Stream, checkpoint: str | None, progress: SourceProgress | None = None) -> Waiting:
    """Return what waits of a stream. `checkpoint`: where Spark has noted what it has read, None if nowhere."""
    known = Waiting(source=stream.name, rate=_rate(stream, progress))
    if stream.connector is None:
        return known
    options = {folded(name): value for name, value in stream.connector.options}
    own = next((name for name in _OWN if folded(name) in options), None)
    known = replace(known, own=own, unit=_unit(stream))
    if format_of(stream.connector.format).has_log:
        known = _with_table(known, stream, options, progress)
    elif known.unit == "bytes":
        known = _with_files(known, stream, options, checkpoint, progress)
    return replace(known, own_rows=None if own is None else _own_rows(known, own, options[folded(own)]))


def _unit(stream: Stream) -> Unit | None:
    if stream.connector is None:
        return None
    if folded(stream.connector.format) == "kafka":
        return "rows"
    return "bytes" if format_of(stream.connector.format).has_path else None


def _rate(stream: Stream, progress: SourceProgress | None) -> float | None:
    """Return the rows a second of event time, as declared, else as measured."""
    if stream.declared.rate_rows_per_s is not None or progress is None:
        return stream.declared.rate_rows_per_s
    if progress.tau_min is None or progress.tau_max is None or progress.tau_max <= progress.tau_min:
        return None
    return progress.rows * 1e6 / (progress.tau_max - progress.tau_min)


def _own_rows(waiting: Waiting, option: str, value: str) -> float | None:
    """Return about how many rows a bound of the user's own lets through."""
    try:
        bound = float(value)
    except ValueError:
        return None  # a size such as '1g', or a slip of which Spark will say more
    if option == "maxOffsetsPerTrigger":
        return bound
    if option == "maxBytesPerTrigger":
        return bound / waiting.row_bytes if waiting.row_bytes else None
    return None if waiting.file_rows is None else bound * waiting.file_rows


def _with_files(
    known: Waiting, stream: Stream, options: Mapping[str, str], checkpoint: str | None, progress: SourceProgress | None
) -> Waiting:
    assert stream.connector is not None
    format_ = folded(stream.connector.format)
    assumed = replace(known, row_bytes=_ROW_BYTES.get(format_, _TEXT_ROW_BYTES))
    try:
        folder = folder_of(options)
        waiting, done = unread(folder, stream.name, options["path"], checkpoint)
        looked_at = waiting or folder.files[-_FEW:]
        counted = count_rows(folder.filesystem, folder.root, looked_at, format_, _time_in_files(stream))
    except (PlaitError, pa.ArrowException, OSError, ValueError, KeyError):
        return assumed  # a folder that cannot be listed, or a log in a form unknown
    counted = counted or _measured(done, progress)
    size = sum(file.bytes for file in waiting)
    if counted is not None and counted.rows:
        assumed = replace(
            assumed,
            row_bytes=counted.bytes / counted.rows,
            file_rows=counted.rows / counted.looked_at if counted.looked_at else None,
            basis="sampled",
        )
    sized = replace(assumed, files=len(waiting), bytes=size, rows=size / (assumed.row_bytes or 1.0))
    return _with_count(sized, counted) if waiting and counted is not None else sized


def _with_table(known: Waiting, stream: Stream, options: Mapping[str, str], progress: SourceProgress | None) -> Waiting:
    assumed = replace(known, row_bytes=_ROW_BYTES["parquet"])
    try:
        return waiting_files(assumed, options, 0 if progress is None else progress.rows, _time_in_files(stream))
    except (PlaitError, pa.ArrowException, OSError, ValueError, KeyError, TypeError):
        return assumed  # a log that cannot be read, or in a form unknown


def _time_in_files(stream: Stream) -> str | None:
    """Return the column of event times, if files have it as it is."""
    made = stream.connector is not None and stream.connector.making is not None
    return None if made or stream.computed is not None else stream.time


def _measured(done: Sequence[ListedFile], progress: SourceProgress | None) -> Counted | None:
    """Return what was in the files that were read, of a format that tells nothing before."""
    if progress is None or not progress.rows or not done:
        return None
    return Counted(rows=progress.rows, bytes=sum(file.bytes for file in done), looked_at=0)


def _with_count(sized: Waiting, counted: Counted) -> Waiting:
    is_all = counted.looked_at == sized.files
    return replace(
        sized,
        rows=counted.rows if is_all else sized.rows,
        basis="counted" if is_all else "sampled",
        first_us=counted.first_us,
        last_us=counted.last_us,
    )
