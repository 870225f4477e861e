"""What ranges of stored rows come to, against going through their rows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from plait.operators.probe.ranges import Ranges, Spans
from plait.plan.model import Member, Selection
from plait.query.model import SourceExpression
from plait.state.buckets import open_bucket, write_bucket
from plait.state.model import Layout
from plait.state.storage import Storage
from tests.unit.state.builders import A, B

CHOICES: dict[str, tuple[pa.DataType, tuple[Any, ...]]] = {
    "tiny": (pa.int8(), (-128, 0, 127)),
    "int": (pa.int32(), (-(2**31), 5, 2**31 - 1)),
    "big": (pa.int64(), (-(2**63), -1, 2**63 - 1)),
    "small_decimal": (pa.decimal128(9, 2), (Decimal("-9999999.99"), Decimal("0.01"))),
    "decimal": (pa.decimal128(18, 0), (Decimal(10**18 - 1), Decimal(1 - 10**18), Decimal(3))),
    "wide": (pa.decimal128(28, 3), (Decimal(10**24), -Decimal(10**24) + Decimal("0.001"))),
    "double": (pa.float64(), (1.5, -2.25, 1e300)),
    "float": (pa.float32(), (0.5, -4.0)),
    "text": (pa.string(), ("", "a", "é", "𝄞")),
    "flag": (pa.bool_(), (True, False)),
    "day": (pa.date32(), (date(1, 1, 1), date(2026, 5, 4))),
    "time": (
        pa.timestamp("us", "UTC"),
        (datetime(2026, 1, 1, tzinfo=timezone.utc), datetime(1900, 1, 1, tzinfo=timezone.utc)),
    ),
}
SUMMED = ("tiny", "int", "big", "small_decimal", "decimal", "wide", "double", "float")
ROWS = 60
SELECTED = Selection(conjuncts=(SourceExpression(sql="`x` > 0", columns=("x",)),))
OTHER = Selection(conjuncts=(SourceExpression(sql="`x` > 1", columns=("x",)),))
PLACES = np.array(
    [(low, high) for low in range(0, ROWS, 7) for high in (low + 1, low + 2, ROWS) if high > low], np.int32
)
BEGINS, ENDS = PLACES[:, 0].copy(), PLACES[:, 1].copy()
SPANS = Spans(begins=BEGINS, ends=ENDS)


def ranges(directory: Path, seed: int, *, selects: bool, by: str) -> tuple[Ranges, list[dict[str, Any]]]:
    """Return the ranges of a bucket of random rows, and its rows in the order of the index, None where not selected."""
    rng = random.Random(seed)
    table = pa.table(
        {
            A: pa.array([rng.randrange(4) for _ in range(ROWS)]),
            B: pa.array([rng.randrange(4) for _ in range(ROWS)]),
            "#tau": pa.array([rng.randrange(20) for _ in range(ROWS)]),
            **({"#bits": pa.array([rng.randrange(4) for _ in range(ROWS)])} if selects else {}),
            **{
                name: pa.array([None if rng.random() < 0.2 else rng.choice(values) for _ in range(ROWS)], type_)
                for name, (type_, values) in CHOICES.items()
            },
        }
    )
    told = (SELECTED, OTHER) if selects else (SELECTED,)
    layout = Layout(
        columns=tuple(CHOICES), keys=(A, B), values=(), selections=tuple(each.sql for each in told), has_tau=True
    )
    storage = Storage.open(str(directory))
    bucket = write_bucket(
        storage,
        store="s",
        partition=0,
        name="0-0",
        table=table,
        layout=layout,
        indexes=((A,), (B,)),
        batch_min=0,
        batch_max=0,
    )
    opened = open_bucket(storage, bucket)
    found = Ranges.of(opened, (by,), Member(store="s", ordinal=0, selection=SELECTED, window_us=None))
    rows = opened.batch.to_pylist()
    ordered = [rows[place] for place in (range(ROWS) if found.index.row is None else found.index.row.tolist())]
    return found, [row if not selects or row["#bits"] & 1 else dict.fromkeys(row) for row in ordered]


def values_of(rows: Sequence[dict[str, Any]], name: str) -> list[list[Any]]:
    """Return the values of each range that are not NULL and of selected rows."""
    spans = zip(BEGINS.tolist(), ENDS.tolist(), strict=True)
    return [[row[name] for row in rows[low:high] if row[name] is not None] for low, high in spans]


@pytest.mark.parametrize(("seed", "selects", "by"), [(1, False, A), (2, True, A), (3, False, B), (4, True, B)])
def test_ranges_come_to_what_their_rows_do(tmp_path: Path, seed: int, selects: bool, by: str) -> None:
    found, rows = ranges(tmp_path, seed, selects=selects, by=by)
    assert found.counts(SPANS).tolist() == [len(values) for values in values_of(rows, A)]
    assert found.trues(SPANS, "flag").tolist() == [sum(values) for values in values_of(rows, "flag")]
    for name in CHOICES:
        known = values_of(rows, name)
        assert found.counts(SPANS, name).tolist() == [len(values) for values in known]
        for largest in (False, True):
            wanted = [(max if largest else min)(values, default=None) for values in known]
            extremes = found.extremes(SPANS, name, largest=largest)
            assert extremes.to_pylist() == wanted, name
            assert extremes.type == CHOICES[name][0]
    for name in SUMMED:
        wanted = [sum(values) if values else None for values in values_of(rows, name)]
        sums = found.sums(SPANS, name)
        is_double = pa.types.is_float64(sums.type)
        assert sums.to_pylist() == ([pytest.approx(each) for each in wanted] if is_double else wanted), name


def test_the_first_row_of_a_range_speaks_for_all_unless_hashes_collide(tmp_path: Path) -> None:
    found, rows = ranges(tmp_path, 5, selects=False, by=B)
    assert found.is_uniform((B,), ())
    assert not found.is_uniform((B,), ("text",))
    first = found.first_rows(BEGINS)
    assert found.opened.take(first, ("int",)).column(0).to_pylist() == [rows[place]["int"] for place in BEGINS.tolist()]
    assert found.places(first).tolist() == BEGINS.tolist()
