"""What becomes of complete results: pieces of one query are put together, and columns gathered once for all queries."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from plait.errors import SinkError
from plait.operators.probe.partials import Partials, Position
from plait.operators.traversal import results
from plait.operators.traversal.results import Gathered, ResultWriter
from plait.plan.model import Output
from plait.query.model import ColumnRef
from plait.sinks.delivery import Direct, Formula, Gathering
from plait.sinks.staging import Publication
from plait.state.storage import Storage

COLUMNS = (ColumnRef(relation="a", column="x"), ColumnRef(relation="b", column="y"))
DONE = Publication(staged="s", final="f")


@dataclass(slots=True)
class Written:
    """A sink's files, and the one file under way: the rows of each write."""

    writes: list[list[dict[str, int]]] = field(default_factory=list)
    refuses: bool = False

    def open(self, name: str) -> Written:
        if self.refuses:
            raise SinkError("no place")
        return self

    def write(self, rows: pa.RecordBatch) -> None:
        self.writes.append(rows.to_pylist())

    def close(self) -> Publication:
        return DONE


def piece(*rows: tuple[int, int]) -> Gathered:
    x, y = (pa.array([row[side] for row in rows], pa.int64()) for side in (0, 1))
    positions = (
        Position(block=pa.RecordBatch.from_arrays([x], names=["x"]), index=np.arange(len(rows), dtype=np.int32)),
        Position(block=pa.RecordBatch.from_arrays([y], names=["y"])),
    )
    none = np.zeros(len(rows), np.int64)
    return Gathered(Partials(count=len(rows), positions=positions, newest=none, high=none))


def output(query: str) -> Output:
    return Output(query=query, positions=(("a", 0), ("b", 1)))


def writer(tmp_path: Path, **files: Written) -> ResultWriter:
    made = (1, Formula(sql='"0" + 1', reads=(0,)))
    deliveries = {name: Direct(query=name, columns=COLUMNS, made=made, files=each) for name, each in files.items()}
    return ResultWriter(deliveries, Storage.open(str(tmp_path)), 0, "x")


def test_pieces_of_a_query_are_made_and_written_at_once(tmp_path: Path) -> None:
    files = Written()
    taking = writer(tmp_path, q=files)
    for rows in (piece((1, 10), (2, 20)), piece(), piece((3, 30))):
        taking.add([output("q")], rows)
    (file,) = taking.finish()
    assert files.writes == [[{"0": 10, "1": 2}, {"0": 20, "1": 3}, {"0": 30, "1": 4}]]
    assert (file.rows, file.publication, file.failure) == (3, DONE, None)


def test_large_results_are_written_as_they_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "_PART_BYTES", 40)
    files = Written()
    taking = writer(tmp_path, q=files)
    for number in range(5):
        taking.add([output("q")], piece((number, number), (number, number)))
    (file,) = taking.finish()
    assert [len(write) for write in files.writes] == [4, 4, 2]
    assert file.rows == 10


def test_a_sink_that_refuses_keeps_its_reason_and_no_other_query_from_its_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "_PART_BYTES", 1)  # refused while results still come
    good, bad = Written(), Written(refuses=True)
    taking = writer(tmp_path, bad=bad, good=good)
    for _ in range(2):
        for query in ("bad", "good"):
            taking.add([output(query)], piece((1, 10)))
    refused, taken = taking.finish()
    assert (refused.query, refused.rows, refused.failure, refused.publication) == (
        "bad",
        2,
        "SinkError: no place",
        None,
    )
    assert (taken.query, taken.rows, taken.failure, taken.publication) == ("good", 2, None, DONE)
    assert len(good.writes) == 2


def test_a_column_is_gathered_once_for_all_queries_that_take_it() -> None:
    gathered = piece((1, 10), (2, 20))
    (first,) = gathered.columns([(0, "x")])
    again, other = gathered.columns([(0, "x"), (1, "y")])
    assert first is again
    assert (first.to_pylist(), other.to_pylist()) == ([1, 2], [10, 20])


def test_joined_rows_that_wait_for_their_windows_are_kept_in_the_checkpoint_and_are_no_results(tmp_path: Path) -> None:
    storage, time = Storage.open(str(tmp_path)), ColumnRef(relation="a", column="x")
    waiting = Gathering(query="q", columns=COLUMNS, time=time, folder="groups/q")
    taking = ResultWriter({"q": waiting}, storage, 0, "x")
    times = pa.array([7_000_000, 5_000_000], pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    taking.add_rows("q", pa.RecordBatch.from_arrays([times, pa.array([1, 2])], names=["a.x", "b.y"]))
    (file,) = taking.finish()
    (kept,) = file.gathered
    assert (file.rows, file.paths, kept.rows) == (0, (), 2)
    assert (kept.tau_min, kept.tau_max, kept.path) == (5_000_000, 7_000_000, "groups/q/q-00000000-x-0.arrow")
