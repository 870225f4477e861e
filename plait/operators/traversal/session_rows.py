"""Sessions of joined rows, or of partial aggregates of them: which rows belong together, and from when to when."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plait.kernels.compiled import Int64s
from plait.kernels.sessions import sessions
from plait.sinks.delivery import LAST
from plait.state.gathered import microseconds

_MOST_CODES = 1 << 62


def sessions_of(rows: pa.RecordBatch, time: str, codes: Int64s, gap_us: int) -> tuple[Int64s, Int64s]:
    """Return when the session of each row begins, and when it ends (int64[n] each). `time`: the column of event time;
    `codes`: equal for rows that are alike in all they are grouped by beside.
    """
    first = microseconds(rows.column(time)).to_numpy()
    last = rows.column(LAST).to_numpy() if LAST in rows.schema.names else first
    begins, lasts = sessions(codes, first, last, gap_us)
    return begins, lasts + gap_us


def codes_of(columns: Iterable[pa.Array], rows: int) -> Int64s:
    """Return a number for each row, the same for those with the same values. NULL is a value, NaN is one, and zeros of
    both signs are another.

    >>> codes_of([pa.array(["a", None, "a", None]), pa.array([1, 2, 2, 2])], 4).tolist()
    [0, 3, 1, 3]
    """
    codes, count = np.zeros(rows, np.int64), 1
    for column in columns:
        if pa.types.is_floating(column.type):
            column = pc.add(column, pa.scalar(0.0, column.type))
        values = pc.dictionary_encode(column, null_encoding="encode")
        several = max(len(values.dictionary), 1)
        if count * several > _MOST_CODES:
            distinct, codes = np.unique(codes, return_inverse=True)
            count = len(distinct)
        codes, count = codes * several + values.indices.to_numpy().astype(np.int64), count * several
    return codes


__all__ = ["codes_of", "sessions_of"]
