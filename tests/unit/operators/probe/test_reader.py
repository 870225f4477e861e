"""Stored rows are read under a later layout as if they had been stored under it; their files stay as they are."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from plait.operators.column_names import TAU
from plait.operators.ingest.derivable import derivation, reading_of
from plait.operators.ingest.deriving import derived
from plait.operators.ingest.ingest import IngestContext, ingest
from plait.operators.ingest.projection import ingest_spec, layout_of
from plait.operators.ingest.readings import Reading
from plait.operators.probe.reader import FEW_ROWS, Reader, seen
from plait.operators.probe.selections import selection_words
from plait.operators.probe.together import Together
from plait.plan.model import KeyColumn, Member, Requirement, Selection, Store
from plait.query.model import Column, SourceExpression, Stream
from plait.state.joined_buckets import description
from plait.state.model import Bucket
from plait.state.storage import Storage

TYPES = {"ts": "timestamp", "x": "bigint", "y": "string"}
SOURCE = Stream(name="s", time="ts", schema=tuple(Column(name=name, type=type_) for name, type_ in TYPES.items()))
VALUES = ([5, None, 1, 4, 9], ["e", "n", None, "d", "i"])


def key(column: str, type_: str) -> KeyColumn:
    return KeyColumn(expression=SourceExpression(sql=f"`{column}`", columns=(column,)), type=type_)


def selection(sql: str) -> Selection:
    column = "x" if "`x`" in sql else "y"
    return Selection(conjuncts=() if sql == "true" else (SourceExpression(sql=sql, columns=(column,)),))


def store(*selections: str, keys: tuple[KeyColumn, ...] = (), columns: tuple[str, ...] = ("ts", "x", "y")) -> Store:
    return Store(
        id="s",
        source="s",
        is_table=False,
        columns=columns,
        keys=keys,
        requirements=tuple(Requirement(selection=selection(sql), keys=()) for sql in selections),
        indexes=tuple((each.name,) for each in keys),
        partition_by=(),
        parallelism=1,
        window_us=None,
    )


def stored(storage: Storage, under: Store, batch: int = 0) -> Bucket:
    times = pa.array([datetime.datetime(2020, 1, 1, second=5 - n) for n in range(5)], pa.timestamp("us", "UTC"))
    arrays = {"ts": times, TAU: times.cast(pa.int64()), "x": pa.array(VALUES[0]), "y": pa.array(VALUES[1])}
    rows = pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))
    spec = ingest_spec(SOURCE, (under,))
    how = derivation(spec, list(arrays), (), SOURCE)
    assert how is not None
    context = IngestContext(storage=storage, batch=batch, late_before_us=None, attempt="0")
    (bucket,) = ingest(derived([rows], how), spec, context).buckets
    return bucket


def reading(of: Store) -> Reading:
    found = reading_of(of, SOURCE)
    assert found is not None
    return found


BEFORE = store("true")
LATER = store("`x` > 3", "true", "coalesce(`y`, 'z') = 'e'", keys=(key("x", "bigint"), key("y", "string")))


def test_rows_read_under_a_later_layout_are_those_that_would_have_been_stored(tmp_path: Path) -> None:
    storage = Storage.open(str(tmp_path))
    reader = Reader(storage, {"s": reading(LATER)})
    before, later = stored(storage, BEFORE), stored(storage, LATER, batch=1)
    names = [*layout_of(LATER).carried, "#bits"]
    read = reader.open(reader.seen(before))
    expected = reader.open(reader.seen(later)).batch.select(names).sort_by(TAU)
    assert read.batch.select(names).sort_by(TAU).equals(expected)
    assert expected["#bits"].to_pylist() == [0b101, 0b101, 0b100, 0b100, 0b111]
    hashes = key("y", "string").name
    assert read.index((hashes,)).key.tolist() == sorted(expected[hashes].drop_null().to_pylist())


def test_the_file_stays_as_it_is_and_is_opened_as_it_is_by_others(tmp_path: Path) -> None:
    storage = Storage.open(str(tmp_path))
    bucket = stored(storage, BEFORE)
    reader = Reader(storage, {"s": reading(LATER)})
    reader.open(reader.seen(bucket))
    assert Reader(storage).open(bucket).batch.schema.names == ["ts", "x", "y", TAU]


def test_what_is_read_in_two_ways_by_turns_is_computed_once_for_each(tmp_path: Path) -> None:
    storage = Storage.open(str(tmp_path))
    bucket, ways = stored(storage, BEFORE), (reading(LATER), reading(store("`x` > 4")))
    readers = [Reader(storage, {"s": way}) for way in ways]
    first, again = ([reader.open(reader.seen(bucket)) for reader in readers] for _ in range(2))
    assert [one is other for one, other in zip(first, again, strict=True)] == [True, True]


def test_what_is_read_under_one_selection_may_hold_rows_that_do_not_satisfy_it(tmp_path: Path) -> None:
    storage = Storage.open(str(tmp_path))
    reader = Reader(storage, {"s": reading(store("`x` > 3"))})
    opened = reader.open(reader.seen(stored(storage, BEFORE)))
    bits, mask = selection_words(opened, Member(store="s", ordinal=0, selection=selection("`x` > 3"), window_us=None))
    assert bits is not None
    chosen = [value for value, word in zip(opened.batch["x"].to_pylist(), bits, strict=True) if word & mask]
    assert sorted(chosen) == [4, 5, 9]


def test_buckets_of_several_layouts_are_read_as_one(tmp_path: Path) -> None:
    storage = Storage.open(str(tmp_path))
    reader = Reader(storage, {"s": reading(LATER)})
    between = store("`x` > 4", "true", keys=(key("x", "bigint"),))
    parts = reader.all_seen([stored(storage, each, batch) for batch, each in enumerate((BEFORE, between, LATER))])
    assert len({reader.kind(part) for part in parts}) == 1
    one = reader.open_joined(description(parts), parts)
    assert one.batch.num_rows == 15
    assert sorted(one.batch["#bits"].to_pylist()) == sorted([0b101, 0b101, 0b100, 0b100, 0b111] * 3)


def test_stores_that_have_the_same_files_are_read_each_in_its_own_way(tmp_path: Path) -> None:
    storage = Storage.open(str(tmp_path))
    files = [stored(storage, BEFORE, batch) for batch in range(2)]
    other = store("`x` > 4", "true", keys=(key("x", "bigint"),))
    reader = Reader(storage, {"q1/s": reading(LATER), "q2/s": reading(other)})
    together = Together(reader)
    for name, of in (("q1/s", LATER), ("q2/s", other), ("q1/s", LATER)):
        parts = reader.all_seen([replace(bucket, store=name) for bucket in files])
        assert {*layout_of(of).keys} <= {*reader.open(parts[0]).batch.schema.names}
        (one,) = together.join(parts, lookups=1000)
        assert set(layout_of(of).keys) == {
            column for column in together.open(one).batch.schema.names if column.startswith("#k")
        }


def test_what_lacks_a_column_that_others_are_read_from_is_not_read_as_one_with_them(tmp_path: Path) -> None:
    storage = Storage.open(str(tmp_path))
    both = store("true", keys=(key("x", "bigint"),))
    narrow = replace(both, columns=("ts", "y"))
    reader = Reader(storage, {"s": reading(narrow)})
    wide, own = reader.all_seen([stored(storage, both), stored(storage, narrow, batch=1)])
    assert (wide.layout, wide.sort_key) == (own.layout, own.sort_key)
    assert reader.kind(wide) != reader.kind(own)


def test_what_lacks_a_column_is_left_as_it_is(tmp_path: Path) -> None:
    storage = Storage.open(str(tmp_path))
    bucket = stored(storage, store("true", columns=("ts", "x")))
    assert seen(bucket, {"s": reading(LATER)}) is bucket


@pytest.mark.parametrize(("rows", "is_read"), [(FEW_ROWS, True), (FEW_ROWS + 1, False)])
def test_only_a_small_bucket_is_read_otherwise_although_it_has_all(tmp_path: Path, rows: int, is_read: bool) -> None:
    bucket = replace(stored(Storage.open(str(tmp_path)), LATER), rows=rows)
    narrower = reading(store("`x` > 3", "true", keys=(key("x", "bigint"),)))
    assert (seen(bucket, {"s": narrower}).layout == narrower.layout) is is_read


def test_what_takes_spark_is_not_read_so() -> None:
    assert reading_of(store("`x` + 1 > 5"), SOURCE) is None
