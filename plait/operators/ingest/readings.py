"""Read stored rows as a later plan wants them: what they lack is computed from their raw columns when they are read.

A bucket is never changed, and to write all of them again for every query that comes would take the longer the more is
stored. A `Reading` is made once for a store and its plan (`plait.operators.ingest.derivable.reading_of`); it serves the
rows of every earlier plan alike, because it heeds none of the bits and keys they were stored with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

import pyarrow as pa

from plait.operators.column_names import word_names
from plait.operators.ingest.deriving import Derivation, derived
from plait.operators.ingest.ingest import with_aliases
from plait.state.buckets import one_batch
from plait.state.model import Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How rows of a store are read under a `layout` that they were not stored under: by `how`, from these `columns`."""

    layout: Layout
    columns: tuple[str, ...]
    how: Derivation

    def serves(self, stored: Layout) -> bool:
        """Tell whether rows that were stored under this layout can be read so."""
        return set(self.columns) <= set(stored.carried)

    def adds_to(self, stored: Layout) -> bool:
        """Tell whether rows that were stored under this layout lack something that they are read with."""
        selections = {each for each in self.layout.selections if each}
        return not (set(stored.carried) >= set(self.layout.carried) and set(stored.selections) >= selections)


Readings: TypeAlias = Mapping[str, Reading]
"""By store; of a store without one all rows are read as they are."""


NO_READINGS: Final[Readings] = MappingProxyType({})


def read_as(reading: Reading, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return stored rows, in their order, with the columns of the layout that they are read under."""
    (found,) = derived([rows.select(list(reading.columns))], reading.how)
    table = with_aliases(pa.Table.from_batches([found]), reading.how.spec)
    return one_batch(table.select([*reading.layout.carried, *word_names(len(reading.layout.selections))]))


__all__ = ["NO_READINGS", "Reading", "Readings", "read_as"]
