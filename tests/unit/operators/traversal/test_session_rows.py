"""What tells rows apart, and the sessions of joined rows and of partial aggregates."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from plait.operators.traversal import session_rows
from plait.operators.traversal.partial_aggregates import fold, fold_again, shared
from plait.operators.traversal.session_rows import codes_of, sessions_of
from plait.sinks.delivery import LAST, Fold, Partial

UTC = pa.timestamp("us", tz="UTC")
COUNT = Partial(name="#p0", first="count(*)", again='sum("#p0")', measured="rows", of=None, type="BIGINT")
LATEST = Partial(name=LAST, first='max(epoch_us("0"))', again=f'max("{LAST}")', measured="max", of=0, type="BIGINT")
HOW = Fold(pane_us=1, start_us=0, keys=("r.k",), partials=(COUNT, LATEST), gap_us=10)


def alike(*columns: pa.Array) -> list[list[int]]:
    """Return which rows have the same number, each list by its first row."""
    codes = codes_of(columns, len(columns[0])).tolist()
    return [[place for place, code in enumerate(codes) if code == each] for each in dict.fromkeys(codes)]


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        (["a", None, "a", ""], pa.string()),
        ([1, None, 1, 0], pa.int64()),
        ([True, None, True, False], pa.bool_()),
        ([math.nan, None, math.nan, 0.0], pa.float64()),
        ([-0.0, None, 0.0, 1.0], pa.float32()),
        ([Decimal("1.50"), None, Decimal("1.50"), Decimal("0.00")], pa.decimal128(38, 2)),
        ([3, None, 3, 0], pa.date32()),
        ([3, None, 3, 0], UTC),
    ],
)
def test_equal_values_and_nulls_are_alike_whatever_their_type(values: list[Any], type_: pa.DataType) -> None:
    assert alike(pa.array(values, type_)) == [[0, 2], [1], [3]]


def test_rows_are_alike_if_all_their_values_are() -> None:
    assert alike(pa.array(["a", "a", "b", "a"]), pa.array([1, None, 1, 1])) == [[0, 3], [1], [2]]
    assert codes_of([], 2).tolist() == [0, 0]


def test_more_combinations_than_numbers_are_counted_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_rows, "_MOST_CODES", 8)
    columns = [pa.array([1, 2, 3, 1, 2, 3]), pa.array([1, 1, 2, 1, 1, 2]), pa.array([1, 2, 1, 1, 2, 2])]
    assert alike(*columns) == [[0, 3], [1, 4], [2], [5]]


def joined(*rows: tuple[int, str]) -> pa.RecordBatch:
    times, keys = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays([pa.array(times, UTC), pa.array(keys)], names=["r.ts", "r.k"])


def folded(rows: pa.RecordBatch) -> set[tuple[Any, ...]]:
    columns = [rows.column("r.ts").cast(pa.int64()), *(rows.column(name) for name in ("r.k", "#p0", LAST))]
    return set(zip(*(column.to_pylist() for column in columns), strict=True))


def test_joined_rows_of_a_session_become_one_that_knows_its_last_time() -> None:
    made = fold(joined((0, "a"), (25, "a"), (10, "a"), (4, "b")), HOW, "r.ts")
    assert folded(made) == {(0, "a", 2, 10), (25, "a", 1, 25), (4, "b", 1, 4)}


def test_sessions_of_several_tasks_become_one_where_they_meet() -> None:
    parts = [fold(joined(*rows), HOW, "r.ts") for rows in ([(0, "a"), (9, "a"), (40, "a")], [(19, "a"), (30, "a")])]
    made = fold_again(pa.concat_batches(parts), HOW, "r.ts")
    assert folded(made) == {(0, "a", 3, 19), (30, "a", 2, 40)}
    begins, ends = sessions_of(made, "r.ts", np.zeros(made.num_rows, np.int64), 11)
    assert (set(begins.tolist()), set(ends.tolist())) == ({0}, {51})


def test_queries_with_other_gaps_keep_what_the_shortest_leaves_apart() -> None:
    assert shared([HOW, Fold(**{**_fields(HOW), "gap_us": 4})]).gap_us == 4


def _fields(how: Fold) -> dict[str, Any]:
    return {name: getattr(how, name) for name in ("pane_us", "start_us", "keys", "partials", "gap_us")}
