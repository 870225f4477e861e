"""What a program passes wrongly is refused with what was found and what was expected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait
from plait import arguments, sinks
from plait.errors import OptionError
from plait.runtime.inputs.opening import read_by, schema_columns
from tests.property.standin.session import Session


def test_numbers_of_numpy_are_numbers_and_true_is_none() -> None:
    taken = [arguments.number(value) for value in (np.int64(3), np.float64(0.5), 3, None, True, np.bool_(True), "x")]
    assert taken == [3, 0.5, 3, None, "True", "True", "x"]
    assert [type(value) for value in taken[:2]] == [int, float]


def test_paths_become_absolute_and_uris_stay(tmp_path: Path) -> None:
    assert arguments.path("x", "path", tmp_path / "in") == str(tmp_path / "in")
    assert arguments.path("x", "path", "in") == str(Path("in").absolute())
    assert arguments.path("x", "path", "s3://b/in") == "s3://b/in"


@pytest.mark.parametrize("value", [None, 5, True, b"x", ["x"], {"x": 1}, object(), " "])
@pytest.mark.parametrize("sink", [sinks.parquet, sinks.csv, sinks.json])
def test_a_sink_is_not_written_to_what_is_no_path(sink: Callable[[Any], object], value: object) -> None:
    with pytest.raises(OptionError, match=r"plait\.sinks\.\w+: path is .*; expected a path or URI"):
        sink(value)


@pytest.mark.parametrize("value", [b"x", {}, object(), [5], ("a", None)])
def test_an_option_of_a_sink_is_a_text_a_number_or_names(value: object) -> None:
    with pytest.raises(OptionError, match=r"plait\.sinks\.csv: option 'partitionBy' is .*; expected a text, a number"):
        sinks.csv("out", partitionBy=value)


@pytest.mark.parametrize("value", [None, 5, "print", {}])
def test_foreach_wants_a_function(value: Any) -> None:
    with pytest.raises(OptionError, match=r"plait\.sinks\.foreach: expected a function of a DataFrame .*, found"):
        sinks.foreach(value)


@pytest.mark.parametrize("value", [5, ["id BIGINT"], {"id": "BIGINT"}, b"id BIGINT"])
def test_a_schema_is_ddl_or_a_struct(value: Any) -> None:
    with pytest.raises(OptionError, match=r"schema is .*; expected Spark DDL such as 'id BIGINT, ts TIMESTAMP'"):
        schema_columns(value)


@pytest.mark.parametrize(
    ("name", "argument"),
    [("idle", "idle"), ("deadletter", "dead_letter"), ("KEEP", "keep"), ("distinct.id", "distinct={column: number}")],
)
def test_an_option_of_plaits_own_is_an_argument_in_python(name: str, argument: str) -> None:
    with pytest.raises(OptionError) as caught:
        read_by("s", "parquet", {"path": "in", name: "5 seconds"})
    assert f"option '{name}' is one of Plait's, which a program gives as the argument {argument}" in str(caught.value)


@pytest.fixture
def engine(tmp_path: Path) -> plait.Engine:
    return plait.Engine(Session(), checkpoint=str(tmp_path / "checkpoint"))  # type: ignore[arg-type]


WRONG: dict[str, tuple[Callable[[Any], object], str]] = {
    "name": (
        lambda engine: engine.stream(5, format="parquet", options={"path": "in"}, time="ts"),
        r"Engine\.stream: name is int 5; expected a text such as 'orders'",
    ),
    "time": (
        lambda engine: engine.stream("a", format="parquet", options={"path": "in"}, time=None),
        "stream 'a': time is None; expected a text such as 'ts'",
    ),
    "dead letters": (
        lambda engine: engine.stream("a", format="parquet", time="ts", dead_letter=5),
        "stream 'a': dead_letter is int 5; expected a path or URI",
    ),
    "options": (
        lambda engine: engine.stream("a", format="parquet", options="in", time="ts"),
        "stream 'a': options is str 'in'; expected a dictionary such as {'path': 'in/orders'}",
    ),
    "value of an option": (
        lambda engine: engine.stream("a", format="parquet", options={"path": ["in"]}, time="ts"),
        r"option 'path' is list \['in'\]; expected a text, a number, True or False",
    ),
    "no value of an option": (
        lambda engine: engine.stream("a", format="parquet", options={"path": None}, time="ts"),
        "parquet needs the path of what to read",
    ),
    "format": (
        lambda engine: engine.stream("a", format=5, options={"path": "in"}, time="ts"),
        "stream 'a': format is int 5; expected a text such as 'parquet'",
    ),
    "distinct": (
        lambda engine: engine.stream("a", format="parquet", options={"path": "in"}, time="ts", distinct={5: 5}),
        "stream 'a': distinct has the key 5; expected texts such as in {'customer': 500}",
    ),
    "table": (lambda engine: engine.table(None, None), r"Engine\.table: name is None; expected a text"),
    "query": (
        lambda engine: engine.query(5, "SELECT", sink=sinks.noop()),
        r"Engine\.query: name is int 5; expected a text such as 'late'",
    ),
    "select": (
        lambda engine: engine.query("q", None, sink=sinks.noop()),
        "query 'q': select is None; expected a text such as 'SELECT",
    ),
    "windows": (
        lambda engine: engine.query("q", "SELECT 1", sink=sinks.noop(), windows="10 seconds"),
        "query 'q': windows is str '10 seconds'; expected a dictionary such as {'o': '10 seconds'}",
    ),
    "predicate": (lambda engine: engine.predicate(5, len), r"Engine\.predicate: name is int 5; expected a text"),
    "drop": (lambda engine: engine.drop(["q"]), r"Engine\.drop: name is list \['q'\]; expected a text"),
    "load": (lambda engine: engine.load("shop.sql"), r"expected a script, found str 'shop\.sql'; Engine\.load takes"),
    "option": (lambda engine: engine.set_option(None, 5), "expected the name of an option"),
    "trigger": (lambda engine: engine.start(5), r"plait\.trigger is '5'; expected a duration"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_declaration_that_is_none_is_refused(engine: plait.Engine, what: str) -> None:
    declare, message = WRONG[what]
    with pytest.raises(OptionError, match=message):
        declare(engine)


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("checkpoint", None, "Engine: checkpoint is None; expected a path or URI"),
        ("checkpoint", "", "Engine: checkpoint is str ''; expected a path or URI"),
        ("listener", 5, "Engine: listener is int 5; expected a function of a batch's event"),
        ("clock", "now", "Engine: clock is str 'now'; expected a function such as time.time"),
        ("parallelism", "many", r"plait\.parallelism is 'many'; expected a whole number"),
    ],
)
def test_an_engine_is_not_made_of_anything_else(tmp_path: Path, argument: str, value: Any, message: str) -> None:
    given: dict[str, Any] = {"checkpoint": str(tmp_path), argument: value}
    with pytest.raises(OptionError, match=message):
        plait.Engine(Session(), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [7, ["a", None], [["a"]], None])
def test_what_is_no_name_is_refused(value: object) -> None:
    with pytest.raises(OptionError, match=r"explain: queries has .*; expected a name or several, such as"):
        arguments.names("explain", "queries", value)
