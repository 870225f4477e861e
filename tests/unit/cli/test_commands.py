"""The commands that need no Spark, and what all commands refuse before they start it."""

from __future__ import annotations

import inspect
import json
import runpy
import sys
from pathlib import Path

import pytest

from plait.cli import execution
from plait.cli.app import app
from plait.cli.execution import Choices, settle
from plait.cli.main import main
from plait.cli.script import read_script_file
from plait.errors import OptionError
from plait.state.manifest import encode
from plait.state.model import Manifest

SOURCES = """CREATE STREAM orders (id BIGINT, o_ts TIMESTAMP) USING mine TIMESTAMP BY o_ts WINDOW INTERVAL 30 SECONDS;
CREATE STREAM items (oid BIGINT, i_ts TIMESTAMP) USING mine TIMESTAMP BY i_ts WINDOW INTERVAL 30 SECONDS;
"""
QUERY = "CREATE QUERY both INTO noop AS SELECT o.id FROM orders o JOIN items i ON o.id = i.oid;\n"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "both.sql"
    file.write_text(SOURCES + QUERY)
    return file


def plait(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["plait", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_check_counts_what_a_sound_script_has(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plait(monkeypatch, "check", str(script)) == 0
    assert capsys.readouterr().out == f"{script}: no mistakes; 2 streams, 0 tables, 1 query\n"


def test_check_warns_of_a_script_that_asks_nothing(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script.write_text(SOURCES)
    assert plait(monkeypatch, "check", str(script)) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{script}: no mistakes; 2 streams, 0 tables, 0 queries\n"
    assert printed.err == "warning: there is no query to run; add one with CREATE QUERY\n"


def test_check_shows_every_mistake_on_standard_error(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script.write_text(SOURCES + QUERY.replace("o.id =", "o.idd =") + "SET plait.strategy = fastest;\n")
    assert plait(monkeypatch, "check", str(script)) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"{script}:3:" in printed.err
    assert f"{script}:4:1: plait.strategy is 'fastest'" in printed.err
    assert printed.err.endswith("plait: 2 mistakes\n")


def test_check_and_explain_do_not_load_spark(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name == "pyspark" or name.startswith("pyspark.")]:
        monkeypatch.delitem(sys.modules, name)
    assert plait(monkeypatch, "check", str(script)) == 0
    assert plait(monkeypatch, "explain", str(script)) == 0
    assert "pyspark" not in sys.modules


def test_explain_is_the_same_twice_and_json_on_request(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = []
    for _ in range(2):
        assert plait(monkeypatch, "explain", str(script), "--parallelism", "4") == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert plait(monkeypatch, "explain", str(script), "--format", "json", "--strategy", "fixed") == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["strategy"] == "fixed"
    assert [store["id"] for store in plan["stores"]] == ["items", "orders"]


def test_explain_takes_strategy_and_partitions_from_the_script_unless_told_otherwise(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = "SET plait.strategy = selectivity;\nSET plait.parallelism = 3;\nSET plait.parallelism.items = 5;\n"
    script.write_text(settings + script.read_text())
    assert plait(monkeypatch, "explain", str(script), "--format", "json") == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["strategy"] == "selectivity"
    assert {store["id"]: store["parallelism"] for store in plan["stores"]} == {"items": 5, "orders": 3}
    assert plait(monkeypatch, "explain", str(script), "--format", "json", "--strategy", "greedy") == 0
    assert json.loads(capsys.readouterr().out)["strategy"] == "greedy"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("explain", "{script}", "--strategy", "fastest"), "unknown strategy 'fastest'; expected one of"),
        (
            ("explain", "{script}", "--format", "pdf"),
            "unknown EXPLAIN format 'pdf'; expected one of text, json, mermaid",
        ),
        (("run", "{script}", "--strategy", "fastest"), "plait.strategy is 'fastest'; expected"),
        (("run", "{script}", "--trigger", "soon"), "plait.trigger is 'soon'; expected a duration"),
        (("run", "{script}", "--conf", "spark.memory"), "'spark.memory' is not a setting; expected key=value"),
        (("run", "{script}", "--conf", "plait.speed=9"), "'plait.speed' is not an option"),
        (("run", "{script}/none.sql"), "cannot be read"),
        (("check", "nowhere.sql"), "there is no file 'nowhere.sql'"),
        (("check", "{folder}"), "cannot be read"),
        (("demo", "--from", "2014-01-01"), "the flights are those of 2013"),
        (("demo", "--from", "yesterday"), "Invalid value"),
        (("demo", "--days", "0"), "Invalid value"),
        (("run",), "Missing argument"),
        (("fly",), "No such command"),
    ],
)
def test_wrong_arguments_end_with_status_2_and_say_what_is_wrong(
    arguments: tuple[str, ...],
    message: str,
    script: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = [argument.format(script=script, folder=script.parent) for argument in arguments]
    assert plait(monkeypatch, *given) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert "Traceback" not in printed.err


def test_a_script_that_is_not_text_is_refused(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script.write_bytes(b"SELECT \xff")
    assert plait(monkeypatch, "check", str(script)) == 2
    assert "not UTF-8 text (byte 7)" in capsys.readouterr().err


def test_version_is_printed_alone(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert plait(monkeypatch, "--version") == 0
    assert capsys.readouterr().out.split()[0] == "plait"


def test_the_command_line_wins_over_the_script_and_the_script_over_the_defaults(script: Path) -> None:
    script.write_text(
        "SET plait.strategy = fixed;\nSET plait.trigger = '5 seconds';\nSET spark.executor.memory = '2g';\n"
        "SET spark.master = 'local[3]';\n" + script.read_text()
    )
    text = read_script_file(script)
    said = settle(text, Choices())
    assert (said.strategy, said.trigger, said.master) == ("fixed", "5 seconds", "local[3]")
    assert dict(said.conf)["spark.executor.memory"] == "2g"
    told = settle(
        text,
        Choices(strategy="greedy", trigger="1 minute", master="local", conf=("spark.executor.memory=4g",)),
    )
    assert (told.strategy, told.trigger, told.master) == ("greedy", "1 minute", "local")
    assert dict(told.conf)["spark.executor.memory"] == "4g"
    assert settle(text, Choices(available_now=True, trigger="1 minute")).trigger is None
    assert [settle(text, Choices(available_now=True, close=close)).closes for close in (True, False)] == [True, False]
    with pytest.raises(OptionError, match="write --available-now --close"):
        settle(text, Choices(close=True))


def test_the_checkpoint_is_beside_the_script_unless_told_otherwise(script: Path) -> None:
    text = read_script_file(script)
    assert settle(text, Choices()).checkpoint == str(script.parent / "both.checkpoint")
    assert settle(text, Choices(checkpoint="elsewhere")).checkpoint == "elsewhere"


@pytest.mark.parametrize("setting", ["spark.memory", "=4g", ""])
def test_a_setting_needs_key_and_value(setting: str) -> None:
    with pytest.raises(OptionError, match="expected key=value"):
        execution.read_setting(setting)


def test_help_breaks_lines_between_sentences_only() -> None:
    # Behind the first paragraph the command line keeps the line breaks of a docstring.
    for command in app.registered_commands:
        assert command.callback is not None
        for paragraph in inspect.getdoc(command.callback).split("\n\n")[1:]:  # type: ignore[union-attr]
            assert all(line.endswith(".") for line in paragraph.splitlines()), paragraph


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("run", "such as spark.driver.memory=4g"),
        ("run", "as soon as a batch is done"),
        ("run", "such as local[4]"),
        ("check", "A script of CREATE STREAM"),
        ("advise", "such as 10000"),
        ("demo", "Default: 2013-01-28."),
    ],
)
def test_help_says_what_a_value_looks_like(
    command: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plait(monkeypatch, command, "--help") == 0
    assert said in " ".join(capsys.readouterr().out.replace("│", " ").split())


def test_python_runs_the_package_as_the_command(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["plait", "check", str(script)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("plait", run_name="__main__")
    assert not ended.value.code
    assert "no mistakes" in capsys.readouterr().out


def test_a_checkpoint_whose_input_has_ended_is_refused_before_spark_starts(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(execution, "opened_session", lambda *_, **__: pytest.fail("Spark is started"))
    folder = script.parent / "both.checkpoint" / "plait" / "manifests"
    folder.mkdir(parents=True)
    (folder / "3.json").write_bytes(encode(Manifest(batch=3, watermark_us=None, plan="1-a", ended=True)))
    assert plait(monkeypatch, "run", str(script), "--available-now") == 2
    assert "has ended: it was run with --close" in capsys.readouterr().err


def test_who_writes_into_memory_is_told_that_nobody_can_read_it(script: Path) -> None:
    script.write_text(script.read_text() + QUERY.replace("both INTO noop", "other INTO memory"))
    text = read_script_file(script)
    told = execution._described(settle(text, Choices()), text.load()).warnings
    assert [each.split(",")[0] for each in told] == ["query 'other' goes INTO memory"]
