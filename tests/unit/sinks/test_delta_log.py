"""What a Delta table's log says of the batches that it has."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plait.errors import SinkError
from plait.sinks.delta_log import last_transaction


def commit(table: Path, version: int, *transactions: tuple[str, int]) -> None:
    """Write a commit with these transactions, between other actions."""
    log = table / "_delta_log"
    log.mkdir(exist_ok=True)
    actions = [{"txn": {"appId": application, "version": number}} for application, number in transactions]
    lines = [{"commitInfo": {"operation": "WRITE"}}, *actions, {"add": {"path": f"{version}.parquet"}}]
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
    commit(tmp_path, 0, ("a", 3))
    commit(tmp_path, 1, ("b", 7))
    commit(tmp_path, 2)
    assert [last_transaction(str(tmp_path), each) for each in "abc"] == [3, 7, None]
    commit(tmp_path, 10, ("a", 12))
    assert last_transaction(str(tmp_path), "a") == 12


@pytest.mark.parametrize("parts", [None, 2])
def test_what_came_before_a_checkpoint_is_read_there(tmp_path: Path, parts: int | None) -> None:
    for version in range(3):
        commit(tmp_path, version, ("a", version))
    checkpoint(tmp_path, 2, {"a": 2, "b": 9}, parts)
    for version in range(3):  # as Delta deletes them after a while
        (tmp_path / "_delta_log" / f"{version:020}.json").unlink()
    commit(tmp_path, 3, ("a", 5))
    assert [last_transaction(str(tmp_path), each) for each in "abc"] == [5, 9, None]


def test_a_log_that_is_none_is_refused(tmp_path: Path) -> None:
    commit(tmp_path, 0)
    (tmp_path / "_delta_log" / f"{1:020}.json").write_text('{"txn": ')
    with pytest.raises(SinkError, match="cannot be understood"):
        last_transaction(str(tmp_path), "a")
