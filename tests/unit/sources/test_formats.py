"""What is known of source formats without Spark."""

from plait.sources import FORMATS, format_of, format_problem


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
