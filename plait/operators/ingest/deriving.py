"""Have what a plan wants of a row from what is at hand of it, without Spark: in an ingest task, where Spark's query was
started for before this plan was made or selections are many, and when stored rows are written again.

`plait.operators.ingest.derivable` says how, as a `Derivation`; here it is carried out. What is at hand keeps its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plait.errors import PlaitError
from plait.kernels.classing import Words
from plait.operators.column_names import SELECTIONS_PER_WORD, bit_of, word_names
from plait.operators.evaluating import EvaluationError, evaluated
from plait.operators.ingest.hashes import spark_hash
from plait.operators.ingest.indexed import SelectionIndex, indexed_words
from plait.operators.ingest.placing import int64_values
from plait.operators.ingest.projection import IngestSpec

NO_INDEX: Final = SelectionIndex(places=(), columns=())

_INSTANT: Final = pa.timestamp("us", "UTC")


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """A column, or a selection under its SQL, that DuckDB computes as Spark would: `sql` over columns ``"n"``, the n-th
    of ``Derivation.reads``. `is_instant`: Spark hands it over with a time zone, which DuckDB has not. `is_hash`: it is
    Spark's hash of that.
    """

    name: str
    sql: str
    is_instant: bool = False
    is_hash: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivation:
    """How rows come to be as `spec` has them. `aliases`: (name, other) of those at hand, where `other` is there.
    `held`: the selections behind the words at hand; `index`: decides selections of the spec, by columns at hand;
    `columns` and `selections`: what has to be computed besides, from the columns that it `reads`.
    """

    spec: IngestSpec
    aliases: tuple[tuple[str, str], ...]
    held: tuple[str, ...]
    reads: tuple[str, ...]
    columns: tuple[Derived, ...]
    selections: tuple[Derived, ...]
    index: SelectionIndex = NO_INDEX


def derived(batches: Iterable[pa.RecordBatch], derivation: Derivation) -> Iterator[pa.RecordBatch]:
    """Yield the rows with the columns of ``derivation.spec.projection``. Raises PlaitError for a row of which one
    cannot be computed.
    """
    for batch in batches:
        if batch.num_rows:
            yield _derived(batch, derivation)


def _derived(batch: pa.RecordBatch, derivation: Derivation) -> pa.RecordBatch:
    columns: dict[str, pa.Array] = dict(zip(batch.schema.names, batch.columns, strict=True))
    words = {name: columns.pop(name) for name in word_names(max(len(derivation.held), 2)) if name in columns}
    columns |= {name: columns[other] for name, other in derivation.aliases}
    computed = _computed(derivation, columns)
    columns |= {each.name: computed[each.name] for each in derivation.columns}
    names = [name for name, _ in derivation.spec.projection]
    wanted = [word for word in word_names(max(len(derivation.spec.selections), 2)) if word in names]
    if wanted:
        bits = _bits(derivation, words, columns, computed, batch.num_rows)
        columns |= {word: pa.array(np.ascontiguousarray(bits[:, place])) for place, word in enumerate(wanted)}
    return pa.RecordBatch.from_arrays([columns[name] for name in names], names=names)


def _computed(derivation: Derivation, columns: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    """Return what has to be computed, by name."""
    asked = (*derivation.columns, *derivation.selections)
    if not asked:
        return {}
    reads = {place: columns[name] for place, name in enumerate(derivation.reads)}
    try:
        found = evaluated([each.sql for each in asked], reads)
        instant = _instant(reads.values())
        return {each.name: _as_handed(array, each, instant) for each, array in zip(asked, found, strict=True)}
    except EvaluationError as error:
        names = ", ".join(derivation.reads)
        raise PlaitError(f"an expression over {names} cannot be computed for some row: {error}") from error


def _instant(reads: Iterable[pa.Array]) -> pa.DataType:
    """Return the type of instants: UTC has several names, and Spark hands all over under the session's."""
    return next((each.type for each in reads if pa.types.is_timestamp(each.type) and each.type.tz), _INSTANT)


def _as_handed(array: pa.Array, of: Derived, instant: pa.DataType) -> pa.Array:
    """Return what was computed as Spark would hand it over."""
    return array.cast(instant) if of.is_instant else spark_hash(array) if of.is_hash else array


def _bits(
    derivation: Derivation,
    words: Mapping[str, pa.Array],
    columns: Mapping[str, pa.Array],
    computed: Mapping[str, pa.Array],
    rows: int,
) -> Words:
    """Return the words of bits (int64[rows, words]): of selections in the index by that, of those that are at hand by
    theirs, of others by what was computed.
    """
    asked, index = derivation.spec.selections, derivation.index
    bits = indexed_words(index, columns, rows, len(word_names(max(len(asked), 2))))
    for place in sorted({*range(len(asked))} - {*index.places}):
        selection = asked[place]
        if selection in computed:
            holds = pc.fill_null(computed[selection], False).to_numpy(zero_copy_only=False)
        elif words:
            word, mask = bit_of(derivation.held, selection)
            holds = (int64_values(words, word) & mask) != 0
        else:  # the only one there was, or every row's
            holds = np.ones(rows, np.bool_)
        at, bit = divmod(place, SELECTIONS_PER_WORD)
        bits[:, at] |= np.where(holds, np.int64(1 << bit), np.int64(0))
    return bits


__all__ = ["Derivation", "Derived", "derived"]
