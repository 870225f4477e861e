"""Results that no arrival completed go where those of arrivals go."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from plait.operators.close.found import write_found
from plait.query.model import ColumnRef
from plait.sinks.delivery import Direct, Discarded, Formula, Spooled
from plait.state.storage import Storage
from tests.unit.operators.traversal.test_results import DONE, Written

COLUMNS = (ColumnRef(relation="a", column="x"), ColumnRef(relation="b", column="y"))


def rows(*values: int | None) -> pa.RecordBatch:
    columns = [pa.array(values, pa.int64()), pa.nulls(len(values), pa.int64())]
    return pa.RecordBatch.from_arrays(columns, names=["a.x", "b.y"])


def spooled(storage: Storage, paths: tuple[str, ...]) -> list[int]:
    tables = []
    for path in paths:
        with storage.open_mapped(path) as mapped, pa.ipc.open_file(mapped) as reader:
            tables.append(reader.read_all())
    return [value for table in tables for value in table["a.x"].to_pylist()]


def test_rows_go_into_the_spool_or_the_sink_as_their_delivery_says(tmp_path: Path) -> None:
    storage, files = Storage.open(str(tmp_path)), Written()
    deliveries = {
        "direct": Direct(query="direct", columns=COLUMNS, made=(0, 1), files=files),
        "none": Discarded(query="none", columns=COLUMNS),
        "spooled": Spooled(query="spooled", columns=COLUMNS),
    }
    found = {name: [rows(1), rows(2, 3)] for name in deliveries} | {"none": [rows(4)], "direct": [rows(), rows(5)]}
    report = write_found(found, deliveries, storage, batch=7)
    direct, none, into_spool = report.results
    assert (direct.rows, direct.publication, files.writes) == (1, DONE, [[{"0": 5, "1": None}]])
    assert (none.rows, none.paths, none.publication) == (1, (), None)
    assert (into_spool.rows, spooled(storage, into_spool.paths)) == (3, [1, 2, 3])


def test_what_a_sink_refuses_or_only_spark_computes_is_spooled_with_the_reason(tmp_path: Path) -> None:
    storage = Storage.open(str(tmp_path))
    fails = Formula(sql="error('no')", reads=(0,))
    deliveries = {
        "full": Direct(query="full", columns=COLUMNS, made=(0,), files=Written(refuses=True)),
        "good": Direct(query="good", columns=COLUMNS, made=(0,), files=Written()),
        "hard": Discarded(query="hard", columns=COLUMNS, made=(fails,)),
    }
    report = write_found({name: [rows(1, 2)] for name in deliveries}, deliveries, storage, batch=7)
    full, good, hard = report.results
    assert (full.rows, full.failure, spooled(storage, full.paths)) == (2, "SinkError: no place", [1, 2])
    assert (good.rows, good.failure, good.paths) == (2, None, ())
    assert (hard.rows, hard.failure, spooled(storage, hard.paths)) == (2, "", [1, 2])
