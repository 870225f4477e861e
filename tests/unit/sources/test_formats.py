"""What is known of source formats without Spark."""

import pytest

from plait.query.model import Column
from plait.sources import FORMATS, column_problem, format_of, format_problem
from plait.sources.options import reader_option_problem


def test_formats_are_found_however_they_are_written() -> None:
    assert format_of("Parquet").reads_files
    assert format_of("BINARYFILE") is FORMATS["binaryfile"]
    assert format_of("com.example.Source").columns is None


def test_a_slip_is_told_from_a_connector() -> None:
    assert "did you mean 'parquet'" in str(format_problem("parqet", is_stream=True))
    assert format_problem("com.example.parqet", is_stream=True) is None
    assert format_problem("iceberg", is_stream=True) is None


def test_what_only_streams_can_be_is_refused_as_a_table() -> None:
    assert "use CREATE STREAM" in str(format_problem("rate", is_stream=False))
    assert format_problem("rate", is_stream=True) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("maxBytesPerTrigger", "1000000000000"),
        ("maxFileAge", "7d"),
        ("maxFileAge", "90"),
        ("quote", ""),
        ("quote", "'"),
        ("sep", " "),
        ("delimiter", "||"),
        ("encoding", "ISO-8859-1"),
        ("discardCachedInputRatio", "0.25"),
        ("maxCharsPerColumn", "-1"),
        ("unescapedQuoteHandling", "RAISE_ERROR"),
    ],
)
def test_what_spark_takes_for_an_option_is_taken(name: str, value: str) -> None:
    assert reader_option_problem("csv", name, value, is_stream=True) is None


@pytest.mark.parametrize(
    ("format_", "type_"),
    [
        ("json", "void"),
        ("json", "map<string,struct<a:int,b:map<string,int>>>"),
        ("parquet", "map<int,decimal(10,2)>"),
        ("parquet", "struct<a:int,b:struct<a:int>,c:struct<a:int>>"),
        ("parquet", "struct<`a b`:decimal(10,2),`a,b`:int,`a:b`:int>"),
        ("iceberg", "interval"),
    ],
)
def test_types_that_files_can_have_are_taken(format_: str, type_: str) -> None:
    assert column_problem(format_, Column(name="x", type=type_)) is None
