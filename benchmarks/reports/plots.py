"""The plots of a page, as SVG text."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from benchmarks.plotting import require_pyplot
from benchmarks.reports.measures import LATENCIES, MEASURES
from benchmarks.reports.report import CaseRecord, RunRecord
from benchmarks.reports.sections import Section, Series, Spread, spread

_GIB = 1 << 30
_RATE = next(measure for measure in MEASURES if measure.name == "rows_per_s")
_MARKS = "osD^vPX*<>ph"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A plot. `name`: in names of files, once a page. `title`: what it shows, for those who do not see it too."""

    name: str
    title: str
    svg: str


def plots(section: Section) -> tuple[Plot, ...]:
    """Return the plots of a workload, those that its reports have figures for. Raises OptionError."""
    drawn = (_rates(section), _costs(section), _memory(section), _latencies(section))
    return tuple(plot for plot in drawn if plot is not None)


def _rates(section: Section) -> Plot | None:
    title = "Input rows a second, median and least to most"
    return _by_case(
        section, "rates", title, "input rows a second", lambda series, case: series.spread(case.name, _RATE)
    )


def _costs(section: Section) -> Plot | None:
    if all(len(case.queries) == 1 for case in section.cases):
        return None
    title = "Processor seconds for each query, all processes together"
    return _by_case(section, "costs", title, "processor s a query", _cost)


def _cost(series: Series, case: CaseRecord) -> Spread | None:
    return spread(
        None if run.use is None else run.use.cpu_seconds() / len(case.queries) for run in series.runs(case.name)
    )


def _by_case(
    section: Section, name: str, title: str, label: str, read: Callable[[Series, CaseRecord], Spread | None]
) -> Plot | None:
    """Draw a figure: against the number of queries where sizes count them, else case beside case."""
    lines = {series.title: [read(series, case) for case in section.cases] for series in section.series}
    known = {title: found for title, found in lines.items() if any(found)}
    if not known:
        return None
    is_line = section.counts_queries and len(section.cases) > 1
    width = 9.0 if is_line else max(6.0, min(14.0, 2.5 + 0.22 * len(section.cases) * len(known)))
    with _figure(width) as (figure, axes):
        for place, (system, found) in enumerate(known.items()):
            shift = 0.0 if is_line else 0.7 * ((place + 0.5) / len(known) - 0.5)
            at = [case.size if is_line else index + shift for index, case in enumerate(section.cases)]
            _whiskers(axes, at, found, system, place, is_line=is_line)
        if is_line:
            sizes = sorted({case.size for case in section.cases})
            axes.set_xscale("log")
            axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
            axes.set_xlabel("queries")
        else:
            names = [_folded(case.name) for case in section.cases]
            turned = len(names) > 6
            axes.set_xticks(range(len(names)), names, rotation=60 if turned else 0, ha="right" if turned else "center")
            axes.set_xlim(-0.6, len(names) - 0.4)
        axes.minorticks_off()
        axes.set_yscale("log")
        axes.set_ylabel(f"{label} (log scale)")
        _finish(axes)
        return Plot(name=f"{section.slug}-{name}", title=f"{section.workload}: {title}", svg=_svg(figure))


def _whiskers(
    axes: Any, at: Sequence[float], found: Sequence[Spread | None], label: str, place: int, *, is_line: bool
) -> None:
    points = [(x, each) for x, each in zip(at, found, strict=True) if each is not None]
    middles = [each.middle for _, each in points]
    below = [each.middle - each.low for _, each in points]
    above = [each.high - each.middle for _, each in points]
    axes.errorbar(
        [x for x, _ in points],
        middles,
        yerr=(below, above),
        marker=_MARKS[place % len(_MARKS)],
        linestyle="-" if is_line else "none",
        capsize=3,
        markersize=5,
        label=label,
    )


def _memory(section: Section) -> Plot | None:
    """Draw what all processes hold over a run of the last case with any, the run that takes the median time."""
    for case in reversed(section.cases):
        lines = {series.title: _watched(series.runs(case.name)) for series in section.series}
        known = {system: run for system, run in lines.items() if run is not None}
        if known:
            break
    else:
        return None
    with _figure(9.0) as (figure, axes):
        for system, run in known.items():
            moments = run.use.moments if run.use is not None else ()
            seconds = [moment.seconds for moment in moments]
            (line,) = axes.plot(seconds, [each.resident_bytes / _GIB for each in moments], label=system)
            private = [each.private_bytes / _GIB for each in moments]
            axes.plot(seconds, private, linestyle=":", color=line.get_color())
        axes.set_xlabel("seconds since the process was started")
        axes.set_ylabel("memory, GiB")
        axes.set_ylim(bottom=0)
        _finish(axes)
        title = f"{section.workload}, {case.name}: memory of all processes over a run; dotted: private"
        return Plot(name=f"{section.slug}-memory", title=title, svg=_svg(figure))


def _watched(runs: Sequence[RunRecord]) -> RunRecord | None:
    """Return the run of median time, of those that were watched."""
    known = sorted(
        (run for run in runs if run.use is not None and len(run.use.moments) > 1), key=lambda run: run.outcome.seconds
    )
    return known[len(known) // 2] if known else None


def _latencies(section: Section) -> Plot | None:
    """Draw p50, p95 and p99 of each system at each rate, a line each."""
    rows = [(f"{series.title}, {case}, {rate:,.0f} rows/s", found) for series, case, rate, found in _paced(section)]
    if not rows:
        return None
    with _figure(9.0, height=1.4 + 0.32 * len(rows)) as (figure, axes):
        for place, (_, found) in enumerate(rows):
            known = [each for each in found if each is not None]
            axes.plot([min(known), max(known)], [place, place], color="0.6", zorder=1)
        for index, (label, mark) in enumerate((("p50", "o"), ("p95", "D"), ("p99", "|"))):
            points = [(found[index], place) for place, (_, found) in enumerate(rows) if found[index] is not None]
            axes.plot(*zip(*points, strict=True), mark, label=label, markersize=9 if mark == "|" else 6, zorder=2)
        axes.set_yticks(range(len(rows)), [name for name, _ in rows])
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.set_xticks(_round_numbers(each for _, found in rows for each in found if each is not None))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_formatter(lambda value, _: "")
        axes.set_xlabel("latency, s (log scale)")
        _finish(axes)
        title = f"{section.workload}: latency at a fixed rate, median over the runs"
        return Plot(name=f"{section.slug}-latency", title=title, svg=_svg(figure))


def _paced(section: Section) -> Iterator[tuple[Series, str, float, tuple[float | None, ...]]]:
    for series in section.series:
        for (case, rate), runs in series.paced().items():
            columns = (spread(map(read, runs)) for _, read in LATENCIES)
            found = tuple(None if each is None else each.middle for each in columns)
            if any(found):
                yield series, case, rate, found


def _round_numbers(values: Iterable[float]) -> list[float]:
    """Return 1, 2 and 5 times the powers of ten that values lie between.

    >>> _round_numbers([0.3, 4.0])
    [0.2, 0.5, 1.0, 2.0, 5.0]
    """
    known = [value for value in values if value > 0]
    if not known:
        return []
    powers = range(math.floor(math.log10(min(known))), math.ceil(math.log10(max(known))) + 1)
    numbers = [float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5)]
    below = max((number for number in numbers if number <= min(known)), default=numbers[0])
    above = min((number for number in numbers if number >= max(known)), default=numbers[-1])
    return [number for number in numbers if below <= number <= above]


class _figure:
    """A figure that is closed again, with its axes."""

    def __init__(self, width: float, height: float = 4.2) -> None:
        self._pyplot = require_pyplot()
        self._size = (width, height)

    def __enter__(self) -> tuple[Any, Any]:
        self._figure, axes = self._pyplot.subplots(figsize=self._size, layout="constrained")
        return self._figure, axes

    def __exit__(self, *failure: object) -> None:
        self._pyplot.close(self._figure)


def _finish(axes: Any) -> None:
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


def _folded(name: str) -> str:
    """Return a name on two lines if it is long."""
    words = name.split()
    half = (len(words) + 1) // 2
    return name if len(name) < 14 else f"{' '.join(words[:half])}\n{' '.join(words[half:])}".strip()


def _svg(figure: Any) -> str:
    """Return a figure as SVG, the same text each time. Letters stay letters."""
    pyplot = require_pyplot()
    text = io.StringIO()
    with pyplot.rc_context({"svg.hashsalt": "plait", "svg.fonttype": "none"}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return text.getvalue()


def inline(plot: Plot) -> str:
    """Return a plot to be put into HTML: its ids are its own on the page, and it names no address."""
    svg = plot.svg[plot.svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", svg)
    svg = svg.replace("xlink:href=", "href=")
    svg = re.sub(r'\bid="', f'id="{plot.name}-', svg)
    svg = re.sub(r'href="#', f'href="#{plot.name}-', svg)
    svg = re.sub(r"url\(#", f"url(#{plot.name}-", svg)
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{escape(plot.title)}"', 1)
    return f'<figure><div class="scroll">{svg}</div><figcaption>{escape(plot.title)}</figcaption></figure>'
