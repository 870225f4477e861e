"""Types as sinks see them."""

import pytest

from plait.sinks.storable import (
    Array,
    Atomic,
    Map,
    SparkType,
    Struct,
    csv_problem,
    is_same_in_arrow,
    json_problem,
    memory_problem,
    parquet_problem,
    spark_type_of,
)

INT, TEXT = Atomic("int"), Atomic("string")


@pytest.mark.parametrize(
    ("ddl", "type_"),
    [
        ("decimal(10,2)", Atomic("decimal(10,2)")),
        ("interval year to month", Atomic("interval year to month")),
        ("array<map<string,decimal(3,1)>>", Array(Map(TEXT, Atomic("decimal(3,1)")))),
        ("struct<a:int,`b:c,<`:array<string>>", Struct((("a", INT), ("b:c,<", Array(TEXT))))),
        ("struct<`x``y`:int>", Struct((("x`y", INT),))),
        ("struct<>", Struct(())),
        ("struct<a b:int,c:d:int>", None),
        ("array<int", None),
    ],
)
def test_ddl_is_read_as_far_as_it_is_clear(ddl: str, type_: SparkType | None) -> None:
    assert spark_type_of(ddl) == type_


@pytest.mark.parametrize(
    ("ddl", "refusing"),
    [
        ("bigint", ""),
        ("decimal(38,18)", ""),
        ("timestamp_ntz", ""),
        ("string collate unicode_ci", ""),
        ("interval day to second", ""),
        ("interval year to month", "memory"),
        ("interval month", "memory"),
        ("interval", "csv json parquet memory"),
        ("void", "csv"),
        ("binary", "csv"),
        ("variant", "csv memory"),
        ("array<variant>", "csv memory"),
        ("time(6)", "csv json parquet"),
        ("geometry(0)", "csv json parquet memory"),
        ("array<int>", "csv"),
        ("array<void>", "csv"),
        ("map<void,void>", "csv memory"),
        ("map<int,string>", "csv"),
        ("map<struct<x:int>,int>", "csv json"),
        ("struct<a:int,b:string>", "csv"),
        ("struct<>", "csv json parquet"),
        ("struct<id:int,id:int>", "csv json parquet memory"),
        ("array<struct<id:int,ID:int>>", "csv json parquet"),
        ("array<interval year>", "csv memory"),
        ("map<string,array<interval>>", "csv json parquet memory"),
    ],
)
def test_each_sink_refuses_the_types_it_cannot_give_back(ddl: str, refusing: str) -> None:
    problems = {"csv": csv_problem, "json": json_problem, "parquet": parquet_problem, "memory": memory_problem}
    type_ = spark_type_of(ddl)
    assert type_ is not None
    assert {name for name, problem in problems.items() if problem(type_) is not None} == set(refusing.split())


@pytest.mark.parametrize(
    ("ddl", "same"),
    [
        ("array<struct<a:decimal(3,2),b:map<string,timestamp>>>", True),
        ("variant", False),
        ("interval day", False),
        ("array<void>", False),
        ("string collate unicode_ci", False),
        ("struct<id:int,id:int>", False),
        ("struct<>", False),
    ],
)
def test_only_what_arrow_has_too_is_written_without_spark(ddl: str, same: bool) -> None:
    type_ = spark_type_of(ddl)
    assert type_ is not None
    assert is_same_in_arrow(type_) == same
