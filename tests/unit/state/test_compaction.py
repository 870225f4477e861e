from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace as with_changes
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.state.buckets import OpenBucket, verify, write_bucket
from plait.state.compaction import Merge, choose_merges, merge_buckets, replace
from plait.state.model import Bucket
from plait.state.storage import Storage
from tests.unit.state.builders import A, B, described, layout, written

SIZES = st.sampled_from((0, 1, 1000, 5000, 20_000, 300_000, 5_000_000))


@st.composite
def live_buckets(draw: st.DrawFn) -> tuple[Bucket, ...]:
    count = draw(st.integers(0, 40))
    found = []
    for batch in range(count):
        start = batch * 10 + draw(st.integers(-15, 15))
        found.append(
            described(
                path=f"p{batch}",
                store=draw(st.sampled_from(("s", "unbounded", "gone"))),
                partition=draw(st.integers(0, 1)),
                rows=draw(SIZES),
                bytes=draw(st.sampled_from((1000, 200 << 20))),
                batch_min=batch,
                batch_max=batch,
                tau_min=start,
                tau_max=start + draw(st.integers(0, 30)),
                layout=layout(A) if draw(st.integers(0, 4)) else layout(A, B),
                parallelism=draw(st.sampled_from((1, 1, 1, 2))),
                generation=draw(st.sampled_from((None, None, None, 3))),
                is_copy=draw(st.integers(0, 4)) == 0,
            )
        )
    return tuple(draw(st.permutations(found)))


WINDOWS = {"s": 400, "unbounded": None}


def kind(bucket: Bucket) -> tuple[Any, ...]:
    place = bucket.store, bucket.partition, bucket.partition_by, bucket.parallelism
    return *place, bucket.layout, bucket.generation, bucket.is_copy


@settings(deadline=None)
@given(live_buckets())
def test_merges_are_disjoint_neighbours_within_the_limits(buckets: tuple[Bucket, ...]) -> None:
    merges = choose_merges(buckets, WINDOWS)
    merged = [bucket for merge in merges for bucket in merge.buckets]
    assert len(merged) == len(set(merged))
    for merge in merges:
        assert len(merge.buckets) >= 4
        assert len({kind(bucket) for bucket in merge.buckets}) == 1
        assert sum(bucket.rows for bucket in merge.buckets) <= 4_000_000
        assert sum(bucket.bytes for bucket in merge.buckets) <= 1 << 29
        first = merge.buckets[0]
        group = sorted((b for b in buckets if kind(b) == kind(first)), key=lambda bucket: bucket.batch_min)
        start = group.index(first)
        assert tuple(group[start : start + len(merge.buckets)]) == merge.buckets
        assert first.store in WINDOWS
        if first.store == "s":
            ends = [bucket.tau_max for bucket in merge.buckets if bucket.tau_max is not None]
            starts = [bucket.tau_min for bucket in merge.buckets if bucket.tau_min is not None]
            assert max(ends) - min(starts) <= 100


@settings(deadline=None)
@given(live_buckets(), st.randoms())
def test_the_choice_does_not_depend_on_the_order_of_the_manifest(buckets: tuple[Bucket, ...], random: Any) -> None:
    shuffled = list(buckets)
    random.shuffle(shuffled)
    assert set(choose_merges(shuffled, WINDOWS)) == set(choose_merges(buckets, WINDOWS))


def pretend(merge: Merge, path: str) -> Bucket:
    """Describe what a merge would write, without files."""
    first, last = merge.buckets[0], merge.buckets[-1]
    return with_changes(
        first,
        path=path,
        rows=sum(bucket.rows for bucket in merge.buckets),
        bytes=sum(bucket.bytes for bucket in merge.buckets),
        batch_max=last.batch_max,
        tau_min=min(bucket.tau_min for bucket in merge.buckets if bucket.tau_min is not None),
        tau_max=max(bucket.tau_max for bucket in merge.buckets if bucket.tau_max is not None),
    )


def run(sizes: list[int], window: int | None, **options: int) -> tuple[list[tuple[Bucket, ...]], int]:
    """Let one bucket a batch arrive, each 10 µs of τ; merge after each. Return what was live, and rows rewritten."""
    live: tuple[Bucket, ...] = ()
    history, rewritten = [], 0
    for batch, rows in enumerate(sizes):
        now = batch * 10
        live = tuple(b for b in live if window is None or b.tau_max is None or b.tau_max + window >= now)
        live = (
            *live,
            described(
                path=f"b{batch}", rows=rows, bytes=rows, batch_min=batch, batch_max=batch, tau_min=now, tau_max=now + 9
            ),
        )
        for number, merge in enumerate(choose_merges(live, {"s": window}, **options)):
            merged = pretend(merge, f"m{batch}-{number}")
            rewritten += merged.rows
            live = replace(live, merge, merged)
        history.append(live)
    return history, rewritten


@pytest.mark.parametrize("rows", [1, 1000, 3000])
def test_equal_batches_leave_logarithmically_many_buckets_and_rewrite_each_row_as_often(rows: int) -> None:
    history, rewritten = run([rows] * 1000, None)
    levels = math.log(1000, 4) + 1
    assert max(map(len, history)) <= 4 * levels
    smallest_tier = 1024 * 1000 / 3  # up to 1024 rows are one tier: there the number of files counts, not of rows
    assert rewritten <= levels * rows * 1000 + smallest_tier


@settings(deadline=None, max_examples=25)
@given(st.lists(st.sampled_from((1, 2000, 10_000, 100_000)), min_size=50, max_size=300))
def test_uneven_batches_leave_few_buckets_too(sizes: list[int]) -> None:
    history, _ = run(sizes, None, max_rows=1 << 40, max_bytes=1 << 40)
    assert max(map(len, history)) <= 4 * (2 + math.log(sum(sizes) / 1024 + 1, 4)) + 1
    assert sum(bucket.rows for bucket in history[-1]) == sum(sizes)


def test_with_a_window_few_buckets_are_live_and_expiry_stays_tight() -> None:
    window = 10_000  # a thousand batches
    history, _ = run([100] * 3000, window)
    settled = history[1500:]
    assert max(map(len, settled)) <= 40
    for number, live in enumerate(settled, 1500):
        assert min(bucket.tau_min for bucket in live if bucket.tau_min is not None) >= number * 10 - window * 1.25


def test_batches_as_long_as_the_window_allows_are_left_alone() -> None:
    history, rewritten = run([100] * 100, 80)
    assert rewritten == 0
    assert max(map(len, history)) <= 10


def test_buckets_without_tau_are_merged() -> None:
    tables = tuple(described(path=f"t{n}", batch_min=-1, batch_max=-1, tau_min=None, tau_max=None) for n in range(4))
    assert len(choose_merges(tables, {"s": None})) == 1


def test_a_merge_takes_the_place_of_what_it_merged() -> None:
    live = tuple(described(path=f"b{n}", batch_min=n, batch_max=n) for n in range(6))
    merge = Merge(buckets=live[1:4])
    merged = pretend(merge, "m")
    assert replace(live, merge, merged) == (live[0], merged, live[4], live[5])


def test_a_merge_that_comes_too_late_changes_nothing() -> None:
    live = tuple(described(path=f"b{n}", batch_min=n, batch_max=n) for n in range(4))
    merge = Merge(buckets=live)
    assert replace(live[1:], merge, pretend(merge, "m")) == live[1:]


ROWS = st.lists(
    st.tuples(st.none() | st.integers(0, 4), st.none() | st.integers(0, 4), st.integers(0, 50)), max_size=12
)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(ROWS, min_size=1, max_size=5),
    st.sampled_from((((A,), (B,)), ((A, B),), ())),
    st.sampled_from((((B,),), ((A, B), (A,)), ())),
)
def test_a_merged_bucket_has_exactly_the_rows_of_its_parts(
    parts: list[list[tuple[int | None, int | None, int]]],
    before: tuple[tuple[str, ...], ...],
    after: tuple[tuple[str, ...], ...],
) -> None:
    with TemporaryDirectory() as directory:
        live, number = [], 0
        for batch, part in enumerate(parts):
            rows: dict[str, list[Any]] = {"id": list(range(number, number + len(part)))}
            number += len(part)
            rows |= {name: [row[at] for row in part] for at, name in enumerate((A, B, "#tau"))}
            storage, bucket = written(directory, rows, indexes=before, name=str(batch), batch=batch)
            live.append(with_changes(bucket, partition_by=(A,), parallelism=3))
        merged = merge_buckets(storage, Merge(buckets=tuple(live)), after, "merged")
        verify(storage, merged)
        opened = OpenBucket(storage, merged)
        names = ["id", A, B, "#tau"]
        expected = Counter(row for bucket in live for row in rows_of(OpenBucket(storage, bucket).batch, names))
        assert Counter(rows_of(opened.batch, names)) == expected
        assert (merged.batch_min, merged.batch_max) == (0, len(parts) - 1)
        assert (merged.partition_by, merged.parallelism, merged.layout) == ((A,), 3, live[0].layout)
        assert merged.sort_key == (after[0] if after else ())
        for keys in after:
            index = opened.index(keys)
            assert index.key.tolist() == sorted(index.key.tolist())
            assert len(index.key) == sum(
                all(values[names.index(key)] is not None for key in keys) for values in expected.elements()
            )


def rows_of(batch: pa.RecordBatch, names: list[str]) -> list[tuple[Any, ...]]:
    return list(zip(*(batch.column(name).to_pylist() for name in names), strict=True))


def test_buckets_that_differ_in_nullability_and_column_order_are_merged(tmp_path: Path) -> None:
    storage = Storage.open(str(tmp_path))
    values = {"id": pa.array([1, 2]), A: pa.array([5, 6]), "#tau": pa.array([1, 2])}
    tables = (
        pa.table(list(values.values()), schema=pa.schema([pa.field(n, pa.int64(), nullable=False) for n in values])),
        pa.table(dict(reversed(values.items()))),
    )
    live = tuple(
        write_bucket(
            storage,
            store="s",
            partition=0,
            name=str(batch),
            table=table,
            layout=layout(A),
            indexes=((A,),),
            batch_min=batch,
            batch_max=batch,
        )
        for batch, table in enumerate(tables)
    )
    merged = merge_buckets(storage, Merge(buckets=live), ((A,),), "merged")
    assert OpenBucket(storage, merged).batch.column("id").to_pylist() == [1, 1, 2, 2]


def test_a_merged_bucket_of_an_intermediate_store_lives_as_long_as_its_last_part(tmp_path: Path) -> None:
    storage = Storage.open(str(tmp_path))
    ends: list[int | None] = [30, 50, 40]

    def merged_until(ends: list[int | None]) -> int | None:
        rows = {A: [1], "#tau": [10], "#until": [20]}
        names = [f"{len(ends)}-{number}" for number in range(len(ends))]
        parts = tuple(
            with_changes(written(tmp_path, rows, name=name)[1], until_us=end)
            for name, end in zip(names, ends, strict=True)
        )
        return merge_buckets(storage, Merge(buckets=parts), ((A,),), f"merged-{len(ends)}").until_us

    assert merged_until(ends) == 50
    assert merged_until([*ends, None]) is None


@pytest.mark.parametrize(("indexes", "sort_key"), [(((B,), (A,)), (A,)), (((A, B), (B,)), ())])
def test_buckets_of_earlier_queries_are_merged_without_the_indexes_whose_keys_they_lack(
    indexes: tuple[tuple[str, ...], ...], sort_key: tuple[str, ...], tmp_path: Path
) -> None:
    parts = [written(tmp_path, {"id": [n], A: [9 - n], "#tau": [n]}, name=str(n), batch=n) for n in range(4)]
    storage = parts[0][0]
    merged = merge_buckets(storage, Merge(buckets=tuple(bucket for _, bucket in parts)), indexes, "merged")
    verify(storage, merged)
    assert (merged.sort_key, merged.rows) == (sort_key, 4)
    opened = OpenBucket(storage, merged)
    assert sorted(opened.batch.column("id").to_pylist()) == [0, 1, 2, 3]
    assert opened.index((A,)).key.tolist() == [6, 7, 8, 9]
