"""Options of sinks, and the columns directories are named after."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait import sinks
from plait.errors import OptionError
from plait.query.model import SinkSpec
from plait.sinks.files import partition_columns, partition_problem
from plait.sinks.kinds import KINDS
from plait.sinks.storable import Array, Atomic, SparkType

TEXT = Atomic("string")


def problems(format_: str, *options: tuple[str, str]) -> list[str]:
    kind = next(kind for name, kind in KINDS.items() if name == format_)
    return [found.message for found in kind.problems(SinkSpec(format=format_, options=options))]


@pytest.mark.parametrize(
    ("format_", "option", "says"),
    [
        ("csv", ("haeder", "true"), "did you mean 'header'"),
        ("csv", ("header", "yes"), "'yes'; expected true or false"),
        ("csv", ("inferSchema", "true"), "would have no effect"),
        ("json", ("header", "true"), "would have no effect"),
        ("json", ("compression", "brotli"), "expected none, uncompressed"),
        ("parquet", ("sep", ";"), "would have no effect"),
        ("parquet", ("mode", "overwrite"), "write existing 'append' or existing 'overwrite'"),
        ("parquet", ("existing", "replace"), "expected append or overwrite"),
        ("parquet", ("maxRecordsPerFile", "0"), "expected a whole number above zero"),
        ("json", ("PATH", "elsewhere"), "given twice"),
        ("json", ("checkpointLocation", "x"), "--checkpoint"),
    ],
)
def test_an_option_without_effect_or_with_an_impossible_value_is_refused(
    format_: str, option: tuple[str, str], says: str
) -> None:
    (message,) = problems(format_, ("path", "out"), option)
    assert says in message


@pytest.mark.parametrize("format_", ["memory", "noop", "foreach", "foreach_arrow"])
def test_sinks_without_options_take_none(format_: str) -> None:
    (message,) = problems(format_, ("rows", "5"))
    assert message.endswith("; it takes none")


@pytest.mark.parametrize(
    ("format_", "options"),
    [
        ("csv", {"HEADER": "True", "sep": ";", "compression": "GZIP", "maxRecordsPerFile": "10"}),
        ("json", {"ignoreNullFields": "false", "timestampFormat": "yyyy"}),
        ("parquet", {"parquet.bloom.filter.enabled#id": "true", "compression": "zstd"}),
        ("console", {"rows": "5"}),
    ],
)
def test_options_of_sparks_writers_are_known_whatever_their_case(format_: str, options: dict[str, str]) -> None:
    path = {} if format_ == "console" else {"path": "out"}
    assert problems(format_, *{**path, **options}.items()) == []


def test_python_values_become_what_a_script_would_say(tmp_path: Path) -> None:
    spec = sinks.csv(tmp_path / "out", header=True, nullValue=None, partitionBy=["a", "b,`c"], existing="append").spec
    assert spec.options == (
        ("path", str(tmp_path / "out")),
        ("header", "true"),
        ("partitionBy", "`a`, `b,``c`"),
        ("existing", "append"),
    )
    assert partition_columns("`a`, `b,``c`") == ("a", "b,`c")
    with pytest.raises(OptionError, match=r"plait.sinks.json: json needs the path to write to"):
        sinks.json("")


@pytest.mark.parametrize("value", ["", ",", "a,,b", "a b,", "a, b,", "`a", "a,A"])
def test_a_list_of_columns_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="partitionBy"):
        partition_columns(value)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("REGION", None),
        ("`region` , day", None),
        ("regoin", "did you mean 'region'"),
        ("tags", "has type array<string>"),
        ("raw", "has type binary"),
        ("region,day,tags,raw", "has type"),
    ],
)
def test_partition_columns_are_columns_that_can_name_a_directory(value: str, says: str | None) -> None:
    columns: list[tuple[str | None, SparkType | None]] = [
        ("region", TEXT),
        ("day", Atomic("date")),
        ("tags", Array(TEXT)),
        ("raw", Atomic("binary")),
    ]
    message = partition_problem(value, columns)
    assert (message is None) if says is None else (says in str(message))


def test_what_only_spark_can_tell_is_left_to_it() -> None:
    assert partition_problem("total", [("id", TEXT), (None, None)]) is None
    assert "leave one out" in str(partition_problem("id, day", [("id", None), ("day", None)]))
