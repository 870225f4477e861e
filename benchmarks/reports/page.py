"""`python -m benchmarks report FILE...`: one page, and Markdown, of what runs of the suite found."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.reports.compare import read_all
from benchmarks.reports.html import html_page
from benchmarks.reports.markdown import markdown_page
from benchmarks.reports.plots import plots
from benchmarks.reports.sections import sections
from plait.errors import OptionError


def main(arguments: list[str]) -> int:
    """Write what was asked for; 0. Raises OptionError."""
    options = _arguments(arguments)
    if options.html is None and options.markdown is None:
        raise OptionError("nothing to write: expected --html FILE, --markdown FILE, or both")
    found = sections(read_all(*options.reports))
    drawn = {section.workload: plots(section) for section in found}
    if options.html is not None:
        _write(options.html, html_page(found, drawn))
    if options.markdown is not None:
        folder = options.markdown.with_name(f"{options.markdown.stem}-plots")
        for plot in (plot for group in drawn.values() for plot in group):
            _write(folder / f"{plot.name}.svg", plot.svg)
        _write(options.markdown, markdown_page(found, drawn, folder.name))
    return 0


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _arguments(arguments: list[str]) -> argparse.Namespace:
    made = argparse.ArgumentParser(
        prog="python -m benchmarks report",
        description="Make a page of reports: one HTML file that needs nothing else, or Markdown with its plots in a "
        "folder beside it. Several reports of one workload are shown side by side.",
    )
    made.add_argument(
        "reports",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="what `python -m benchmarks WORKLOAD --json` wrote, or directories",
    )
    made.add_argument("--html", type=Path, metavar="FILE", help="write one HTML page there")
    made.add_argument("--markdown", type=Path, metavar="FILE", help="write Markdown there")
    return made.parse_args(arguments)
