"""The page as one HTML file that needs nothing else: no script, no font, no address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from benchmarks.reports.behind import standings
from benchmarks.reports.grid import as_html
from benchmarks.reports.plots import Plot, inline
from benchmarks.reports.prose import (
    METHOD,
    PEERS,
    RUNS,
    SUMMARY,
    TITLE,
    anchor,
    behind_grids,
    questions,
    runs_grid,
    surroundings_grid,
    wrong_results,
)
from benchmarks.reports.sections import Section
from benchmarks.reports.tables import case_grid, rate_grid, section_grids, settings_grid, standings_grid

_OPEN_CASES = 3
"""A workload with more cases has their tables folded."""

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1b1b1b; background: #fff; margin: 0 auto; max-width: 76rem;
  padding: 1rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; margin: 1rem 0 0.5rem; }
h2 { font-size: 1.4rem; margin: 2.5rem 0 0.5rem; padding-top: 0.75rem; border-top: 2px solid #ddd; }
p, figcaption { max-width: 50rem; }
nav ul { display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; list-style: none; padding: 0; }
a { color: #0b57a4; }
.scroll { overflow-x: auto; margin: 0.75rem 0; }
.scroll:focus-visible { outline: 2px solid #0b57a4; }
table { border-collapse: collapse; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: #444; padding-bottom: 0.35rem; }
th, td { border-bottom: 1px solid #ddd; padding: 0.3rem 0.7rem; text-align: right; vertical-align: top;
  white-space: nowrap; }
th.text, td.text { text-align: left; white-space: normal; }
td.text { min-width: 7rem; max-width: 34rem; overflow-wrap: anywhere; }
thead th { border-bottom: 2px solid #888; vertical-align: bottom; }
tbody th { font-weight: 600; }
th.text:first-child { min-width: 10rem; }
tbody tr:hover { background: #f4f7fa; }
.note { display: block; color: #595959; font-size: 0.8rem; font-weight: 400; max-width: 22rem; }
td .note { margin-left: auto; white-space: normal; }
td.text .note { margin-left: 0; }
.bad { color: #b00020; }
.alarm { border: 3px solid #b00020; background: #fdecee; padding: 0.5rem 1.25rem; margin: 1rem 0; }
.alarm h2 { color: #b00020; border: 0; margin: 0.25rem 0; padding: 0; }
code, pre { font: 0.85rem/1.4 ui-monospace, monospace; }
td code { white-space: pre-wrap; }
pre { overflow-x: auto; background: #f6f6f6; padding: 0.75rem; }
figure { margin: 1.5rem 0; }
figure svg { max-width: 100%; height: auto; min-width: 34rem; }
figcaption { color: #444; font-size: 0.9rem; }
details { margin: 0.5rem 0; }
summary { cursor: pointer; padding: 0.15rem 0; }
@media print { .scroll { overflow: visible; } body { max-width: none; } }
"""


def html_page(found: Sequence[Section], drawn: Mapping[str, Sequence[Plot]]) -> str:
    """Return the page."""
    body = "\n".join((*_top(found), *(line for each in found for line in _section(each, drawn[each.workload]))))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(TITLE)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
        "</body>\n</html>\n"
    )


def _top(found: Sequence[Section]) -> Iterator[str]:
    reports = [report for section in found for report in section.reports]
    yield f"<h1>{escape(TITLE)}</h1>"
    yield f"<p>{escape('; '.join(dict.fromkeys(map(anchor, reports))))}</p>" if len(reports) <= _OPEN_CASES else ""
    wrong = wrong_results(found)
    if wrong:
        items = "".join(f"<li>{escape(text)}</li>" for text in wrong)
        yield f'<div class="alarm" role="alert"><h2>WRONG RESULTS</h2><ul>{items}</ul></div>'
    for heading, said, grid in behind_grids(found):
        yield f"<h2>{escape(heading)}</h2>\n<p>{escape(said)}</p>"
        yield as_html(grid) if grid is not None else ""
    yield f"<p>{escape(PEERS)}</p>"
    yield f"<p>{escape(METHOD)}</p>"
    yield f"<h2>{escape(SUMMARY)}</h2>"
    yield as_html(standings_grid(standings(found)))
    yield f"<h2>{escape(RUNS)}</h2>"
    yield as_html(surroundings_grid(found))
    yield f"<details><summary>The {len(reports)} runs, and how they were asked for</summary>"
    yield as_html(runs_grid(found)) + "</details>"
    links = "".join(f'<li><a href="#{each.slug}">{escape(each.workload)}</a></li>' for each in found)
    yield f'<nav aria-label="Workloads"><ul>{links}</ul></nav>'


def _section(section: Section, drawn: Sequence[Plot]) -> Iterator[str]:
    yield f'<section id="{section.slug}">\n<h2>{escape(section.workload)}</h2>\n<p>{escape(section.summary)}</p>'
    yield as_html(rate_grid(section))
    yield from map(inline, drawn)
    is_open = " open" if len(section.cases) <= _OPEN_CASES else ""
    for case in section.cases:
        grid = case_grid(section, case)
        if grid is not None:
            yield f"<details{is_open}><summary>{escape(case.name)}: every measure</summary>{as_html(grid)}</details>"
    yield from map(as_html, (*section_grids(section), settings_grid(section)))
    for title, queries in questions(section):
        texts = "".join(f"<h3>{escape(name)}</h3><pre>{escape(text)}</pre>" for name, text in queries)
        yield f"<details><summary>What is asked, {escape(title)}</summary>{texts}</details>"
    yield "</section>"
