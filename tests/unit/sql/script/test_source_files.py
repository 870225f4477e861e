"""What files say against their declaration: headers in another order, times in nanoseconds, a file for a directory."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plait.sql import check_script

STREAM = (
    "CREATE STREAM s (id BIGINT, name STRING, ts TIMESTAMP) USING csv OPTIONS (path 'in', header 'true'{}) "
    "TIMESTAMP BY ts"
)


def checked(tmp_path: Path, text: str, script: str) -> str:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("id,name,ts\n", encoding="utf-8")
    (tmp_path / "in" / "2.csv").write_text(text, encoding="utf-8")
    return "\n".join(problem.message for problem in check_script(script, base=str(tmp_path)))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name,id,ts\n", "column 1 is 'name' and not 'id'"),
        ("id,name\n", "it has 2 columns and not 3"),
        ("id,name,ts,x\n", "it has 4 columns and not 3"),
        ("id, name,ts\n", "column 2 is ' name' and not 'name' (mind the blanks)"),
        ("1,ann,2024-01-01 00:00:00\n", "column 1 is '1' and not 'id'"),
    ],
)
def test_a_header_that_does_not_fit_is_told_with_file_expected_and_found(tmp_path: Path, text: str, says: str) -> None:
    told = checked(tmp_path, text, STREAM.format(""))
    assert f"the header of '{tmp_path / 'in' / '2.csv'}' is {text.strip().replace(',', ', ')}" in told
    assert "expected the declared columns, id, name, ts" in told
    assert says in told


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("ID,Name,TS\n", ""),
        ("\ufeffid,name,ts\n", ""),
        ('"id","name","ts"\n', ""),
        ("", ""),
        ("id, name , ts\n", ", ignoreLeadingWhiteSpace 'true', ignoreTrailingWhiteSpace 'true'"),
        ("name,id,ts\n", ", enforceSchema 'true'"),
        ("name,id,ts\n", ", ENFORCESCHEMA 'false'"),
    ],
)
def test_a_header_that_fits_or_that_the_user_decided_on_passes(tmp_path: Path, text: str, options: str) -> None:
    assert checked(tmp_path, text, STREAM.format(options)) == ""


def test_headers_are_looked_at_only_where_there_are_some(tmp_path: Path) -> None:
    assert checked(tmp_path, "1,ann,2024-01-01\n", STREAM.replace(", header 'true'", "").format("")) == ""


@pytest.mark.parametrize("columns", ["", "(id BIGINT, ts TIMESTAMP) ", "(id BIGINT, ts TIMESTAMP_NTZ) "])
def test_parquet_times_in_nanoseconds_are_refused_with_a_way_out(tmp_path: Path, columns: str) -> None:
    (tmp_path / "in").mkdir()
    times = pa.array([1_700_000_000_000_000_000], pa.timestamp("ns"))
    pq.write_table(pa.table({"id": [1], "ts": times}), tmp_path / "in" / "1.parquet")
    script = "CREATE STREAM s {}USING parquet OPTIONS (path 'in') TIMESTAMP BY {}"
    (problem,) = check_script(script.format(columns, "ts"), base=str(tmp_path))
    assert "column 'ts' of" in problem.message
    assert "declare it as BIGINT, and write timestamp_micros(ts DIV 1000)" in problem.message
    way_out = script.format("(id BIGINT, ts BIGINT) ", "timestamp_micros(ts DIV 1000)")
    assert check_script(way_out, base=str(tmp_path)) == ()


def test_old_parquet_times_are_no_nanoseconds_to_spark(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    table = pa.table({"id": [1], "ts": pa.array([1_700_000_000_000_000_000], pa.timestamp("ns"))})
    pq.write_table(table, tmp_path / "in" / "1.parquet", use_deprecated_int96_timestamps=True)
    script = "CREATE STREAM s USING parquet OPTIONS (path 'in') TIMESTAMP BY ts"
    assert check_script(script, base=str(tmp_path)) == ()


def test_a_stream_reads_a_directory_and_no_file(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}\n")
    declared = "{} x (ts TIMESTAMP) USING json OPTIONS (path 'a.json')"
    (problem,) = check_script(declared.format("CREATE STREAM") + " TIMESTAMP BY ts", base=str(tmp_path))
    assert "is a file; a stream reads a directory" in problem.message
    assert check_script(declared.format("CREATE TABLE"), base=str(tmp_path)) == ()


@pytest.mark.parametrize(
    ("content", "columns", "says"),
    [
        ('{"ID": 1}\n{"ID": 2}\n', "id INT", "has the field 'ID' and not 'id'"),
        ('no json\n[1]\n{"Id": 1}\n', "ID INT", "declare the column as Id"),
        ('{"ID": 1}\n{"id": 2}\n', "id INT", None),
        ('{"other": 1}\n', "id INT", None),
        ("", "id INT", None),
    ],
)
def test_fields_of_json_are_told_from_columns_by_their_case(
    tmp_path: Path, content: str, columns: str, says: str | None
) -> None:
    (tmp_path / "1.json").write_text(content)
    problems = check_script(f"CREATE TABLE t ({columns}) USING json OPTIONS (path '{tmp_path}');")
    assert [says in problem.message for problem in problems if says] == ([True] if says else [])
    assert len(problems) == (says is not None)
