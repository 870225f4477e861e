"""The last rows that a query has written."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from plait.query.model import SinkSpec
from plait.server.last_rows import MOST_ROWS, last_rows


def _sink(format: str, folder: Path) -> SinkSpec:
    return SinkSpec(format=format, options=(("path", str(folder)),))


def _put(file: Path, text: str, age: int = 0) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    os.utime(file, (1000 - age, 1000 - age))


def test_the_newest_file_shows_its_last_rows(tmp_path: Path) -> None:
    for name, first in (("a", 0), ("b", 100)):
        pq.write_table(pa.table({"id": range(first, first + 50), "word": ["x"] * 50}), tmp_path / f"{name}.parquet")
        os.utime(tmp_path / f"{name}.parquet", (1000 + first, 1000 + first))
    told = last_rows(_sink("parquet", tmp_path))
    assert told["columns"] == ["id", "word"]
    assert told["rows"][-1] == ["149", "x"]
    assert len(told["rows"]) == MOST_ROWS


def test_lines_of_json_are_shown_by_column_whatever_each_has(tmp_path: Path) -> None:
    _put(tmp_path / "k=1" / "a.json", '{"id":1,"word":"ann"}\n{"id":2,"n":{"x":1}}\n')
    told = last_rows(_sink("json", tmp_path))
    assert told["columns"] == ["id", "word", "n"]
    assert told["rows"] == [["1", "ann", None], ["2", None, "{'x': 1}"]]


def test_csv_is_shown_line_by_line_and_long_lines_are_cut(tmp_path: Path) -> None:
    _put(tmp_path / "a.csv", "1,ann\n" + "x" * 500 + "\n")
    told = last_rows(_sink("csv", tmp_path))
    assert told["rows"] == [["1,ann"], ["x" * 200 + "…"]]


def test_hidden_and_empty_files_are_passed_over(tmp_path: Path) -> None:
    _put(tmp_path / "a.json", '{"id":1}\n', age=100)
    _put(tmp_path / ".staging" / "b.json", '{"id":2}\n')
    _put(tmp_path / "_SUCCESS", "x")
    _put(tmp_path / "c.json", "")
    assert last_rows(_sink("json", tmp_path))["rows"] == [["1"]]


def test_what_cannot_be_shown_is_told(tmp_path: Path) -> None:
    assert last_rows(SinkSpec(format="noop"))["note"] == "a sink 'noop' shows no rows"
    assert last_rows(_sink("csv", tmp_path / "none"))["note"] == "nothing has been written yet"
    _put(tmp_path / "a.csv.gz", "packed")
    assert last_rows(_sink("csv", tmp_path))["note"] == "the newest file, a.csv.gz, is packed"
