"""What a Delta table's log says of the batches that it has, and which of them a checkpoint knows of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plait.errors import SinkError
from plait.query.model import SinkSpec
from plait.sinks.delta_log import last_transaction
from plait.sinks.kind import Note, Results, Sink
from plait.sinks.kinds.delta import Delta


def commit(table: Path, version: int, *transactions: tuple[str, int], mark: str | None = None) -> None:
    """Write a commit with these transactions and this mark, between other actions."""
    log = table / "_delta_log"
    log.mkdir(exist_ok=True)
    actions = [{"txn": {"appId": application, "version": number}} for application, number in transactions]
    told = {"operation": "WRITE"} | ({} if mark is None else {"userMetadata": mark})
    lines = [{"commitInfo": told}, *actions, {"add": {"path": f"{version}.parquet"}}]
    (log / f"{version:020}.json").write_text("\n".join(map(json.dumps, lines)))


def checkpoint(table: Path, version: int, transactions: dict[str, int], parts: int | None = None) -> None:
    """Put together what came up to a version, in some parts of which the last one has the transactions."""
    told = [None, *({"appId": application, "version": number} for application, number in transactions.items())]
    type_ = pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])
    log = table / "_delta_log"
    for part in range(1, (parts or 1) + 1):
        name = "" if parts is None else f".{part:010}.{parts:010}"
        rows = told if part == (parts or 1) else [None]
        pq.write_table(pa.table({"txn": pa.array(rows, type_)}), log / f"{version:020}.checkpoint{name}.parquet")
    (log / "_last_checkpoint").write_text(json.dumps({"version": version, **({"parts": parts} if parts else {})}))


def test_the_last_commit_of_an_application_counts(tmp_path: Path) -> None:
    assert last_transaction(str(tmp_path), "a") is None
    commit(tmp_path, 0, ("a", 3), mark="m3")
    commit(tmp_path, 1, ("b", 7))
    commit(tmp_path, 2, mark="somebody's")
    found = [last_transaction(str(tmp_path), each) for each in "abc"]
    assert found == [Note(batch=3, mark="m3"), Note(batch=7, mark=None), None]
    commit(tmp_path, 10, ("a", 12), mark="m12")
    assert last_transaction(str(tmp_path), "a") == Note(batch=12, mark="m12")


@pytest.mark.parametrize("parts", [None, 2])
def test_what_came_before_a_checkpoint_is_read_there(tmp_path: Path, parts: int | None) -> None:
    for version in range(3):
        commit(tmp_path, version, ("a", version), mark=f"m{version}")
    checkpoint(tmp_path, 2, {"a": 2, "b": 9}, parts)
    assert last_transaction(str(tmp_path), "a", since=2) == Note(batch=2, mark="m2")
    assert last_transaction(str(tmp_path), "a", since=3) == Note(batch=2, mark=None)
    for version in range(3):  # as Delta deletes them after a while
        (tmp_path / "_delta_log" / f"{version:020}.json").unlink()
    assert last_transaction(str(tmp_path), "a", since=2) == Note(batch=2, mark=None)
    commit(tmp_path, 3, ("a", 5), mark="m5")
    found = [last_transaction(str(tmp_path), each) for each in "abc"]
    assert found == [Note(batch=5, mark="m5"), Note(batch=9, mark=None), None]


def test_a_log_that_is_none_is_refused(tmp_path: Path) -> None:
    commit(tmp_path, 0)
    (tmp_path / "_delta_log" / f"{1:020}.json").write_text('{"txn": ')
    with pytest.raises(SinkError, match="cannot be understood"):
        last_transaction(str(tmp_path), "a")


class Writer:
    """Stands for Spark's, and notes what it was told."""

    def __init__(self) -> None:
        self.told: dict[str, Any] = {}
        self.paths: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return self if name == "write" else lambda *_, **options: self

    def option(self, name: str, value: object) -> Writer:
        self.told[name] = value
        return self

    def save(self, path: str) -> None:
        self.paths.append(path)


def offered(table: Path, come_to: int) -> Writer:
    """Offer batch 4, which waits with 5, to a table; return what was written."""
    writer, sink = Writer(), Sink(spec=SinkSpec(format="delta", options=(("path", str(table)),)))
    marks = {4: "m4", 5: "m5"}
    results = Results(
        query="q", batch=4, checkpoint="c", tasks=1, rows=writer, kept={}, last=come_to, mark="m4", marks=marks
    )
    assert Delta().deliver(sink, results) == ()
    assert Delta().has(sink, results) == (not writer.paths)
    return writer


@pytest.mark.parametrize(("last", "is_written"), [(None, True), (3, True), (4, False), (5, False)])
def test_a_batch_is_written_with_its_mark_unless_the_table_has_it(
    tmp_path: Path, last: int | None, is_written: bool
) -> None:
    if last is not None:
        commit(tmp_path, 0, ("plait-c-q", last), mark=f"m{last}")
    writer = offered(tmp_path, 5)
    assert writer.paths == [f"file://{tmp_path}"] * is_written
    if is_written:
        assert writer.told == {"txnAppId": "plait-c-q", "txnVersion": 4, "userMetadata": "m4"}


@pytest.mark.parametrize(("last", "mark"), [(6, "m6"), (5, "n5"), (4, "n4")])
@pytest.mark.parametrize("come_to", [5, 6, 9])
@pytest.mark.parametrize("is_put_together", [False, True])
def test_a_table_that_knows_more_than_the_checkpoint_is_refused_however_far_that_comes(
    tmp_path: Path, last: int, mark: str, come_to: int, is_put_together: bool
) -> None:
    commit(tmp_path, 0, ("plait-c-q", last), mark=mark)
    if is_put_together:
        checkpoint(tmp_path, 0, {"plait-c-q": last})
    with pytest.raises(SinkError, match="restored from a backup, or a copy"):
        offered(tmp_path, come_to)


def test_a_table_that_tells_no_mark_any_more_is_believed_up_to_the_batch_the_checkpoint_has_come_to(
    tmp_path: Path,
) -> None:
    (tmp_path / "_delta_log").mkdir()
    checkpoint(tmp_path, 0, {"plait-c-q": 6})
    assert offered(tmp_path, 6).paths == []
    with pytest.raises(SinkError, match="restored from a backup, or a copy"):
        offered(tmp_path, 5)
