"""Keep what a task joins for queries that group, until their windows of event time are over.

Queries that group the same join in the same way, by windows of whatever length and slide, keep the same of it: partial
aggregates by panes that suit them all, made and written once. Each lists the file among its own, from the batch on in
which it came, and puts the panes together by itself when its windows are over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import pyarrow as pa

from plait.errors import Failure
from plait.operators.evaluating import EvaluationError
from plait.operators.traversal.partial_aggregates import fold, fold_again, fold_counted, not_folded, shared
from plait.plan.model import Output
from plait.sinks.delivery import Delivery, Fold, Gathering
from plait.state.gathered import write_gathered
from plait.state.model import GatheredRows
from plait.state.storage import Storage

Takers: TypeAlias = tuple[Gathering, ...]
"""Queries that keep the same of a join."""

_PART_BYTES: Final = 64 << 20


def fold_of(takers: Takers) -> Fold | None:
    """Return how rows are kept for all of them; None: as they are."""
    folds = [taker.fold for taker in takers if taker.fold is not None]
    return shared(folds) if folds else None


def alike(outputs: Sequence[Output], deliveries: Mapping[str, Delivery]) -> tuple[tuple[Output, ...], ...]:
    """Return the outputs of one point of a tree, those together whose queries keep the same of what comes there."""
    groups: dict[object, list[Output]] = {}
    for output in outputs:
        delivery = deliveries[output.query]
        kept = _kept_as(output, delivery) if isinstance(delivery, Gathering) else output.query
        groups.setdefault(kept, []).append(output)
    return tuple(map(tuple, groups.values()))


def _kept_as(output: Output, delivery: Gathering) -> object:
    how = delivery.fold
    kept = None if how is None else (how.keys, how.partials)
    return output.positions, output.residual_filters, output.counts, delivery.columns, delivery.time, kept


@dataclass(slots=True)
class _Kept:
    """What waits to be made partial aggregates: joined rows, and rows that weigh, by the columns they have."""

    takers: Takers
    joined: list[pa.RecordBatch] = field(default_factory=list)
    counted: dict[tuple[str, ...], list[pa.RecordBatch]] = field(default_factory=dict)

    def made(self) -> pa.RecordBatch:
        """Return what is written of all that."""
        time, how = self.takers[0].time.name, fold_of(self.takers)
        if how is None:
            return as_one(self.joined)
        columns = [ref.name for ref in self.takers[0].columns]
        parts = [fold(as_one(self.joined), how, time)] if self.joined else []
        parts += [fold_counted(as_one(pieces), how, time, columns) for pieces in self.counted.values()]
        return parts[0] if len(parts) == 1 else fold_again(as_one(parts), how, time)


class Gatherer:
    """Collects one task's rows. `name`: what a file of a query is called, without its number; `failures`: what could
    not be computed of them.
    """

    def __init__(self, storage: Storage, name: Callable[[str], str]) -> None:
        self._storage, self._name = storage, name
        self._pending: dict[tuple[str, ...], _Kept] = {}
        self._bytes = 0
        self._files: dict[str, list[GatheredRows]] = {}
        self.failures: list[Failure] = []

    def add(self, takers: Takers, rows: pa.RecordBatch) -> None:
        """Add joined rows, at least one."""
        self._kept(takers, rows).joined.append(rows)
        self._flush_if_much()

    def add_counted(self, takers: Takers, rows: pa.RecordBatch) -> None:
        """Add rows that weigh, at least one (`plait.operators.traversal.partial_aggregates.fold_counted`)."""
        self._kept(takers, rows).counted.setdefault(tuple(rows.schema.names), []).append(rows)
        self._flush_if_much()

    def finish(self) -> dict[str, tuple[GatheredRows, ...]]:
        """Write what is pending; return the files of each query."""
        self._flush()
        return {query: tuple(files) for query, files in self._files.items()}

    def _kept(self, takers: Takers, rows: pa.RecordBatch) -> _Kept:
        self._bytes += rows.nbytes
        return self._pending.setdefault(tuple(taker.query for taker in takers), _Kept(takers))

    def _flush_if_much(self) -> None:
        if self._bytes >= _PART_BYTES:
            self._flush()

    def _flush(self) -> None:
        pending, self._pending, self._bytes = self._pending, {}, 0
        for kept in pending.values():
            first = kept.takers[0]
            try:
                rows = kept.made()
            except EvaluationError as error:
                self.failures += not_folded((taker.query for taker in kept.takers), error)
                continue
            name = f"{self._name(first.query)}-{len(self._files.get(first.query, ()))}"
            file = write_gathered(self._storage, first.folder, name, rows, first.time.name)
            for taker in kept.takers:
                self._files.setdefault(taker.query, []).append(file)


def as_one(pieces: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return pieces as one, with the schema of the first: of others a time zone may have another of its names."""
    return pieces[0] if len(pieces) == 1 else pa.concat_batches([like(piece, pieces[0].schema) for piece in pieces])


def like(piece: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a piece with a schema that says the same in other names."""
    return piece if piece.schema.equals(schema) else piece.cast(schema)


__all__ = ["Gatherer", "Takers", "alike", "as_one", "fold_of", "like"]
