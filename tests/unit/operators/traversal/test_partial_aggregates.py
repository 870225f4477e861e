"""Partial aggregates of joined rows, and of partial aggregates."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from plait.operators.traversal.partial_aggregates import WEIGHT, fold, fold_again, fold_counted, measured_name
from plait.sinks.delivery import Fold, Partial

HOW = Fold(
    pane_us=10,
    start_us=3,
    keys=("r.k", "r.at"),
    partials=(
        Partial(
            name="#p0",
            first="CAST(count(*) AS BIGINT)",
            again='CAST(sum("#p0") AS BIGINT)',
            measured="rows",
            of=None,
            type="BIGINT",
        ),
        Partial(
            name="#p1",
            first='CAST(sum("3") AS DECIMAL(38, 0))',
            again='CAST(sum("#p1") AS DECIMAL(38, 0))',
            measured="sum",
            of=3,
            type="DECIMAL(38, 0)",
        ),
        Partial(name="#p2", first='max("3")', again='max("#p2")', measured="max", of=3, type=None),
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


def test_rows_that_weigh_come_to_what_as_many_rows_do() -> None:
    weights = pa.array([3, 1, 2, 2, 1, 1, 5])
    rows = joined(*ROWS)
    weighed = fold_counted(rows.append_column(WEIGHT, weights), HOW, "r.ts", rows.schema.names)
    many = [row for row, weight in zip(ROWS, weights.to_pylist(), strict=True) for _ in range(weight)]
    assert weighed.schema.equals(fold(rows, HOW, "r.ts").schema)
    assert found(weighed) == found(fold(joined(*many), HOW, "r.ts"))


def test_what_the_matches_of_a_row_come_to_is_added_up_and_compared() -> None:
    rows = joined(*ROWS)
    counted = rows.remove_column(3).append_column(WEIGHT, pa.array([2] * len(ROWS)))
    sums = [Decimal(2**63), None, *[Decimal(1)] * 5]
    counted = counted.append_column(measured_name(HOW.partials[1]), pa.array(sums, pa.decimal128(38, 0)))
    counted = counted.append_column(measured_name(HOW.partials[2]), pa.array([None, 4, 4, 4, 4, 4, 9]))
    assert found(fold_counted(counted, HOW, "r.ts", rows.schema.names)) == {
        (3, "a", 1, 4, Decimal(2**63), 4),
        (13, "a", 1, 2, Decimal(1), 4),
        (-7, "a", 1, 2, Decimal(1), 4),
        (-7, None, 1, 4, Decimal(2), 4),
        (-17, "a", 1, 2, Decimal(1), 9),
    }
