"""The tables of a report for a terminal: those of the page, drawn with Rich."""

from __future__ import annotations

from collections.abc import Iterator

from rich.markup import escape
from rich.table import Table

from benchmarks.reports.grid import Cell, Grid
from benchmarks.reports.report import Report
from benchmarks.reports.sections import sections
from benchmarks.reports.tables import case_grid, section_grids

_SHOWN_LINES = 4
"""Of what a system said, the last lines: the first are often where in its code it said so."""


def console_tables(report: Report) -> Iterator[Table]:
    """Yield a table for each case that anybody has a time for, then those of live streams, and of what is missing."""
    for section in sections((report,)):
        cases = (case_grid(section, case) for case in section.cases)
        yield from (_table(grid) for grid in cases if grid is not None)
        yield from map(_table, section_grids(section))


def _table(grid: Grid) -> Table:
    made = Table(title=grid.caption, title_justify="left")
    for place, name in enumerate(grid.columns):
        made.add_column(escape(name), justify="left" if place in grid.texts else "right", overflow="fold")
    for cells in grid.rows:
        made.add_row(*map(_cell, cells))
    return made


def _cell(cell: Cell) -> str:
    text = escape("\n".join(cell.text.splitlines()[-_SHOWN_LINES:]) if cell.is_code else cell.text)
    if cell.is_bad:
        text = f"[bold red]{text}[/]"
    return f"{text} [dim]{escape(cell.note)}[/]" if cell.note else text
