"""A table, whatever it is written as: HTML and Markdown show the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from benchmarks.reports.figures import DASH


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Text, and less important text after it. `is_bad`: to be seen at once; `is_code`: a program's own words."""

    text: str
    note: str = ""
    is_bad: bool = False
    is_code: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table. The first column says what a row is about; `texts`: the columns that are no figures, from 0."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    texts: frozenset[int] = frozenset({0})


def row(*values: str | Cell) -> tuple[Cell, ...]:
    """Return a row of texts and cells."""
    return tuple(value if isinstance(value, Cell) else Cell(text=value) for value in values)


def as_html(grid: Grid) -> str:
    """Return a table that scrolls by itself where the page is narrow."""
    head = "".join(
        f'<th scope="col"{_side(place, grid)}>{escape(name)}</th>' for place, name in enumerate(grid.columns)
    )
    body = "\n".join(f"<tr>{_html_row(cells, grid)}</tr>" for cells in grid.rows)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(grid.caption)}"><table>'
        f"<caption>{escape(grid.caption)}</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>"
        "</table></div>"
    )


def _html_row(cells: Sequence[Cell], grid: Grid) -> str:
    made = []
    for place, cell in enumerate(cells):
        tag, scope = ("th", ' scope="row"') if place == 0 else ("td", "")
        made.append(f"<{tag}{scope}{_side(place, grid)}>{_html_cell(cell)}</{tag}>")
    return "".join(made)


def _side(place: int, grid: Grid) -> str:
    return ' class="text"' if place in grid.texts else ""


def _html_cell(cell: Cell) -> str:
    text = escape(cell.text)
    if cell.is_code:
        text = f"<code>{text}</code>"
    if cell.is_bad:
        text = f'<strong class="bad">{text}</strong>'
    return f'{text}<span class="note">{escape(cell.note)}</span>' if cell.note else text


def as_markdown(grid: Grid) -> str:
    """Return a table in the Markdown that code hosts read."""
    sides = ("---" if place in grid.texts else "---:" for place in range(len(grid.columns)))
    lines = [
        "| " + " | ".join(map(plain, grid.columns)) + " |",
        "| " + " | ".join(sides) + " |",
        *("| " + " | ".join(map(_markdown_cell, cells)) + " |" for cells in grid.rows),
    ]
    return f"*{plain(grid.caption)}*\n\n" + "\n".join(lines) + "\n"


def _markdown_cell(cell: Cell) -> str:
    text = plain(cell.text) or DASH
    if cell.is_bad:
        text = f"**{text}**"
    return f"{text} ({plain(cell.note)})" if cell.note else text


def plain(text: str) -> str:
    """Return text that Markdown takes for nothing else, on one line."""
    for mark in ("\\", "|", "*", "_", "`", "#", "[", "]"):
        text = text.replace(mark, f"\\{mark}")
    return " ".join(escape(text, quote=False).split())
