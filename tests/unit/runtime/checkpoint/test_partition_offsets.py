"""Offsets of topics in Spark's log: what is left to read, and what was not there to be read."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from plait.query.model import Stream
from plait.query.origin import Connector, Making
from plait.runtime.checkpoint.partition_offsets import goes_on_without, lag_of, partition_offsets, passed_over
from tests.unit.runtime.checkpoint.test_arrivals import log_batch


@dataclass
class Told:
    """What Spark tells of a source."""

    endOffset: str | None
    latestOffset: str | None


@dataclass
class Query:
    """A streaming query that has told of a batch."""

    batch: int
    sources: list[Told] = field(default_factory=list)

    @property
    def lastProgress(self) -> Any:
        self.batchId = self.batch
        return self


def test_each_stream_is_behind_by_what_its_own_partitions_hold(tmp_path: Path) -> None:
    r, s = {"t": {"0": 5, "1": 7}}, {"u": {"0": 1}}
    log_batch(tmp_path, 3, {"r": r, "s_2d_1": s, "f": {"logOffset": 2}})
    told = [
        Told(json.dumps(s), json.dumps({"u": {"0": 4, "1": 2}})),
        Told(json.dumps({"logOffset": 2}), None),
        Told(json.dumps(r, indent=1), json.dumps({"t": {"0": 5, "1": 9}})),
    ]
    lag = lag_of(Query(3, told), str(tmp_path), ["r", "s-1", "f"])  # type: ignore[arg-type]
    assert lag == {"r": {"t-0": 0, "t-1": 2}, "s-1": {"u-0": 3, "u-1": 2}}


def test_a_batch_that_waits_for_records_goes_by_the_one_before(tmp_path: Path) -> None:
    log_batch(tmp_path, 3, {"r": {"t": {"0": 5}}})
    query = Query(4, [Told('{"t": {"0": 5}}', '{"t": {"0": 8}}')])
    assert lag_of(query, str(tmp_path), ["r"]) == {"r": {"t-0": 3}}  # type: ignore[arg-type]
    log_batch(tmp_path, 4, {"r": {"t": {"0": 8}}})
    assert lag_of(query, str(tmp_path), ["r"]) == {"r": {"t-0": 3}}  # type: ignore[arg-type]


def test_nothing_is_known_before_the_first_batch(tmp_path: Path) -> None:
    assert lag_of(None, str(tmp_path), ["r"]) == {}


@pytest.mark.parametrize("text", [None, "", "-", "17", "[1]", '{"logOffset": 3}', '{"t": {"x": 1}}'])
def test_an_offset_of_another_kind_says_nothing(text: str | None) -> None:
    assert partition_offsets(text) == {}


@pytest.mark.parametrize(
    ("rows", "before", "now", "gone"),
    [
        (8, {"t": {"0": 10, "1": 0}}, {"t": {"0": 15, "1": 5}}, 2),
        (10, {"t": {"0": 10, "1": 0}}, {"t": {"0": 15, "1": 5}}, 0),
        (0, {"t": {"0": 10}}, {"t": {"0": 15, "1": 5}}, 0),
        (0, {"logOffset": 1}, {"logOffset": 2}, 0),
    ],
)
def test_offsets_without_a_record_are_those_that_no_row_came_of(
    rows: int, before: object, now: object, gone: int
) -> None:
    assert passed_over(rows, json.dumps(before), json.dumps(now)) == gone


def test_only_where_a_stream_may_go_on_and_every_record_is_a_row_can_it_be_told() -> None:
    def stream(value: str, condition: str | None = None) -> Stream:
        making = Making(delivered=(), items=(), condition=condition)
        return Stream(
            name="s",
            time="ts",
            connector=Connector(format="kafka", options=(("FailOnDataLoss", value),), making=making),
        )

    assert goes_on_without(stream("False"))
    assert not goes_on_without(stream("true"))
    assert not goes_on_without(stream("false", "true"))
    assert not goes_on_without(Stream(name="s", time="ts"))
