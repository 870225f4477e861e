"""Partial results on their way between tasks, as bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

from plait.operators.column_names import ROW
from plait.operators.probe.partials import Partials, Position

_NEWEST, _HIGH = "#newest", "#high"
_PAYLOAD_BYTES = 8 << 20
"""About how large a message may be: Spark keeps each as one row in memory, on its way out and in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Partial results on their way along `edge` to a partition of its store; `payload` is an Arrow IPC stream.
    `layers`: what they look into there (`plait.operators.probe.layers`).
    """

    edge: str
    partition: int
    payload: bytes
    layers: int = 1


def payloads(
    partials: Partials, columns: tuple[tuple[str, ...], ...], limit_bytes: int = _PAYLOAD_BYTES
) -> Iterator[bytes]:
    """Serialize partial results, in several pieces of about equal rows if all at once would exceed the limit."""
    whole = encode_partials(partials, columns)
    pieces = min(-(-len(whole) // limit_bytes), partials.count)
    if pieces <= 1:
        yield whole
        return
    del whole
    for low, high in pairwise(partials.count * piece // pieces for piece in range(pieces + 1)):
        yield encode_partials(partials.slice(low, high), columns)


def encode_partials(partials: Partials, columns: tuple[tuple[str, ...], ...]) -> bytes:
    """Serialize partial results with those of the given columns per position that they carry, named
    ``position:column``.
    """
    arrays: list[pa.Array] = [pa.array(partials.newest), pa.array(partials.high)]
    names = [_NEWEST, _HIGH]
    for number, (position, needed) in enumerate(zip(partials.positions, columns, strict=True)):
        carried = [name for name in needed if position.has(name)]
        arrays += [position.column(name) for name in carried]
        names += [f"{number}:{name}" for name in carried]
    batch = pa.RecordBatch.from_arrays(arrays, names=names)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def decode_partials(payload: bytes, position_count: int) -> Partials:
    """Return what `encode_partials` wrote."""
    with pa.ipc.open_stream(payload) as reader:
        batch = reader.read_next_batch()
    positions = []
    for number in range(position_count):
        prefix = f"{number}:"
        names = [name for name in batch.schema.names if name.startswith(prefix)]
        columns = [batch.column(name) for name in names] or [pa.nulls(batch.num_rows)]
        kept = [name.removeprefix(prefix) for name in names] or [ROW]
        positions.append(Position(block=pa.RecordBatch.from_arrays(columns, names=kept)))
    return Partials(
        count=batch.num_rows,
        positions=tuple(positions),
        newest=batch.column(_NEWEST).to_numpy(),
        high=batch.column(_HIGH).to_numpy(),
    )


__all__ = ["Message", "decode_partials", "encode_partials", "payloads"]
