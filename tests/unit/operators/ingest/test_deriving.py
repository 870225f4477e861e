"""What a task computes itself is what Spark would have given it."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from plait.kernels.bands import ordered_int64
from plait.operators.column_names import TAU, word_names
from plait.operators.ingest.derivable import (
    FEWEST_INDEXED,
    Taking,
    derivation,
    derivation_from_running,
    taking_in,
)
from plait.operators.ingest.deriving import derived
from plait.operators.ingest.ingest import with_aliases
from plait.operators.ingest.projection import IngestSpec, ingest_spec
from plait.plan.model import KeyColumn, Requirement, Selection, Store, ValueColumn
from plait.query.model import Column, SourceExpression, Stream
from tests.oracle.spark_hashes import of_bytes, of_double, of_float, of_long, of_narrow, of_text, of_wide

DAY = datetime.date(1970, 1, 3)
NOON = datetime.datetime(1969, 12, 31, 23, 59, 59, 5)
HOURS = pa.timestamp("us")


def expression(sql: str, *columns: str) -> SourceExpression:
    return SourceExpression(sql=sql, columns=columns)


def stream(**types: str) -> Stream:
    columns = {"ts": "timestamp", **types}
    return Stream(name="s", time="ts", schema=tuple(Column(name=name, type=type_) for name, type_ in columns.items()))


def store(
    keys: tuple[KeyColumn, ...] = (), selections: tuple[str, ...] = (), values: tuple[ValueColumn, ...] = ()
) -> Store:
    conjuncts = [() if sql == "true" else (expression(sql, "x"),) for sql in selections or ("true",)]
    return Store(
        id="s",
        source="s",
        is_table=False,
        columns=("ts",),
        keys=keys,
        requirements=tuple(Requirement(selection=Selection(conjuncts=each), keys=()) for each in conjuncts),
        indexes=(),
        partition_by=(),
        parallelism=1,
        window_us=None,
        values=values,
    )


def rows(source: Stream, **columns: pa.Array) -> pa.RecordBatch:
    count = len(next(iter(columns.values())))
    times = pa.array([datetime.datetime(2020, 1, 1)] * count, pa.timestamp("us", "UTC"))
    columns = {"ts": times, TAU: times.cast(pa.int64()), **columns}
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def taken_in(spec: IngestSpec, source: Stream, batch: pa.RecordBatch, held: tuple[str, ...] = ()) -> pa.Table:
    how = derivation(spec, batch.schema.names, held, source)
    assert how is not None
    return with_aliases(pa.Table.from_batches(derived([batch], how)), spec)


@pytest.mark.parametrize(
    ("type_", "key_type", "by_size", "given", "expected"),
    [
        ("tinyint", "tinyint", False, pa.array([-128, None, 127], pa.int8()), [-128, None, 127]),
        ("smallint", "bigint", False, pa.array([-32768, None, 7], pa.int16()), [-32768, None, 7]),
        ("int", "int", False, pa.array([-(2**31), None, 2**31 - 1], pa.int32()), [-(2**31), None, 2**31 - 1]),
        ("bigint", "bigint", False, pa.array([-(2**63), None, 2**63 - 1]), [-(2**63), None, 2**63 - 1]),
        ("date", "date", False, pa.array([DAY, None, datetime.date(1969, 12, 31)]), [2, None, -1]),
        ("timestamp", "timestamp", False, pa.array([NOON, None], pa.timestamp("us", "UTC")), [-999_995, None]),
        ("timestamp_ntz", "timestamp_ntz", True, pa.array([NOON, None], HOURS), [-999_995, None]),
        ("double", "double", True, pa.array([-0.0, None, 1.5]), [int(ordered_int64(pa.array([0.0]).to_numpy())[0])]),
    ],
)
def test_keys_are_the_numbers_that_spark_gives(
    type_: str, key_type: str, by_size: bool, given: pa.Array, expected: list[Any]
) -> None:
    source = stream(x=type_)
    key = KeyColumn(expression=expression("coalesce(`x`, `x`)", "x"), type=key_type, by_size=by_size)
    found = taken_in(ingest_spec(source, (store(keys=(key,)),)), source, rows(source, x=given))[key.name]
    assert found.type == pa.int64()
    assert found.to_pylist()[: len(expected)] == expected
    assert found.null_count == given.null_count


@pytest.mark.parametrize(
    ("type_", "sql", "key_type"),
    [
        ("bigint", "`x` + 1", "bigint"),
        ("bigint", "`gone`", "bigint"),
        ("bigint", "`x`", "int"),
        ("string", "`x`", "bigint"),
        ("string", "upper(`x`)", "string"),
        ("interval day to second", "`x`", "interval day to second"),
        ("decimal(10,2)", "`x`", "decimal(10,1)"),
        ("decimal(18,2)", "`x`", "double"),
    ],
)
def test_what_may_fail_or_round_and_what_is_not_there_takes_spark(type_: str, sql: str, key_type: str) -> None:
    source = stream(x=type_)
    key = KeyColumn(expression=expression(sql, "x"), type=key_type)
    spec = ingest_spec(source, (store(keys=(key,)),))
    assert derivation(spec, ["ts", TAU, "x"], (), source) is None


@pytest.mark.parametrize(
    ("type_", "key_type", "given", "expected"),
    [
        ("string", "string", pa.array(["aß", None]), [of_text("aß"), None]),
        ("binary", "binary", pa.array([b"a", None], pa.binary()), [of_bytes(b"a"), None]),
        ("boolean", "boolean", pa.array([True, None]), [of_narrow(1), None]),
        ("float", "float", pa.array([-0.0, None], pa.float32()), [of_float(0.0), None]),
        ("float", "double", pa.array([1.5, None], pa.float32()), [of_double(1.5), None]),
        ("int", "double", pa.array([7, None], pa.int32()), [of_double(7.0), None]),
        ("timestamp_ntz", "timestamp_ntz", pa.array([NOON, None], HOURS), [of_long(-999_995), None]),
        ("decimal(10,2)", "decimal(12,4)", pa.array([Decimal("1.25"), None], pa.decimal128(10, 2)), [of_long(12500)]),
        ("decimal(10,2)", "decimal(22,4)", pa.array([Decimal("-1.25"), None], pa.decimal128(10, 2)), [of_wide(-12500)]),
        ("bigint", "decimal(20,0)", pa.array([-5, None]), [of_wide(-5), None]),
    ],
)
def test_keys_that_are_no_numbers_are_the_hashes_that_spark_gives(
    type_: str, key_type: str, given: pa.Array, expected: list[int | None]
) -> None:
    source = stream(x=type_)
    key = KeyColumn(expression=expression("coalesce(`x`, `x`)", "x"), type=key_type)
    taken = taken_in(ingest_spec(source, (store(keys=(key,)),)), source, rows(source, x=given))
    assert taken[key.name].type == pa.int64()
    assert taken[key.name].to_pylist()[: len(expected)] == expected
    assert taken[key.name].null_count == 1
    assert (key.value_name is not None) == (key.value_name in taken.column_names)


def test_the_value_behind_a_hash_is_of_the_type_that_keys_are_compared_in() -> None:
    source = stream(x="decimal(10,2)")
    key = KeyColumn(expression=expression("`x`", "x"), type="decimal(22,4)")
    given = pa.array([Decimal("1.25"), None], pa.decimal128(10, 2))
    taken = taken_in(ingest_spec(source, (store(keys=(key,)),)), source, rows(source, x=given))
    assert key.value_name is not None
    assert taken[key.value_name].combine_chunks().equals(pa.array([Decimal("1.2500"), None], pa.decimal128(22, 4)))


@pytest.mark.parametrize(
    ("type_", "given"),
    [
        ("timestamp", pa.array([NOON, None], pa.timestamp("us", "UTC"))),
        ("timestamp", pa.array([NOON, None], pa.timestamp("us", "Etc/UTC"))),
        ("timestamp_ntz", pa.array([NOON, None], HOURS)),
        ("date", pa.array([DAY, None])),
        ("decimal(10,2)", pa.array([Decimal("1.25"), None], pa.decimal128(10, 2))),
        ("string", pa.array(["aß", None])),
        ("binary", pa.array([b"a", None], pa.binary())),
        ("float", pa.array([1.5, None], pa.float32())),
    ],
)
def test_values_are_of_the_type_in_which_spark_hands_them_over(type_: str, given: pa.Array) -> None:
    source = stream(x=type_)
    value = ValueColumn(expression=expression("coalesce(`x`, `x`)", "x"), type=type_)
    found = taken_in(ingest_spec(source, (store(values=(value,)),)), source, rows(source, x=given))[value.name]
    assert found.combine_chunks().equals(given)


@pytest.mark.parametrize("sql", ["ln(`x`) > 1", "power(`x`, 0.5D) > 1", "greatest(`x`, 1D) > 1"])
def test_selections_that_may_differ_from_sparks_in_the_last_bit_take_spark(sql: str) -> None:
    source = stream(x="double")
    assert derivation(ingest_spec(source, (store(selections=(sql,)),)), ["ts", TAU, "x"], (), source) is None


def test_lengths_are_as_wide_as_sparks() -> None:
    source = stream(x="string")
    value = ValueColumn(expression=expression("length(`x`)", "x"), type="int")
    found = taken_in(ingest_spec(source, (store(values=(value,)),)), source, rows(source, x=pa.array(["é", None])))
    assert found[value.name].combine_chunks().equals(pa.array([1, None], pa.int32()))


def test_bits_are_those_of_selections_at_hand_and_of_computed_ones_of_which_null_is_false() -> None:
    source = stream(x="bigint")
    asked = ("`x` < 3", "`x` > 1", "true")
    spec = ingest_spec(source, (store(selections=asked),))
    assert spec.selections == ("(`x` < 3)", "(`x` > 1)", "true")
    held = ("(`x` > 1)", "(`x` > 100)")
    (word,) = word_names(2)
    batch = rows(source, x=pa.array([1, 2, 3, None]))
    batch = batch.append_column(word, pa.array([0b10, 0b01, 0b11, 0b00]))
    assert taken_in(spec, source, batch, held)[word].to_pylist() == [0b101, 0b111, 0b110, 0b100]


def test_what_holds_of_all_rows_at_hand_has_no_word_there() -> None:
    source = stream(x="bigint")
    spec = ingest_spec(source, (store(selections=("`x` > 1", "true")),))
    batch = rows(source, x=pa.array([1, 2]))
    (word,) = word_names(2)
    assert taken_in(spec, source, batch, ("true",))[word].to_pylist() == [0b10, 0b11]


def test_more_selections_than_a_word_has_bits_fill_the_next_one() -> None:
    source = stream(x="bigint")
    asked = tuple(f"`x` = {number}" for number in range(70))
    spec = ingest_spec(source, (store(selections=asked),))
    words = word_names(70)
    found = taken_in(spec, source, rows(source, x=pa.array(range(70))))
    for value in range(70):
        place = spec.selections.index(f"(`x` = {value})")
        assert [found[word][value].as_py() for word in words] == [
            1 << place if place < 63 else 0,
            1 << (place - 63) if place >= 63 else 0,
        ]


@pytest.mark.parametrize("is_held", [True, False])
def test_what_no_index_decides_fills_the_next_word_too(is_held: bool) -> None:
    source = stream(x="bigint")
    asked = tuple(f"CAST(`x` AS STRING) = '{number}'" for number in range(70))
    spec = ingest_spec(source, (store(selections=asked),))
    words = word_names(70)
    batch, held = rows(source, x=pa.array(range(70))), spec.selections[::-1] if is_held else ()
    for word, name in enumerate(words if is_held else ()):
        places = [held.index(f"(CAST(`x` AS STRING) = '{value}')") for value in range(70)]
        batch = batch.append_column(
            name, pa.array([1 << place - 63 * word if place // 63 == word else 0 for place in places])
        )
    found = taken_in(spec, source, batch, held)
    for value in range(70):
        place = spec.selections.index(f"(CAST(`x` AS STRING) = '{value}')")
        assert [found[word][value].as_py() for word in words] == [
            1 << place if place < 63 else 0,
            1 << (place - 63) if place >= 63 else 0,
        ]


def test_many_selections_are_left_to_tasks_with_the_columns_that_they_read() -> None:
    source = stream(x="bigint")
    asked = (*(f"`x` < {number}" for number in range(70)), "`x` + 1 > 5", "true")
    spec = ingest_spec(source, (store(selections=asked),))
    taking = taking_in(spec, source)
    assert taking.handed.selections == ("(`x` + 1 > 5)",)
    assert [name for name, _ in taking.handed.projection] == ["ts", "x", *word_names(2)]
    assert taking.how is not None
    (word,) = word_names(2)
    batch = rows(source, x=pa.array([3, 69, None])).select(["ts", "x"]).append_column(word, pa.array([0, 1, 0]))
    table = pa.Table.from_batches(derived([batch], taking.how))
    assert table.column_names == [name for name, _ in spec.projection]
    for row, value in enumerate((3, 69, None)):
        holding = {f"(`x` < {number})" for number in range(70) if value is not None and value < number} | {"true"}
        holding |= {"(`x` + 1 > 5)"} if value == 69 else set()
        for place, selection in enumerate(spec.selections):
            at, bit = divmod(place, 63)
            found = table[word_names(70)[at]][row].as_py() >> bit & 1
            assert found == (selection in holding), (value, selection)


def test_a_few_selections_are_left_to_spark() -> None:
    source = stream(x="bigint")
    spec = ingest_spec(source, (store(selections=tuple(f"`x` < {number}" for number in range(FEWEST_INDEXED - 1))),))
    assert taking_in(spec, source) == Taking(handed=spec)


def test_a_running_query_that_hands_dead_letters_over_otherwise_cannot_go_on() -> None:
    source = stream(x="bigint")
    spec = ingest_spec(source, (store(),))
    letters = ingest_spec(Stream(name="s", time="ts", schema=source.schema, dead_letter="dead"), (store(),))
    assert derivation_from_running(spec, spec, source) is not None
    assert derivation_from_running(letters, spec, source) is None
