"""Partial aggregates of joined rows, and of partial aggregates."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from plait.operators.traversal.partial_aggregates import fold, fold_again
from plait.sinks.delivery import Fold, Partial

HOW = Fold(
    pane_us=10,
    start_us=3,
    keys=("r.k", "r.at"),
    partials=(
        Partial(name="#p0", first="CAST(count(*) AS BIGINT)", again='CAST(sum("#p0") AS BIGINT)'),
        Partial(name="#p1", first='CAST(sum("3") AS DECIMAL(38, 0))', again='CAST(sum("#p1") AS DECIMAL(38, 0))'),
        Partial(name="#p2", first='max("3")', again='max("#p2")'),
    ),
)
UTC = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema([("r.ts", UTC), ("r.k", pa.string()), ("r.at", UTC), ("r.x", pa.int64())])


def joined(*rows: tuple[int, str | None, int, int | None]) -> pa.RecordBatch:
    columns = [list(column) for column in zip(*rows, strict=True)]
    times = [pa.array(columns[number], pa.int64()).cast(UTC) for number in (0, 2)]
    arrays = [times[0], pa.array(columns[1], pa.string()), times[1], pa.array(columns[3], pa.int64())]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def found(batch: pa.RecordBatch) -> set[tuple[object, ...]]:
    columns = [
        column.cast(pa.int64()).to_pylist() if pa.types.is_timestamp(column.type) else column.to_pylist()
        for column in batch.columns
    ]
    return set(zip(*columns, strict=True))


ROWS = (
    (3, "a", 1, 5),
    (12, "a", 1, 7),
    (13, "a", 1, None),
    (2, "a", 1, 2**62),
    (2, None, 1, 2**62),
    (-7, None, 1, 2**62),
    (-8, "a", 1, -1),
)


def test_rows_of_one_pane_and_key_become_one() -> None:
    batch = fold(joined(*ROWS), HOW, "r.ts")
    assert batch.schema.names == ["r.ts", "r.k", "r.at", "#p0", "#p1", "#p2"]
    assert [batch.schema.field(name).type for name in ("r.ts", "r.at", "#p1")] == [UTC, UTC, pa.decimal128(38, 0)]
    assert found(batch) == {
        (3, "a", 1, 2, Decimal(12), 7),
        (13, "a", 1, 1, None, None),
        (-7, "a", 1, 1, Decimal(2**62), 2**62),
        (-7, None, 1, 2, Decimal(2**63), 2**62),
        (-17, "a", 1, 1, Decimal(-1), -1),
    }


def test_partial_aggregates_of_parts_come_to_those_of_the_whole() -> None:
    parts = [fold(joined(*ROWS[:4]), HOW, "r.ts"), fold(joined(*ROWS[4:], *ROWS), HOW, "r.ts")]
    again = fold_again(pa.concat_batches(parts), HOW, "r.ts")
    assert again.schema.equals(parts[0].schema)
    assert found(again) == found(fold(joined(*ROWS, *ROWS), HOW, "r.ts"))
