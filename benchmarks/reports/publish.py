"""`python -m benchmarks publish [DIR]`: keep one run for readers, its data compressed and a page of its figures.

The page is made of the data and of nothing else, so it can be written anew from them alone; a test compares the two.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.reports.compare import read_all
from benchmarks.reports.markdown import short_page
from benchmarks.reports.report import PACKED, pack_reports
from benchmarks.reports.sections import sections

PUBLISHED = Path(__file__).resolve().parents[2] / "docs" / "benchmarks"


def main(arguments: list[str]) -> int:
    """Pack the reports of a directory, if one is named, and write the page; 0. Raises OptionError."""
    options = _arguments(arguments)
    data = options.into / f"reports{PACKED}"
    if options.run is not None:
        pack_reports(read_all(options.run), data)
    (options.into / "README.md").write_text(short_page(sections(read_all(data))), encoding="utf-8")
    return 0


def _arguments(arguments: list[str]) -> argparse.Namespace:
    made = argparse.ArgumentParser(
        prog="python -m benchmarks publish",
        description="Publish a run: all its reports in one compressed file, and a page of their figures. `report` "
        "makes the whole page of that file, with plots, settings and queries.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    made.add_argument(
        "run",
        type=Path,
        nargs="?",
        metavar="DIR",
        help="reports to publish instead of those that are published; without it, only the page is written anew",
    )
    made.add_argument("--into", type=Path, default=PUBLISHED, metavar="DIR", help="where data and page go")
    return made.parse_args(arguments)
