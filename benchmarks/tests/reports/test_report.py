"""Reports on disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.reports.report import read_report, write_report
from benchmarks.tests.sample_reports import full_report
from plait.errors import OptionError


def test_a_report_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "below" / "report.json"
    write_report(full_report(), path)
    assert read_report(path) == full_report()


def test_something_else_is_no_report(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    for text in ("", "[]", "{}"):
        path.write_text(text)
        with pytest.raises(OptionError, match="is no report"):
            read_report(path)
    with pytest.raises(OptionError, match="is no report"):
        read_report(tmp_path / "missing.json")


def test_a_report_of_another_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    write_report(full_report(), path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 0}))
    with pytest.raises(OptionError, match="format 0; this version reads format"):
        read_report(path)
