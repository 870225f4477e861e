"""The benchmarks' input is the same every time, and is what its description says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.components.stored_data import make_probes, make_stored, prepare_stored, stored_workloads
from benchmarks.workloads import data
from benchmarks.workloads.data import FIRST_US, STREAMS, Workload, file_name, fresh_directory, make_file, prepare
from plait.errors import OptionError

TINY = Workload(rows=203, files=4, span_s=40)


def times(table: pa.Table) -> np.ndarray:
    return table["ts"].cast(pa.int64()).to_numpy()


def test_a_file_is_the_same_however_often_it_is_made():
    for stream in STREAMS:
        assert make_file(TINY, stream, 2).equals(make_file(TINY, stream, 2))


def test_another_seed_gives_other_rows():
    assert not make_file(TINY, "r", 0).equals(make_file(Workload(rows=203, files=4, span_s=40, seed=8), "r", 0))


def test_files_divide_the_rows_and_number_them_without_gaps():
    numbers = np.concatenate([make_file(TINY, "s", file)["sv"].to_numpy() for file in range(TINY.files)])
    assert numbers.tolist() == list(range(TINY.rows))
    assert TINY.rows_in(TINY.files) == 3 * TINY.rows
    assert TINY.rows_in(1) == 3 * make_file(TINY, "t", 0).num_rows


def test_each_file_holds_its_own_slice_of_the_span():
    for file in range(TINY.files):
        found = times(make_file(TINY, "t", file)) - FIRST_US
        assert found.min() >= file * 10_000_000
        assert found.max() < (file + 1) * 10_000_000


def test_keys_are_a_tenth_of_the_rows_and_streams_differ():
    keys = np.concatenate([make_file(TINY, "s", file)["sa"].to_numpy() for file in range(TINY.files)])
    assert TINY.keys == 20
    assert set(keys) <= set(range(20))
    assert make_file(TINY, "s", 0)["sa"].to_pylist() != make_file(TINY, "r", 0)["ra"].to_pylist()


def test_prepared_files_are_read_in_order_of_their_times(tmp_path: Path):
    directory = prepare(TINY, tmp_path)
    for stream, columns in STREAMS.items():
        files = sorted((directory / stream).iterdir(), key=lambda path: path.stat().st_mtime)
        assert [path.name for path in files] == [file_name(file) for file in range(TINY.files)]
        assert pq.read_table(files[1]).equals(make_file(TINY, stream, 1))
        assert tuple(pq.read_schema(files[0]).names) == columns


def test_data_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    first = prepare(TINY, tmp_path)

    def refuse(*_: object) -> pa.Table:
        raise AssertionError("made again")

    monkeypatch.setattr(data, "make_file", refuse)
    assert prepare(TINY, tmp_path) == first


def test_half_written_data_is_not_taken_for_data(tmp_path: Path):
    def fail() -> None:
        with fresh_directory(tmp_path / "made") as hidden:
            (hidden / "part").write_text("x")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_fewer_rows_than_files_are_refused():
    with pytest.raises(OptionError, match="at least 20 rows"):
        Workload(rows=3)


def test_stored_keys_are_each_stored_once():
    small, large = stored_workloads((100, 1000), file_rows=64, seed=1)
    for workload in (small, large):
        keys = np.concatenate([make_stored(workload, file)["k"].to_numpy() for file in range(workload.files)])
        assert len(keys) == workload.rows
        assert sorted(keys) == [number * workload.stride for number in range(workload.rows)]


def test_a_probe_finds_one_row_in_either_store():
    small, large = stored_workloads((100, 1050), file_rows=64, seed=1)
    probes = make_probes(small, 500, 3, 1)
    assert probes.equals(make_probes(small, 500, 3, 1))
    for workload in (small, large):
        stored = {key for file in range(workload.files) for key in make_stored(workload, file)["k"].to_pylist()}
        assert set(probes["k"].to_pylist()) <= stored


def test_probes_arrive_after_what_is_stored():
    small, large = stored_workloads((100, 1000), file_rows=64, seed=1)
    newest = max(times(make_stored(large, file)).max() for file in range(large.files))
    assert times(make_probes(small, 10, 0, 1)).min() > newest


def test_stored_data_is_written_once(tmp_path: Path):
    (workload,) = stored_workloads((100,), file_rows=64, seed=1)
    directory = prepare_stored(workload, tmp_path)
    assert sorted(path.name for path in directory.iterdir()) == [file_name(0), file_name(1)]
    made = (directory / file_name(0)).stat().st_ino
    prepare_stored(workload, tmp_path)
    assert (directory / file_name(0)).stat().st_ino == made
