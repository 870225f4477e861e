"""Find for each row which of hundreds of selections hold, by the classes of its values.

`plait.operators.ingest.indexing` makes the index, which is plain data: tasks get it with the rest of what they are to
do. A selection holds for a row if it holds for the class of each column that it asks something of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from plait.kernels.classing import Words, classes_of_numbers, classes_of_texts, keep_bits
from plait.kernels.compiled import Int32s, Int64s
from plait.kernels.value_hashing import Bytes
from plait.operators.column_names import SELECTIONS_PER_WORD
from plait.operators.ingest.arrow_values import ordered_numbers, pieces

_ALL = np.int64(-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnClasses:
    """The classes of a column's values, cut by ascending `bounds` as in `plait.kernels.classing`; NULL is the last one.

    `asking`: the selections, by place, that ask something of the column. `runs`: (place, first class, last class) for
    which one of them holds. Bounds of numbers are in the order of `ordered_numbers`, those of texts their bytes.
    """

    column: str
    bounds: tuple[int, ...] | tuple[bytes, ...]
    is_text: bool
    asking: tuple[int, ...]
    runs: tuple[tuple[int, int, int], ...]

    @property
    def count(self) -> int:
        """How many classes there are."""
        return 2 * len(self.bounds) + 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionIndex:
    """Decides the selections at `places`, among those that a spec asks for."""

    places: tuple[int, ...]
    columns: tuple[ColumnClasses, ...]


def indexed_words(index: SelectionIndex, columns: Mapping[str, pa.Array], rows: int, words: int) -> Words:
    """Return the query-set words of rows (int64[rows, words]) with the bits of the index's selections that hold."""
    bits = np.zeros((rows, words), np.int64)
    for place in index.places:
        word, bit = divmod(place, SELECTIONS_PER_WORD)
        bits[:, word] |= np.int64(1 << bit)
    for each in index.columns:
        keep_bits(_classes(each, columns[each.column]), _held(each, words), bits)
    return bits


def _classes(of: ColumnClasses, values: pa.Array) -> Int32s:
    if of.is_text:
        data, starts = pieces(values)
        classes = classes_of_texts(data, starts, *_text_bounds(of))
    else:
        classes = classes_of_numbers(ordered_numbers(values), np.array(of.bounds, np.int64))
    if values.null_count:
        classes[values.is_null().to_numpy(zero_copy_only=False)] = of.count - 1
    return classes


@lru_cache(maxsize=256)
def _text_bounds(of: ColumnClasses) -> tuple[Bytes, Int64s]:
    texts = [bound for bound in of.bounds if isinstance(bound, bytes)]
    starts = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return np.frombuffer(b"".join(texts), np.uint8), starts


@lru_cache(maxsize=256)
def _held(of: ColumnClasses, words: int) -> Words:
    """Return what each class holds (int64[classes, words]): every bit of a selection that asks nothing of the column,
    and of others those whose runs it is in.
    """
    held = np.full((of.count, words), _ALL)
    for place in of.asking:
        word, bit = divmod(place, SELECTIONS_PER_WORD)
        held[:, word] &= np.int64(~(1 << bit))
    for place, first, last in of.runs:
        word, bit = divmod(place, SELECTIONS_PER_WORD)
        held[first : last + 1, word] |= np.int64(1 << bit)
    return held


__all__ = ["ColumnClasses", "SelectionIndex", "indexed_words"]
