"""What is kept in intermediate stores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from plait.operators.probe.partials import Partials, Position
from plait.operators.traversal import filling
from plait.operators.traversal.filling import Filler
from plait.optimizer.assemble.build import build
from plait.optimizer.examples import example_options, example_query, example_statistics
from plait.optimizer.probe_orders import ProbeOrder
from plait.plan.model import Fill, part_column
from plait.state.storage import Storage

OPTIONS = example_options("greedy")
UNITS = (("r",), ("s", "t")), (("s",), ("t",), ("r",)), (("t",), ("s",), ("r",))
FILLS = (("s",), ("t",)), (("t",), ("s",))
PLAN = build(
    (example_query("q", "r.a = s.a", "s.b = t.b"),),
    [ProbeOrder(query="q", units=units) for units in UNITS]
    + [ProbeOrder(query="q", units=units, fills=True) for units in FILLS],
    example_statistics(OPTIONS),
    OPTIONS,
)
STORE = next(store for store in PLAN.stores if store.intermediate is not None)


@pytest.mark.parametrize("chunk_rows", [1, 1000])
def test_members_that_lack_a_column_are_kept_without_it_however_many_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk_rows: int
) -> None:
    monkeypatch.setattr(filling, "_CHUNK_ROWS", chunk_rows)
    (key,) = (key.name.removeprefix(part_column(0, "")) for key in STORE.keys)
    numbers = np.arange(3, dtype=np.int64)
    members = pa.record_batch({key: pa.array(numbers), "v": pa.array(numbers)}), pa.record_batch({"#row": numbers})
    partials = Partials(
        count=len(numbers),
        positions=tuple(Position(block=member) for member in members),
        newest=numbers,
        high=numbers + 10,
    )
    filler = Filler(Storage.open(str(tmp_path)), 7, "task")
    for _ in range(2):
        filler.add(Fill(store=STORE.id, positions=(0, 1)), STORE, partials)
    buckets = filler.finish()
    assert {bucket.layout.columns for bucket in buckets} == {(part_column(0, "v"),)}
    assert sum(bucket.rows for bucket in buckets) == 6


def test_members_of_starts_that_called_the_time_zone_otherwise_are_kept_together(tmp_path: Path) -> None:
    (key,) = (key.name.removeprefix(part_column(0, "")) for key in STORE.keys)
    numbers, filler = np.arange(3, dtype=np.int64), Filler(Storage.open(str(tmp_path)), 7, "task")
    for zone in ("UTC", "Etc/UTC"):
        times = pa.array(numbers).cast(pa.timestamp("us", zone))
        members = pa.record_batch({key: pa.array(numbers), "v": times}), pa.record_batch({"#row": numbers})
        positions = tuple(Position(block=member) for member in members)
        partials = Partials(count=len(numbers), positions=positions, newest=numbers, high=numbers + 10)
        filler.add(Fill(store=STORE.id, positions=(0, 1)), STORE, partials)
    assert sum(bucket.rows for bucket in filler.finish()) == 6
