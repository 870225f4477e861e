"""Several buckets read as one have the rows of all, and notice when one of them is written to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from plait.errors import CheckpointError
from plait.state.buckets import OpenBucket, write_bucket
from plait.state.compaction import Merge, merge_buckets
from plait.state.joined_buckets import JoinedBucket, description
from plait.state.storage import Storage
from tests.unit.state.builders import A, B, described, layout, written


def test_rows_are_those_of_all_and_found_by_every_key(tmp_path: Path) -> None:
    parts = []
    for number, keys in enumerate(([3, 1], [2], [1, 9, 4])):
        rows = {"id": [10 * number + each for each in range(len(keys))], A: keys, B: [-key for key in keys]}
        rows["#tau"] = [5 + number] * len(keys)
        storage, bucket = written(tmp_path, rows, indexes=((A,), (B,)), name=f"0-{number}", batch=number)
        parts.append(bucket)
    joined = JoinedBucket(storage, description(parts), parts)
    assert joined.bucket.rows == joined.batch.num_rows == 6
    assert (joined.bucket.tau_min, joined.bucket.tau_max, joined.bucket.batch_max) == (5, 7, 2)
    for key, sign in ((A, 1), (B, -1)):
        index = joined.index((key,))
        assert index.key.tolist() == sorted(sign * value for value in (3, 1, 2, 1, 9, 4))
        rows_found = np.arange(6, dtype=np.int32) if index.row is None else index.row
        assert joined.take(rows_found, [key]).column(0).to_pylist() == index.key.tolist()
        assert joined.take(rows_found, ["#tau"]).column(0).to_pylist() == index.tau.tolist()
    joined.release()
    joined.require_untouched()


def test_a_file_that_is_written_to_meanwhile_is_noticed(tmp_path: Path) -> None:
    parts = []
    for number in range(2):
        storage, bucket = written(tmp_path, {"id": [1], A: [number], "#tau": [1]}, name=f"0-{number}")
        parts.append(bucket)
    joined = JoinedBucket(storage, description(parts), parts)
    assert joined.is_untouched
    path = tmp_path / parts[1].path
    path.write_bytes(path.read_bytes() + b"more")
    assert not joined.is_untouched
    with pytest.raises(CheckpointError, match="written to"):
        joined.require_untouched()


def test_a_description_spans_what_it_stands_for() -> None:
    parts = [
        described(rows=3, tau_min=5, tau_max=9, until_us=20),
        described(path="x", rows=4, tau_min=2, tau_max=3, until_us=7),
    ]
    one = description(parts)
    assert (one.rows, one.bytes, one.tau_min, one.tau_max, one.until_us) == (7, 2000, 2, 9, 20)
    assert description([*parts, described(until_us=None)]).until_us is None
    assert description([described(tau_min=None, tau_max=None)] * 2).tau_max is None


@pytest.mark.parametrize("first", [0, 1])
def test_buckets_that_differ_in_what_spark_says_of_their_columns_are_read_and_merged_as_one(
    tmp_path: Path, first: int
) -> None:
    storage, instants = Storage.open(str(tmp_path)), [pa.timestamp("us", zone) for zone in ("UTC", "Etc/UTC")]
    fields = [pa.field("id", instants[0], nullable=False), pa.field(A, pa.int64()), pa.field("#tau", pa.int64())]
    tables = (
        pa.table([pa.array([7], instants[0]), pa.array([1]), pa.array([5])], schema=pa.schema(fields)),
        pa.table({"#tau": pa.array([6]), "id": pa.array([None], instants[1]), A: pa.array([2])}),
    )
    parts = [
        write_bucket(
            storage,
            store="s",
            partition=0,
            name=str(number),
            table=tables[number],
            layout=layout(A),
            indexes=((A,),),
            batch_min=0,
            batch_max=0,
        )
        for number in (first, 1 - first)
    ]
    merged = OpenBucket(storage, merge_buckets(storage, Merge(buckets=tuple(parts)), ((A,),), "merged"))
    for one in (JoinedBucket(storage, description(parts), parts), merged):
        assert one.index((A,)).key.tolist() == [1, 2]
        rows = one.batch.select([A, "id"]).to_pylist()
        assert {row[A]: row["id"] and row["id"].microsecond for row in rows} == {1: 7, 2: None}
