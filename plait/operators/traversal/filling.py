"""Keep what probing has joined in intermediate stores.

A kept tuple has the columns of all its parts, the τ of its newest part, and `UNTIL`, after which it can join nothing.
What arrivals of one part completed has buckets of its own: in the same batch only relations of higher rank may find it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

import pyarrow as pa

from plait.operators.column_names import TAU, UNTIL
from plait.operators.ingest.placing import by_partition
from plait.operators.ingest.projection import layout_of
from plait.operators.probe.partials import NO_HIGH, Partials
from plait.plan.model import Fill, Store
from plait.plan.traversals import carried_columns, split_part
from plait.state.buckets import rows_of_all, write_bucket
from plait.state.model import Bucket
from plait.state.storage import Storage

_CHUNK_ROWS = 2_000_000
_CHUNK_BYTES = 128 << 20


@dataclass(slots=True)
class _Pending:
    """Rows of one store, made by arrivals of one part, not written yet."""

    tables: list[pa.Table]
    rows: int = 0
    bytes: int = 0


class Filler:
    """Collects what one task keeps. Use as ``add`` for each piece, then ``finish`` once."""

    def __init__(self, storage: Storage, batch: int, name: str) -> None:
        self._storage, self._batch, self._name = storage, batch, name
        self._pending: dict[tuple[Store, int], _Pending] = defaultdict(lambda: _Pending([]))
        self._buckets: list[Bucket] = []
        self._written = 0

    def add(self, fill: Fill, store: Store, partials: Partials) -> None:
        """Keep these partial results in the intermediate store `store`."""
        if partials.count == 0:
            return
        started_by = fill.positions.index(0)
        carried = carried_by(fill, store, partials)
        pending = self._pending[carried, started_by]
        table = kept_rows(fill, carried, partials)
        pending.tables.append(table)
        pending.rows += table.num_rows
        pending.bytes += table.nbytes
        if pending.rows >= _CHUNK_ROWS or pending.bytes >= _CHUNK_BYTES:
            self._write(carried, started_by, pending)
            del self._pending[carried, started_by]

    def finish(self) -> tuple[Bucket, ...]:
        """Write what is left and describe all buckets."""
        for (store, started_by), pending in self._pending.items():
            self._write(store, started_by, pending)
        self._pending.clear()
        return tuple(self._buckets)

    def _write(self, store: Store, started_by: int, pending: _Pending) -> None:
        table = rows_of_all(pending.tables).combine_chunks()
        for partition, rows in by_partition(table, store, self._batch + self._written):
            bucket = write_bucket(
                self._storage,
                store=store.id,
                partition=partition,
                name=f"{self._batch}-{self._name}-{self._written}",
                table=rows,
                layout=layout_of(store),
                indexes=store.indexes,
                batch_min=self._batch,
                batch_max=self._batch,
                partition_by=store.partition_by,
                parallelism=store.parallelism,
            )
            until = rows[UNTIL].to_numpy().max()
            self._buckets.append(
                replace(
                    bucket,
                    until_us=None if until == NO_HIGH else int(until),
                    started_by=started_by,
                )
            )
        self._written += 1


def carried_by(fill: Fill, store: Store, partials: Partials) -> Store:
    """Return the store with the columns and keys that these partial results carry: members from buckets of earlier
    plans may lack some, and then serve only the queries that do not need them.
    """

    def has(*names: str | None) -> bool:
        parts = (split_part(store, name) for name in names if name is not None)
        return partials.supply((fill.positions[part], own) for part, own in parts)

    if has(*carried_columns(store)):
        return store
    keys = tuple(key for key in store.keys if has(key.name, key.value_name))
    names = {key.name for key in keys}
    return replace(
        store,
        columns=tuple(column for column in store.columns if has(column)),
        keys=keys,
        values=tuple(value for value in store.values if has(value.name)),
        indexes=tuple(index for index in store.indexes if names.issuperset(index)),
        partition_by=store.partition_by if names.issuperset(store.partition_by) else (),
    )


def kept_rows(fill: Fill, store: Store, partials: Partials) -> pa.Table:
    """Return partial results as the store keeps them."""
    columns = {TAU: pa.array(partials.newest), UNTIL: pa.array(partials.high)}
    for name in carried_columns(store):
        part, own = split_part(store, name)
        columns[name] = partials.positions[fill.positions[part]].column(own)
    return pa.table(columns)


__all__ = ["Filler", "kept_rows"]
