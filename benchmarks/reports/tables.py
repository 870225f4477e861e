"""The tables of a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from benchmarks.reports.behind import Behind, Standing, why_without
from benchmarks.reports.figures import DASH, Scale, factor, figure, number, scale
from benchmarks.reports.grid import Cell, Grid, row
from benchmarks.reports.measures import LATENCIES, MEASURES, Measure
from benchmarks.reports.report import CaseRecord
from benchmarks.reports.sections import Section, Series, Spread, spread
from benchmarks.systems.truth import Truth, summarize

_RATE = next(measure for measure in MEASURES if measure.name == "rows_per_s")


def behind_grid(found: Sequence[Behind], caption: str) -> Grid:
    """Return where Plait is behind."""
    return Grid(
        caption=caption,
        columns=("workload", "case", "figure", "Plait", "peer", "Plait's", "the peer's", "behind by"),
        rows=tuple(_behind_row(each) for each in found),
        texts=frozenset(range(5)),
    )


def _behind_row(each: Behind) -> tuple[Cell, ...]:
    ours = Cell(text="no time", note=each.reason, is_bad=True) if each.ours is None else _figure(each.ours, each.unit)
    note = "" if each.is_apart else "within the spread"
    by = Cell(text=factor(each.factor), note=note)
    where = (each.workload, each.case, each.measure, each.plait, each.peer)
    return row(*where, ours, _figure(each.theirs, each.unit), by)


def _figure(found: Spread, unit: str) -> Cell:
    note = f"{figure(found.low, unit)} to {figure(found.high, unit)}" if found.runs > 1 else ""
    return Cell(text=figure(found.middle, unit), note=note)


def standings_grid(found: Sequence[Standing]) -> Grid:
    """Return how systems stand against the best Plait."""
    return Grid(
        caption="The rate of the fastest way of Plait by the system's, geometric mean over the cases both have a time "
        "for; above 1 Plait is faster",
        columns=("workload", "system", "Plait is faster by", "least", "most", "cases", "results right"),
        rows=tuple(
            row(
                each.workload,
                each.system,
                Cell(text=factor(each.factor), is_bad=each.factor is not None and each.factor < 1),
                factor(each.least),
                factor(each.most),
                str(each.cases),
                _right(each),
            )
            for each in found
        ),
        texts=frozenset({0, 1}),
    )


def _right(each: Standing) -> Cell:
    if not each.checked:
        return Cell(text=DASH)
    if each.right == each.checked:
        return Cell(text=f"all {each.checked}")
    return Cell(text=f"NO: {each.checked - each.right} of {each.checked} wrong", is_bad=True)


def rate_grid(section: Section) -> Grid:
    """Return the input rows a second, a line a case, a column a system."""
    rows = []
    for case in section.cases:
        cells = [_rate_cell(series, case.name) for series in section.series]
        rows.append(row(Cell(text=case.name, note=_size(case)), *cells))
    return Grid(
        caption=f"Input rows a second: median, and least to most. Sizes count {section.unit}",
        columns=("case", *(series.title for series in section.series)),
        rows=tuple(rows),
    )


def _rate_cell(series: Series, case: str) -> Cell:
    found, check, absence = series.spread(case, _RATE), series.check(case), series.absence(case)
    if check is not None and not check.is_equal:
        return Cell(text="WRONG" if check.failure is None else "FAILED", is_bad=True)
    if found is not None:
        return _spread(found, Scale(each=1, unit=""))
    if absence is not None:
        return Cell(text=absence.verdict, is_bad=absence.is_failure)
    return Cell(text=DASH)


def _size(case: CaseRecord) -> str:
    queries = len(case.queries)
    return f"{case.rows_in:,} rows in, {queries} {'query' if queries == 1 else 'queries'}"


def _spread(found: Spread | None, suited: Scale) -> Cell:
    """Return median, and least to most if they are not the same."""
    if found is None:
        return Cell(text=DASH)
    low, high = suited.text(found.low), suited.text(found.high)
    return Cell(text=suited.text(found.middle), note=f"{low} to {high}" if low != high else "")


def case_grid(section: Section, case: CaseRecord) -> Grid | None:
    """Return every measure of a case that some system has, a column a system; None if nobody ran it or was checked."""
    told = [series for series in section.series if series.runs(case.name) or series.check(case.name)]
    if not told:
        return None
    rows = [_right_row(told, case)]
    for measure in MEASURES:
        found = [series.spread(case.name, measure) for series in told]
        if any(found):
            rows.append(_measure_row(measure, found))
    rows.append(row("timed runs", *(str(len(series.runs(case.name))) for series in told)))
    rows += _truth_rows(told, case)
    return Grid(
        caption=f"{case.name}: {_size(case)}, {case.files} batches. Medians, and least to most; processor time, memory "
        "and bytes: all processes of a system together",
        columns=("", *(series.title for series in told)),
        rows=tuple(rows),
    )


def _measure_row(measure: Measure, found: Sequence[Spread | None]) -> tuple[Cell, ...]:
    suited = scale((each.middle for each in found if each is not None), measure.unit)
    return row(Cell(text=f"{measure.title}, {suited.unit}"), *(_spread(each, suited) for each in found))


def _right_row(told: Sequence[Series], case: CaseRecord) -> tuple[Cell, ...]:
    cells = []
    for series in told:
        check = series.check(case.name)
        if check is None:
            cells.append(Cell(text=DASH))
        elif check.is_equal:
            cells.append(Cell(text="yes", note=f"{check.expected_rows:,} rows"))
        else:
            cells.append(Cell(text="NO", note=why_wrong(series, case.name), is_bad=True))
    return row("results right", *cells)


def why_wrong(series: Series, case: str) -> str:
    """Return what is wrong with a system's results, query by query."""
    check = series.check(case)
    if check is None or check.failure is not None:
        return why_without(series, case)
    texts = []
    for wrong in check.wrong:
        expected, found = wrong.expected, wrong.found
        rows = "none" if found is None else f"{found.rows:,} rows"
        rows = "as many, but others" if found is not None and found.rows == expected.rows else rows
        texts.append(f"{expected.query}: expected {expected.rows:,} rows, found {rows}")
    return "; ".join(texts)


_TRUTH: tuple[tuple[str, Callable[[Truth], str]], ...] = (
    ("edges of the plan", lambda truth: str(truth.edges)),
    ("estimates off by, median", lambda truth: factor(truth.median)),
    ("estimates off by, worst", lambda truth: factor(truth.worst)),
)


def _truth_rows(told: Sequence[Series], case: CaseRecord) -> Iterator[tuple[Cell, ...]]:
    """Yield how true Plait's estimates were, if any system has some."""
    checks = [series.check(case.name) for series in told]
    truths = [None if check is None or not check.edges else summarize(check.edges) for check in checks]
    if any(truths):
        for title, write in _TRUTH:
            yield row(title, *(DASH if truth is None else write(truth) for truth in truths))


def paced_grid(section: Section) -> Grid | None:
    """Return the latencies at fixed rates; None if no report has any."""
    rows = []
    for series in section.series:
        for (case, rate), runs in series.paced().items():
            figures = (*(read for _, read in LATENCIES), lambda paced: paced.backlog_s)
            results = spread(entry.results for entry in runs)
            kept = all(entry.is_sustained for entry in runs)
            rows.append(
                row(
                    case,
                    series.title,
                    number(rate),
                    *(_seconds(spread(map(read, runs))) for read in figures),
                    DASH if results is None else number(results.middle),
                    Cell(text="yes" if kept else "NO", is_bad=not kept),
                    str(len(runs)),
                )
            )
    if not rows:
        return None
    return Grid(
        caption="Streams that arrive at a fixed rate. Latency is from the arrival of a result's newest member to its "
        "delivery; backlog: how much longer results of the last third of the files took than those of the second",
        columns=("case", "system", "rows/s", *(name for name, _ in LATENCIES), "backlog", "results", "kept up", "runs"),
        rows=tuple(rows),
        texts=frozenset({0, 1}),
    )


def sustained_grid(section: Section) -> Grid | None:
    """Return the highest rate that was kept up with, and the lowest that was not; None if no rate was tried."""
    rows = [
        row(case, series.title, *(DASH if rate is None else number(rate) for rate in (found.kept, found.lost)))
        for series in section.series
        for case, found in series.sustained().items()
    ]
    if not rows:
        return None
    return Grid(
        caption="Sustained rates, input rows a second of all streams together: the highest whose lag grew by less than "
        "a tenth of a second a second, and the lowest whose lag grew by more, among those tried; one run each",
        columns=("case", "system", "kept up with", "fell behind at"),
        rows=tuple(rows),
        texts=frozenset({0, 1}),
    )


def _seconds(found: Spread | None) -> Cell:
    if found is None:
        return Cell(text=DASH)
    note = f"{figure(found.low, 's')} to {figure(found.high, 's')}" if found.low != found.high else ""
    return Cell(text=figure(found.middle, "s"), note=note)


def absences_grid(section: Section) -> Grid | None:
    """Return who has no time for what, in the system's own words; None if nobody lacks any."""
    rows = tuple(
        row(
            absence.case,
            series.title,
            Cell(text=absence.verdict, is_bad=absence.is_failure),
            Cell(text=absence.reason, is_code=True),
        )
        for series in section.series
        for absence in series.report.absences
        if absence.system == series.system
    )
    columns = ("case", "system", "", "why")
    return Grid(caption="Without a time", columns=columns, rows=rows, texts=frozenset(range(4))) if rows else None


def section_grids(section: Section) -> Iterator[Grid]:
    """Yield the tables of a workload after those of its cases, as far as there is something in them."""
    grids = (paced_grid(section), sustained_grid(section), absences_grid(section))
    yield from (grid for grid in grids if grid is not None)


def settings_grid(section: Section) -> Grid:
    """Return what each system is, and its settings with the reasons."""
    rows = []
    for series in section.series:
        record = next(system for system in series.report.systems if system.label == series.system)
        first = Cell(text=series.title, note=record.summary)
        if not record.settings:
            rows.append(row(first, "as it ships", DASH, DASH))
        for setting in record.settings:
            rows.append(row(first, Cell(text=setting.name, is_code=True), setting.value, setting.reason))
            first = Cell(text=series.title)
    columns = ("system", "setting", "value", "reason")
    return Grid(caption="Settings, and why", columns=columns, rows=tuple(rows), texts=frozenset(range(4)))
