"""Messages and exit statuses."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from plait.cli.exit_status import report
from plait.cli.script import ScriptError
from plait.errors import CheckpointError, InvalidPlanError, OptionError, SinkError, SqlError, UnsupportedQueryError


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (SqlError("no such column"), 2),
        (UnsupportedQueryError("outer join"), 2),
        (OptionError("unknown strategy"), 2),
        (CheckpointError("of another version"), 1),
        (SinkError("disk full"), 1),
        (InvalidPlanError("probe of an unknown store"), 1),
        (RuntimeError("broken"), 1),
        (KeyboardInterrupt(), 130),
    ],
)
def test_only_what_the_user_can_mend_gives_status_2(error: BaseException, status: int) -> None:
    assert report(error, io.StringIO()) == status


def test_a_mistake_is_shown_with_its_line_and_a_caret_below_its_column(tmp_path: Path) -> None:
    script = tmp_path / "late.sql"
    script.write_text("SELECT 1;\n\tSELECT o.qty FROM orders o;\n")
    out = io.StringIO()
    report(SqlError("no column 'qty'", line=2, column=11, file=str(script)), out)
    assert out.getvalue().splitlines() == [
        f"plait: {script}:2:11: no column 'qty'",
        "    2 | \tSELECT o.qty FROM orders o;",
        "      | \t         ^",
    ]


@pytest.mark.parametrize(("line", "column"), [(99, 1), (None, None)])
def test_a_place_outside_the_file_gives_the_message_alone(tmp_path: Path, line: int | None, column: int | None) -> None:
    script = tmp_path / "late.sql"
    script.write_text("SELECT 1;\n")
    out = io.StringIO()
    report(SqlError("wrong", line=line, column=column, file=str(script)), out)
    assert len(out.getvalue().splitlines()) == 1


def test_all_mistakes_of_a_script_are_listed() -> None:
    out = io.StringIO()
    mistakes = (SqlError("a", line=2, column=5), SqlError("b", line=9, column=1))
    assert report(ScriptError(mistakes), out) == 2
    assert out.getvalue().splitlines() == ["2:5: a", "9:1: b", "plait: 2 mistakes"]


def test_an_unexpected_error_is_one_line_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLAIT_DEBUG", raising=False)
    out = io.StringIO()
    report(ValueError("first\n  at org.apache.spark\n  at scala"), out)
    assert (
        out.getvalue()
        == "plait: unexpected ValueError: first. Run again with PLAIT_DEBUG=1 to see where it came from.\n"
    )


def test_debug_shows_the_traceback_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_DEBUG", "1")
    out = io.StringIO()
    try:
        raise ValueError("first")
    except ValueError as error:
        report(error, out)
    assert "Traceback" in out.getvalue()
    assert "test_exit_status.py" in out.getvalue()
