"""Results of a task: each query's by itself, however many there are."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from plait.operators.probe.partials import start_partials
from plait.operators.reports import LEFT_TO_SPARK
from plait.operators.traversal import results
from plait.operators.traversal.results import Gathered, ResultWriter
from plait.plan.model import Output
from plait.query.model import ColumnRef
from plait.sinks.delivery import Delivery, Direct, Discarded, Formula, Spooled
from plait.sinks.staging import Publication
from plait.state.storage import Storage

COLUMNS = (ColumnRef(relation="a", column="v"),)
ROWS = (1, 2, 3)


@dataclass
class Files:
    """A sink that takes what it gets, and knows how many of its files are open. `refusing`: opens none of a query."""

    refusing: str = ""
    open_now: int = 0
    most_open: int = 0
    written: dict[str, list[int]] = field(default_factory=dict)

    def open(self, name: str) -> File:
        query = name.partition("-")[0]
        if query == self.refusing:
            raise OSError("no space left")
        self.open_now += 1
        self.most_open = max(self.most_open, self.open_now)
        return File(self, self.written.setdefault(query, []))


@dataclass
class File:
    files: Files
    rows: list[int]

    def write(self, rows: pa.RecordBatch) -> None:
        self.rows += rows.column(0).to_pylist()

    def close(self) -> Publication:
        self.files.open_now -= 1
        return Publication(staged="s", final="f")


def of_zone(zone: str) -> Gathered:
    block = pa.record_batch({"v": pa.array([1], pa.timestamp("us", zone))})
    return Gathered(start_partials(block, np.zeros(1, np.int64), None, None))


def gathered(*values: int) -> Gathered:
    block = pa.record_batch({"v": pa.array(values, pa.int64())})
    return Gathered(start_partials(block, np.zeros(len(values), np.int64), None, None))


def output(query: str) -> Output:
    return Output(query=query, positions=(("a", 0),))


def writer(tmp_path: Path, deliveries: dict[str, Delivery]) -> ResultWriter:
    return ResultWriter(deliveries, Storage.open(str(tmp_path)), 0, "t")


def test_no_more_files_are_open_at_once_than_one_for_hundreds_of_queries(tmp_path: Path) -> None:
    files, names = Files(), [f"q{number:03}" for number in range(300)]
    written = writer(tmp_path, {name: Direct(query=name, columns=COLUMNS, made=(0,), files=files) for name in names})
    for value in ROWS:
        for name in names:
            written.add([output(name)], gathered(value))
    found = written.finish()
    assert [(each.query, each.rows, each.failure) for each in found] == [(name, 3, None) for name in names]
    assert {each.publication for each in found} == {Publication(staged="s", final="f")}
    assert files.written == {name: [1, 2, 3] for name in names}
    assert (files.most_open, files.open_now) == (1, 0)


@pytest.mark.parametrize("part_bytes", [1, 20, 1 << 20])
def test_what_one_query_cannot_write_or_compute_costs_the_others_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part_bytes: int
) -> None:
    monkeypatch.setattr(results, "_PART_BYTES", part_bytes)
    files = Files(refusing="b")
    failing = (Formula(sql='CASE WHEN "0" = 2 THEN error(\'two\') ELSE "0" END', reads=(0,)),)
    deliveries: dict[str, Delivery] = {
        "a": Direct(query="a", columns=COLUMNS, made=(0,), files=files),
        "b": Direct(query="b", columns=COLUMNS, made=(0,), files=files),
        "c": Direct(query="c", columns=COLUMNS, made=failing, files=files),
        "d": Discarded(query="d", columns=COLUMNS, made=failing),
        "e": Direct(query="e", columns=COLUMNS, made=(0,), files=files),
        "f": Direct(query="f", columns=COLUMNS, made=(0,), files=files),
    }
    written = writer(tmp_path, deliveries)
    for value in ROWS:
        for name in "abcde":
            written.add([output(name)], gathered(value))
    written.add([output("f")], gathered())
    found = {each.query: (each.rows, each.failure) for each in written.finish()}
    assert found["b"][0] == 3
    assert "no space left" in str(found["b"][1])
    assert found["c"] == found["d"] == (3, LEFT_TO_SPARK)
    assert found["a"] == found["e"] == (3, None)
    assert found.keys() == {"a", "b", "c", "d", "e"}
    assert files.written["a"] == files.written["e"] == [1, 2, 3]
    assert files.open_now == 0


def test_instants_of_earlier_starts_may_have_another_name_of_their_time_zone(tmp_path: Path) -> None:
    files = Files()
    deliveries: dict[str, Delivery] = {
        "direct": Direct(query="direct", columns=COLUMNS, made=(0,), files=files),
        "spooled": Spooled(query="spooled", columns=COLUMNS),
    }
    written = writer(tmp_path, deliveries)
    for zone in ("UTC", "Etc/UTC"):
        for query in deliveries:
            written.add([output(query)], of_zone(zone))
    direct, spooled = written.finish()
    assert (direct.rows, direct.failure, len(files.written["direct"])) == (2, None, 2)
    (path,) = spooled.paths
    with pa.ipc.open_file(Storage.open(str(tmp_path)).read_bytes(path)) as file:
        assert file.read_all()["a.v"].type == pa.timestamp("us", "UTC")
        assert file.read_all().num_rows == spooled.rows == 2
