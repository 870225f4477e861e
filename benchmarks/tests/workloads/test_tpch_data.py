"""TPC-H as streams."""

from __future__ import annotations

import shutil
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.workloads.data import FIRST_US, file_name
from benchmarks.workloads.tpch_data import GENERATOR, TpchInput, as_stream, cut, describe, prepare_tpch, read_streams
from benchmarks.workloads.tpch_schema import KEY_JOINS, PREFIXES
from plait.errors import OptionError

INPUT = TpchInput(scale=0.001, files=4, span_s=40)
ROWS = pa.table(
    {
        "p_partkey": pa.array(range(5)),
        "p_size": pa.array(range(5), pa.int32()),
        "p_name": pa.array(list("abcde"), pa.string_view()),
        "p_retailprice": pa.array([Decimal("1.50")] * 5, pa.decimal128(15, 2)),
        "p_made": pa.array([date(2024, 1, 1)] * 5),
    }
)


def test_rows_are_spread_evenly_in_their_order():
    stream = as_stream("part", ROWS, 40)
    assert (stream["p_ts"].cast(pa.int64()).to_numpy() - FIRST_US).tolist() == [4e6, 12e6, 20e6, 28e6, 36e6]
    assert stream["p_row"].to_pylist() == [0, 1, 2, 3, 4]
    assert stream["p_name"].to_pylist() == list("abcde")


def test_each_file_holds_its_slice_of_the_span_and_may_be_empty():
    files = list(cut(as_stream("part", ROWS, 40), "p_ts", TpchInput(scale=1, files=8, span_s=40)))
    assert [file.num_rows for file in files] == [1, 0, 1, 0, 1, 1, 0, 1]
    for number, file in enumerate(files):
        taus = file["p_ts"].cast(pa.int64()).to_numpy() - FIRST_US
        assert np.all((taus >= number * 5e6) & (taus < (number + 1) * 5e6))


def test_columns_are_described_in_the_words_of_spark():
    described = describe("part", as_stream("part", ROWS, 40).schema)
    assert described.time == "p_ts"
    assert described.ddl == (
        "p_ts timestamp, p_row bigint, p_partkey bigint, p_size int, p_name string, p_retailprice decimal(15,2), "
        "p_made date"
    )


def test_a_scale_of_nothing_is_refused():
    with pytest.raises(OptionError, match="above 0"):
        TpchInput(scale=0)


def test_a_missing_generator_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(OptionError, match=r"tpchgen-cli, which is not installed: pip install 'plait\[bench\]'"):
        prepare_tpch(INPUT, tmp_path / "data")


@pytest.mark.skipif(
    not Path(sys.executable).with_name(GENERATOR).exists() and shutil.which(GENERATOR) is None,
    reason="tpchgen-cli is not installed",
)
def test_all_relations_are_written_once_and_keys_join(tmp_path: Path):
    directory = prepare_tpch(INPUT, tmp_path)
    streams = read_streams(directory)
    assert [stream.name for stream in streams] == list(PREFIXES)
    tables = {stream.name: pq.read_table(directory / stream.name) for stream in streams}
    assert [tables[name].num_rows for name in ("region", "nation", "orders")] == [5, 25, 1500]
    for stream in streams:
        files = sorted((directory / stream.name).iterdir(), key=lambda path: path.stat().st_mtime)
        assert [path.name for path in files] == [file_name(number) for number in range(4)]
        assert tables[stream.name]["".join((PREFIXES[stream.name], "_row"))].to_pylist() == list(
            range(tables[stream.name].num_rows)
        )
        assert tuple(column.name for column in stream.columns) == tuple(tables[stream.name].column_names)
    for join in KEY_JOINS:
        left, right = ([pair[side] for pair in join.columns] for side in (0, 1))
        keys = set(zip(*(tables[join.right][name].to_pylist() for name in right), strict=True))
        assert set(zip(*(tables[join.left][name].to_pylist() for name in left), strict=True)) <= keys
    made = (directory / "orders" / file_name(0)).stat().st_ino
    assert prepare_tpch(INPUT, tmp_path) == directory
    assert (directory / "orders" / file_name(0)).stat().st_ino == made
