from __future__ import annotations

import datetime
import decimal
import os
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.errors import CheckpointError, InvalidPlanError
from plait.kernels.matching import iter_matches
from plait.state import buckets, indexes
from plait.state.buckets import OpenBucket, close_others, open_bucket, verify, write_bucket
from plait.state.model import Bucket
from plait.state.storage import Storage
from plait.state.trust import verify_all
from tests.unit.kernels import reference
from tests.unit.state.builders import A, B, layout, written

SMALL = st.integers(0, 3)
ROW = st.fixed_dictionaries({A: st.none() | SMALL, B: st.none() | SMALL, "#tau": st.integers(0, 9), "#bits": SMALL})
INDEXES = st.lists(st.sampled_from(((A,), (B,), (A, B), (B, A))), max_size=3, unique=True).map(tuple)


def columns_of(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {"id": list(range(len(rows))), **{name: [row[name] for row in rows] for name in (A, B, "#tau", "#bits")}}


def ids(opened: OpenBucket, rows: list[int]) -> list[int]:
    found: list[int] = opened.take(np.array(rows, np.int32), ["id"]).column(0).to_pylist()
    return found


@settings(deadline=None)
@given(st.lists(ROW, max_size=25), INDEXES, st.lists(st.tuples(SMALL, SMALL, SMALL), max_size=5), st.integers(0, 9))
def test_probing_any_index_finds_what_a_nested_loop_finds(
    rows: list[dict[str, Any]], indexes: tuple[tuple[str, ...], ...], probes: list[tuple[int, int, int]], width: int
) -> None:
    with TemporaryDirectory() as directory:
        storage, bucket = written(directory, columns_of(rows), indexes=indexes)
        opened = OpenBucket(storage, bucket)
        for keys in ((A,), (B,), (A, B), (B, A)):
            wanted = sorted((_key(dict(zip((A, B), pair, strict=True)), keys), low) for *pair, low in probes)
            index = opened.index(keys)
            low = np.array([low for _, low in wanted], np.int64)
            found = [
                (probe, row)
                for block in iter_matches(
                    probe_key=np.array([key for key, _ in wanted], np.int64),
                    probe_low=low,
                    probe_high=low + width,
                    index_key=index.key,
                    index_tau=index.tau,
                    index_row=index.row,
                    bits=opened.int64("#bits"),
                    mask=2,
                )
                for probe, row in zip(*(side.tolist() for side in block), strict=True)
            ]
            got = Counter(zip([probe for probe, _ in found], ids(opened, [row for _, row in found]), strict=True))
            assert got == Counter(
                (probe, number)
                for probe, (key, low_end) in enumerate(wanted)
                for number, row in enumerate(rows)
                if _key(row, keys) == key and low_end <= row["#tau"] <= low_end + width and row["#bits"] & 2
            )


def _key(row: dict[str, Any], keys: tuple[str, ...]) -> int | None:
    """The (composite) key of a row, None where a part is NULL."""
    if any(row[name] is None for name in keys):
        return None
    if len(keys) == 1:
        return int(row[keys[0]])
    return reference.xxhash64(row[keys[1]], reference.xxhash64(row[keys[0]]) % 2**64)


@settings(deadline=None)
@given(st.lists(ROW, max_size=25), INDEXES)
def test_a_bucket_is_sorted_by_its_first_index_and_tau_with_null_keys_last(
    rows: list[dict[str, Any]], indexes: tuple[tuple[str, ...], ...]
) -> None:
    with TemporaryDirectory() as directory:
        storage, bucket = written(directory, columns_of(rows), indexes=indexes)
        opened = OpenBucket(storage, bucket)
        keys = indexes[0] if indexes else ()
        found = [rows[number] for number in opened.batch.column("id").to_pylist()]
        ranks = [(_key(row, keys) is None, _key(row, keys) or 0, row["#tau"]) if keys else row["#tau"] for row in found]
        assert ranks == sorted(ranks)  # type: ignore[type-var]
        assert Counter(opened.batch.column("id").to_pylist()) == Counter(range(len(rows)))
        assert bucket.sort_key == keys
        taus = [row["#tau"] for row in rows]
        assert (bucket.rows, bucket.tau_min, bucket.tau_max) == (
            len(rows), min(taus, default=None), max(taus, default=None)
        )  # fmt: skip


MOMENT = datetime.datetime(2024, 2, 29, 12, 0, 0, 123456)
TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "decimal": (pa.decimal128(38, 10), [decimal.Decimal("1.5"), None, decimal.Decimal("-99999.0000000001")]),
    "timestamp": (pa.timestamp("us"), [MOMENT, None, MOMENT]),
    "timestamp with zone": (
        pa.timestamp("us", "Europe/Berlin"),
        [None, MOMENT.replace(tzinfo=datetime.timezone.utc)] * 2,
    ),
    "date": (pa.date32(), [MOMENT.date(), None]),
    "string": (pa.string(), ["", None, "ä\0b", "x" * 1000]),
    "large string": (pa.large_string(), ["a", None]),
    "binary": (pa.binary(), [b"", None, b"\xff\0"]),
    "fixed binary": (pa.binary(3), [b"abc", None]),
    "boolean": (pa.bool_(), [True, None, False]),
    "null": (pa.null(), [None, None]),
    "float": (pa.float32(), [1.5, None, float("inf")]),
    "tiny": (pa.int8(), [1, None, -128]),
    "list": (pa.list_(pa.int32()), [[1, None], None, []]),
    "struct": (pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))]), [{"a": 1, "b": ["x"]}, None]),
    "map": (pa.map_(pa.string(), pa.int32()), [[("a", 1), ("b", None)], None]),
    "interval": (pa.duration("us"), [datetime.timedelta(days=1), None]),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), ["a", None, "a", "b"]),
    "nested empty": (pa.list_(pa.struct([("x", pa.null())])), [[], None]),
}


@pytest.mark.parametrize("kind", TYPES)
def test_any_type_of_column_survives(kind: str, tmp_path: Path) -> None:
    type_, values = TYPES[kind]
    for rows in (0, len(values), 300):
        column = [values[n % len(values)] for n in range(rows)]
        table = pa.table(
            {
                "x": pa.chunked_array([pa.array(column[:7], type_), pa.array(column[7:], type_)]),
                "n": pa.array(range(rows), pa.int64()),
                A: pa.array([(n * 7) % 5 if n % 3 else None for n in range(rows)], pa.int64()),
                "#tau": pa.array(range(rows), pa.int64()),
            }
        )
        storage = Storage.open(str(tmp_path))
        bucket = write_bucket(
            storage,
            store="s",
            partition=0,
            name=str(rows),
            table=table,
            layout=layout(A, columns=("x", "n")),
            indexes=((A,),),
            batch_min=0,
            batch_max=0,
        )
        verify(storage, bucket)
        batch = open_bucket(storage, bucket).batch
        batch.validate(full=True)
        assert batch.schema.field("x").type == type_
        order = batch.column("n").to_pylist()
        assert batch.column("x").to_pylist() == table.column("x").take(pa.array(order, pa.int64())).to_pylist()
        assert sorted(order) == list(range(rows))


def sample(directory: Path, **changes: Any) -> tuple[Storage, Bucket]:
    rows = 1000
    columns = {
        "id": list(range(rows)),
        A: [n * 7 % 100 for n in range(rows)],
        B: [n * 11 % 10 for n in range(rows)],
        "#tau": [n * 13 % 500 for n in range(rows)],
    }
    return written(directory, columns, **{"indexes": ((A,), (B,)), **changes})


def test_arrays_are_views_of_the_file(tmp_path: Path) -> None:
    storage, bucket = sample(tmp_path)
    opened = OpenBucket(storage, bucket)
    before = pa.total_allocated_bytes()
    arrays = [opened.int64("id"), *_arrays(opened, (A,)), *_arrays(opened, (B,))]
    assert pa.total_allocated_bytes() == before
    assert not any(array.flags.writeable or array.flags.owndata for array in arrays)
    assert np.shares_memory(opened.index((A,)).key, opened.int64(A))


def _arrays(opened: OpenBucket, keys: tuple[str, ...]) -> list[Any]:
    index = opened.index(keys)
    return [array for array in (index.key, index.tau, index.row) if array is not None]


def test_a_composite_sort_key_is_read_without_a_copy(tmp_path: Path) -> None:
    storage, bucket = sample(tmp_path, indexes=((A, B),))
    opened = OpenBucket(storage, bucket)
    index = opened.index((A, B))
    assert index.row is None
    assert np.shares_memory(index.key, opened.int64(buckets.COMBINED))
    assert len(list(tmp_path.rglob("*.*"))) == 1


def test_a_table_has_no_tau(tmp_path: Path) -> None:
    storage, bucket = written(tmp_path, {"id": [1, 2, 3], A: [3, None, 1]})
    assert (bucket.tau_min, bucket.tau_max) == (None, None)
    index = OpenBucket(storage, bucket).index((A,))
    assert index.tau is None
    assert index.key.tolist() == [1, 3]


def test_arrays_outlive_the_open_bucket_and_the_file(tmp_path: Path) -> None:
    storage, bucket = sample(tmp_path)
    key = OpenBucket(storage, bucket).int64(A)
    expected = key.tolist()
    storage.delete(bucket.path)
    assert key.tolist() == expected


def test_a_bucket_of_few_rows_has_no_index_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes, "FEWEST_ROWS", 3)
    for count, expected in ((2, 0), (3, 1)):
        values = list(range(count))
        rows = {"id": values, A: values, B: values[::-1], "#tau": values}
        storage, bucket = written(tmp_path, rows, indexes=((A,), (B,)), name=f"0-{count}")
        opened = OpenBucket(storage, bucket)
        assert opened.index((B,)).key.tolist() == values
        assert opened.index((B,)).row is not None
        assert len(index_files(tmp_path)) == expected


def index_files(directory: Path) -> list[Path]:
    return sorted(directory.rglob("*.index"))


def test_a_missing_index_is_built_once_and_kept_beside_the_bucket(tmp_path: Path) -> None:
    storage, bucket = sample(tmp_path, indexes=((A,),))
    assert index_files(tmp_path) == []
    built = OpenBucket(storage, bucket).index((B, A))
    (path,) = index_files(tmp_path)
    stamp = path.stat().st_mtime_ns, path.stat().st_ino
    read = OpenBucket(storage, bucket).index((B, A))
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == stamp
    assert not read.key.flags.owndata
    for name in ("key", "tau", "row"):
        np.testing.assert_array_equal(getattr(read, name), getattr(built, name))


def test_where_nothing_can_be_written_an_index_is_built_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, bucket = sample(tmp_path, indexes=((A,),))

    def refuse(*_: object) -> None:
        raise PermissionError(13, "read-only")

    monkeypatch.setattr(os, "replace", refuse)
    opened = OpenBucket(storage, bucket)
    assert len(opened.index((B,)).key) == 1000
    assert opened.index((B,)) is opened.index((B,))
    assert index_files(tmp_path) == []


def _truncate(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _flip(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def _empty(_: bytes) -> bytes:
    return b""


def _replace(content: bytes) -> bytes:
    return b"x" * len(content)


@pytest.mark.parametrize("damage", [_truncate, _empty, _replace])
def test_a_damaged_index_is_built_again(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    storage, bucket = sample(tmp_path)
    expected = OpenBucket(storage, bucket).index((B,))
    (path,) = index_files(tmp_path)
    kept = [array.copy() for array in (expected.key, expected.tau, expected.row) if array is not None]
    content = path.read_bytes()
    path.unlink()  # the old mapping stays whole
    path.write_bytes(damage(content))
    again = OpenBucket(storage, bucket).index((B,))
    for old, new in zip(kept, (again.key, again.tau, again.row), strict=True):
        np.testing.assert_array_equal(old, new)
    assert path.stat().st_size == len(content)


def test_verifying_removes_an_index_with_a_flipped_bit(tmp_path: Path) -> None:
    storage, bucket = sample(tmp_path)
    (path,) = index_files(tmp_path)
    verify(storage, bucket)
    assert path.exists()
    path.write_bytes(_flip(path.read_bytes()))
    verify(storage, bucket)
    assert not path.exists()


@pytest.mark.parametrize("damage", [_truncate, _flip, _empty, _replace])
def test_a_damaged_bucket_is_detected_and_named(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    storage, bucket = sample(tmp_path)
    verify(storage, bucket)
    path = tmp_path / bucket.path
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CheckpointError, match=rf"Bucket {path} of store s is damaged.*backup"):
        verify(storage, bucket)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_any_flipped_bit_is_detected(data: st.DataObject) -> None:
    with TemporaryDirectory() as directory:
        storage, bucket = written(directory, {"id": [1, 2], A: [3, None], "#tau": [1, 2]})
        path = Path(directory, bucket.path)
        content = bytearray(path.read_bytes())
        bit = data.draw(st.integers(0, len(content) * 8 - 1))
        content[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bytes(content))
        with pytest.raises(CheckpointError, match="damaged"):
            verify(storage, bucket)


@pytest.mark.parametrize("damage", [_truncate, _empty, _replace])
def test_opening_what_is_no_bucket_any_more_is_an_error_with_its_name(
    damage: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    storage, bucket = sample(tmp_path)
    path = tmp_path / bucket.path
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CheckpointError, match=rf"{path}.*damaged"):
        open_bucket(storage, bucket)


def test_a_missing_bucket_is_named(tmp_path: Path) -> None:
    storage, bucket = sample(tmp_path)
    storage.delete(bucket.path)
    for touch in (open_bucket, verify):
        with pytest.raises(CheckpointError, match=r"0-0\.arrow: there is no such file"):
            touch(storage, bucket)


def test_a_key_the_bucket_does_not_have_is_a_broken_plan(tmp_path: Path) -> None:
    storage, bucket = sample(tmp_path)
    with pytest.raises(InvalidPlanError, match="probes it by"):
        OpenBucket(storage, bucket).index(("#k nothing",))


def test_a_key_of_another_type_is_a_broken_plan(tmp_path: Path) -> None:
    storage, bucket = sample(tmp_path)
    opened = OpenBucket(storage, bucket)
    opened.batch = pa.record_batch({"id": pa.array([1], pa.int32())})
    with pytest.raises(InvalidPlanError, match="id is of type int32"):
        opened.int64("id")


@pytest.fixture(autouse=True)
def nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "_OPEN", buckets._OpenBuckets())


def test_open_buckets_hold_no_file_descriptor(tmp_path: Path) -> None:
    made = [sample(tmp_path, name=str(n)) for n in range(20)]
    before = len(os.listdir("/proc/self/fd"))
    opened = [open_bucket(*one) for one in made]
    for one in opened:
        one.index((B,))
    assert len(os.listdir("/proc/self/fd")) == before
    assert opened[0].int64("id").sum() == opened[19].int64("id").sum()


def test_an_open_bucket_is_opened_once_and_the_oldest_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "_OPEN_LIMIT", 2)
    made = [sample(tmp_path, name=str(n)) for n in range(3)]
    first, second = open_bucket(*made[0]), open_bucket(*made[1])
    assert open_bucket(*made[0]) is first
    open_bucket(*made[2])
    assert open_bucket(*made[0]) is first
    assert open_bucket(*made[1]) is not second


def test_buckets_no_longer_live_are_closed(tmp_path: Path) -> None:
    made = [sample(tmp_path, name=str(n)) for n in range(2)]
    first, second = (open_bucket(*one) for one in made)
    close_others(made[0][0], [made[1][1]])
    assert open_bucket(*made[1]) is second
    assert open_bucket(*made[0]) is not first


def test_deleted_buckets_are_closed_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "_SWEEP_EVERY", 2)
    made = [sample(tmp_path, name=str(n)) for n in range(2)]
    open_bucket(*made[0])
    made[0][0].delete(made[0][1].path)
    open_bucket(*made[1])
    assert [key[1] for key in buckets._OPEN._open] == [made[1][1].path]


def test_a_bucket_of_a_checkpoint_begun_anew_is_not_mistaken_for_the_old_one(tmp_path: Path) -> None:
    storage, old = written(tmp_path, {"id": [1], A: [1], "#tau": [1]})
    assert open_bucket(storage, old).int64("id").tolist() == [1]
    storage, new = written(tmp_path, {"id": [2], A: [1], "#tau": [1]})
    assert new.path == old.path
    assert open_bucket(storage, new).int64("id").tolist() == [2]


def test_a_remote_bucket_is_read_through_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_CACHE_DIR", str(tmp_path / "cache"))
    uri = f"mock:///{uuid.uuid4().hex}"
    storage, bucket = written(uri, {"id": [1, 2], A: [2, 1], B: [5, 6], "#tau": [1, 2]}, indexes=((A,), (B,)))
    verify(storage, bucket)
    opened = OpenBucket(storage, bucket)
    assert opened.index((A,)).key.tolist() == [1, 2]
    assert opened.index((B,)).row.tolist() == [1, 0]  # type: ignore[union-attr]
    assert len(list((tmp_path / "cache").glob("*.copy"))) == 2


def test_store_names_may_hold_anything(tmp_path: Path) -> None:
    storage, bucket = sample(tmp_path, store="../ö\n*/" + "x" * 300, name="a/b.c")
    assert len(open_bucket(storage, bucket).index((A,)).key) == 1000
    assert (tmp_path / bucket.path).resolve().is_relative_to(tmp_path.resolve())


class _Overfull:
    """What Arrow makes of a table whose text exceeds 2 GiB: it cannot be combined into one chunk."""

    halves = pa.table({"id": pa.chunked_array([["a"], ["b"]])})
    num_rows, nbytes, schema = 2, 3 << 30, halves.schema

    def replace_schema_metadata(self, _: object) -> _Overfull:
        return self

    def combine_chunks(self) -> pa.Table:
        return self.halves


def test_more_text_than_one_column_can_hold_is_refused() -> None:
    with pytest.raises(CheckpointError, match=r"2 GiB at most\. .*raise the parallelism"):
        buckets.one_batch(_Overfull())


def test_a_remote_bucket_that_is_short_or_gone_is_detected_without_reading_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAIT_CACHE_DIR", str(tmp_path / "cache"))
    _, bucket = sample(tmp_path)
    content = (tmp_path / bucket.path).read_bytes()
    remote = Storage.open(f"mock:///{tmp_path.name}-verified")
    remote.write_file(bucket.path, content)
    verify_all(remote, [bucket])
    remote.write_file(bucket.path, content[:-1])
    with pytest.raises(
        CheckpointError, match=rf"is damaged: expected {len(content)} bytes, found {len(content) - 1} by"
    ):
        verify_all(remote, [bucket])
    remote.delete(bucket.path)
    with pytest.raises(CheckpointError, match="found no file"):
        verify_all(remote, [bucket])
    assert not (tmp_path / "cache").exists()
