"""Which selections hold for stored tuples: bits of the query-set words, as masks or as columns by name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from plait.operators.column_names import SELECTED, bit_masks, bit_of, places_of, word_names
from plait.operators.probe.partials import Int64s, Rows
from plait.plan.model import Member, Selection
from plait.state.buckets import OpenBucket
from plait.state.model import Bucket, Layout


def answers(bucket: Bucket, member: Member, columns: tuple[str, ...]) -> bool:
    """Tell whether the bucket carries what this member must have; one written for earlier queries may not.

    Of several queries that share the member it must serve one: to it, a tuple is none of the others.
    """
    return bool(known_selections(bucket.layout, member.selection)) and all(carries(bucket, name) for name in columns)


def carries(bucket: Bucket, name: str) -> bool:
    """Tell whether the bucket carries a column. Of every selection it can say whether it is known to hold."""
    return name.startswith(SELECTED) or name in bucket.layout.carried


def known_selections(layout: Layout, selection: Selection) -> list[str]:
    """Return the selections of single queries behind one of a member that buckets of a layout tell of."""
    places = places_of(layout.selections)
    return [sql for sql in (each.sql for each in selection.alternatives) if sql in places]


def selection_words(opened: OpenBucket, member: Member) -> tuple[Int64s | None, int]:
    """Return (words of the rows, mask): a row's member selection holds if its word has a bit of the mask; (None, 0) if
    it holds for every row.
    """
    selections = opened.bucket.layout.selections
    if not word_names(len(selections)):
        return None, 0
    masks = bit_masks(selections, known_selections(opened.bucket.layout, member.selection))
    if len(masks) == 1:
        ((word, mask),) = masks.items()
        return opened.int64(word), mask
    holds = np.zeros(opened.bucket.rows, np.bool_)
    for word, mask in masks.items():
        holds |= (opened.int64(word) & mask) != 0
    return holds.astype(np.int64), 1


def gather(opened: OpenBucket, rows: Rows, columns: Sequence[str]) -> pa.RecordBatch:
    """Return these columns of these rows, in order, those of selections computed."""
    stored = [name for name in columns if not name.startswith(SELECTED)]
    if len(stored) == len(columns):
        return opened.take(rows, columns)
    taken = dict(zip(stored, opened.take(rows, stored).columns, strict=True)) if stored else {}
    taken.update((name, pa.array(_holds(opened, name, rows))) for name in columns if name not in taken)
    return pa.RecordBatch.from_arrays([taken[name] for name in columns], names=list(columns))


def with_selections(opened: OpenBucket, columns: Sequence[str]) -> pa.RecordBatch:
    """Return the whole bucket with those of `columns` that belong to selections."""
    batch = opened.batch
    for name in columns:
        if name.startswith(SELECTED):
            batch = batch.append_column(name, pa.array(_holds(opened, name, None)))
    return batch


def _holds(opened: OpenBucket, name: str, rows: Rows | None) -> npt.NDArray[np.bool_]:
    """Return for all rows, or for `rows`, whether a selection is known to hold."""
    selections, sql = opened.bucket.layout.selections, name.removeprefix(SELECTED)
    if sql not in selections or not word_names(len(selections)):
        return np.full(opened.bucket.rows if rows is None else len(rows), sql in selections)
    word, mask = bit_of(selections, sql)
    words = opened.int64(word)
    holds: npt.NDArray[np.bool_] = ((words if rows is None else words[rows]) & mask) != 0
    return holds
