"""The page as Markdown, its plots beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.reports.behind import standings
from benchmarks.reports.grid import as_markdown, plain
from benchmarks.reports.plots import Plot
from benchmarks.reports.prose import (
    METHOD,
    PEERS,
    RUNS,
    SUMMARY,
    TITLE,
    behind_grids,
    questions,
    runs_grid,
    surroundings_grid,
    wrong_results,
)
from benchmarks.reports.sections import Section
from benchmarks.reports.tables import case_grid, rate_grid, section_grids, settings_grid, standings_grid


def markdown_page(found: Sequence[Section], drawn: Mapping[str, Sequence[Plot]], folder: str) -> str:
    """Return the page. `folder`: where the plots are, seen from the page."""
    whole = (line for each in found for line in _section(each, drawn[each.workload], folder))
    return "\n".join((*_top(found), *whole))


def short_page(found: Sequence[Section]) -> str:
    """Return the page without plots, settings and what is asked: figures alone."""
    return "\n".join((*_top(found), *(line for each in found for line in _figures(each, ()))))


def _top(found: Sequence[Section]) -> Iterator[str]:
    yield f"# {TITLE}\n"
    wrong = wrong_results(found)
    if wrong:
        yield "## WRONG RESULTS\n"
        yield "\n".join(f"- **{plain(text)}**" for text in wrong) + "\n"
    for heading, said, grid in behind_grids(found):
        yield f"## {heading}\n\n{said}\n"
        if grid is not None:
            yield as_markdown(grid)
    yield f"{PEERS}\n"
    yield f"{METHOD}\n"
    yield f"## {SUMMARY}\n"
    yield as_markdown(standings_grid(standings(found)))
    yield f"## {RUNS}\n"
    yield as_markdown(surroundings_grid(found))
    yield as_markdown(runs_grid(found))


def _section(section: Section, drawn: Sequence[Plot], folder: str) -> Iterator[str]:
    yield from _figures(section, [f"![{plain(plot.title)}]({folder}/{plot.name}.svg)\n" for plot in drawn])
    yield as_markdown(settings_grid(section))
    for title, queries in questions(section):
        yield f"<details><summary>{plain(title)}</summary>\n"
        for name, text in queries:
            yield f"{plain(name)}\n\n```sql\n{text}\n```\n"
        yield "</details>\n"


def _figures(section: Section, images: Sequence[str]) -> Iterator[str]:
    yield f"## {plain(section.workload)}\n\n{plain(section.summary)}\n"
    yield as_markdown(rate_grid(section))
    yield from images
    for case in section.cases:
        grid = case_grid(section, case)
        if grid is not None:
            yield as_markdown(grid)
    yield from map(as_markdown, section_grids(section))
