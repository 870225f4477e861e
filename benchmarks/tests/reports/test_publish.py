"""The published run: its page says what its data say."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.reports.compare import read_all
from benchmarks.reports.publish import PUBLISHED, main
from benchmarks.reports.report import FORMAT, pack_reports, read_reports, write_report
from benchmarks.tests.sample_reports import full_report, report
from benchmarks.workloads.listed import NAMES
from plait.errors import OptionError


def test_the_published_page_is_the_one_its_data_make(tmp_path: Path) -> None:
    (data,) = PUBLISHED.glob("*.json.xz")
    (tmp_path / data.name).write_bytes(data.read_bytes())
    assert main(["--into", str(tmp_path)]) == 0
    assert (tmp_path / "README.md").read_text() == (PUBLISHED / "README.md").read_text()


def test_the_published_run_has_every_workload() -> None:
    assert {each.workload for each in read_all(PUBLISHED)} == set(NAMES)


def test_packed_reports_are_read_as_they_were_and_packed_the_same_again(tmp_path: Path) -> None:
    made = (report(), full_report())
    pack_reports(made, tmp_path / "a.json.xz")
    assert read_reports(tmp_path / "a.json.xz") == made
    pack_reports(read_reports(tmp_path / "a.json.xz"), tmp_path / "b.json.xz")
    assert (tmp_path / "a.json.xz").read_bytes() == (tmp_path / "b.json.xz").read_bytes()


def test_a_run_that_is_published_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    write_report(report(), tmp_path / "run" / "three-way.json")
    pack_reports((full_report(),), tmp_path / "reports.json.xz")
    assert main([str(tmp_path / "run"), "--into", str(tmp_path)]) == 0
    assert read_reports(tmp_path / "reports.json.xz") == (report(),)


def test_a_damaged_file_and_one_of_another_format_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = tmp_path / "a.json.xz"
    pack_reports((report(),), packed)
    monkeypatch.setattr("benchmarks.reports.report.FORMAT", FORMAT + 1)
    with pytest.raises(OptionError, match=f"has format {FORMAT}; this version reads format {FORMAT + 1}"):
        read_reports(packed)
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(OptionError, match="is no report"):
        read_reports(packed)
