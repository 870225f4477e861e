"""The page of what the suite found."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from benchmarks.reports.behind import Behind, slower, standings
from benchmarks.reports.figures import DASH
from benchmarks.reports.grid import Cell, Grid, as_markdown, row
from benchmarks.reports.page import main
from benchmarks.reports.report import Report, write_report
from benchmarks.reports.sections import sections
from benchmarks.reports.tables import absences_grid, case_grid, paced_grid, rate_grid, sustained_grid
from benchmarks.tests.sample_reports import full_report, report, run
from plait.errors import OptionError

_VOID = {"meta", "br", "img", "use", "path"}


class _Tags(HTMLParser):
    """Notes ids, and complains of tags that are not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            assert self._open.pop() == tag


def pages(folder: Path, *reports: Report) -> tuple[str, str]:
    """Return the page as HTML and as Markdown."""
    for place, made in enumerate(reports):
        write_report(made, folder / "in" / f"{place}.json")
    assert main([str(folder / "in"), "--html", str(folder / "page.html"), "--markdown", str(folder / "page.md")]) == 0
    return (folder / "page.html").read_text(), (folder / "page.md").read_text()


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    folder = tmp_path_factory.mktemp("page")
    later = replace(report(noise=0.1, seed=3), created="2026-11-29T10:00:00+00:00", commit="fedcba9876543210")
    return folder, *pages(folder, full_report(), later, report(workload="chains"))


def only(found: tuple[Behind, ...]) -> Behind:
    (each,) = found
    return each


def test_the_page_names_no_address_and_loads_nothing(full: tuple[Path, str, str]) -> None:
    _, page, _ = full
    assert "http" not in page
    assert not re.findall(r"<(script|link|iframe|img)\b|@import|url\((?!#)", page)
    assert not re.findall(r'(?:href|src)="(?!#)', page)


def test_ids_are_unique_on_the_page_and_every_reference_has_its_own(full: tuple[Path, str, str]) -> None:
    _, page, _ = full
    tags = _Tags()
    tags.feed(page)
    assert len(set(tags.ids)) == len(tags.ids)
    assert set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', page))
    for pair in re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', page):
        assert "".join(pair) in tags.ids


def test_a_wrong_result_is_told_at_the_top_in_both_pages(full: tuple[Path, str, str]) -> None:
    _, page, text = full
    for each in (page, text):
        assert each.index("WRONG RESULTS") < each.index("Where Plait is slower") < each.index("How all systems stand")
        assert "triples: expected 1,000 rows, found 999 rows; triples: expected 1,000 rows, found none" in each
    assert '<strong class="bad">NO</strong>' in page
    assert "**WRONG**" in text


def test_a_page_of_right_results_raises_no_alarm(tmp_path: Path) -> None:
    for page in pages(tmp_path, report()):
        assert "WRONG" not in page


def test_what_systems_say_is_told_in_their_words_and_escaped(full: tuple[Path, str, str]) -> None:
    _, page, _ = full
    assert "it ran out of &lt;memory&gt;" in page
    assert "r.a &lt; s.a" in page
    assert "the guide says &lt;few&gt;" in page
    assert "<memory>" not in page


def test_who_has_no_time_is_told_and_a_failure_is_seen_beside_what_it_cannot_do() -> None:
    section = sections([full_report()])[0]
    grid = absences_grid(section)
    assert grid is not None
    assert [[cell.text for cell in cells] for cells in grid.rows] == [
        ["1 query", "flink", "cannot", "only <equal> keys"],
        ["10 queries", "flink", "FAILED", "it stopped"],
    ]
    assert [cells[-1].text for cells in rate_grid(section).rows] == ["cannot", "FAILED"]


def test_reports_of_one_workload_stand_side_by_side_with_their_commits(full: tuple[Path, str, str]) -> None:
    _, page, text = full
    for each in (page, text):
        assert "plait (012345678)" in each
        assert "plait (fedcba987)" in each
        assert "chains" in each


def test_two_reports_of_the_same_commit_are_told_apart_by_their_time() -> None:
    later = replace(report(), created="2026-11-29T10:00:00+00:00")
    titles = [series.title for series in sections([later, report()])[0].series if series.system == "plait"]
    assert titles == ["plait (012345678, 2026-11-28T10:00:00+00:00)", "plait (012345678, 2026-11-29T10:00:00+00:00)"]


def test_plots_lie_beside_the_markdown(full: tuple[Path, str, str]) -> None:
    folder, _, text = full
    named = re.findall(r"\]\(([^)]+\.svg)\)", text)
    assert {Path(name).stem for name in named} >= {"three-way-rates", "three-way-memory", "three-way-latency"}
    assert all((folder / name).is_file() for name in named)


def test_a_figure_nobody_has_is_a_dash() -> None:
    bare = replace(
        report(cases=("1 query",), systems=("plait", "spark"), repeat=1),
        runs=(run("1 query", "plait", 0, 2.0), run("1 query", "spark", 0, 9.0, use=False)),
        checks=(),
    )
    section = sections([bare])[0]
    grid = case_grid(section, section.cases[0])
    assert grid is not None
    cells = {cells[0].text: [cell.text for cell in cells[1:]] for cells in grid.rows}
    assert cells["results right"] == [DASH, DASH]
    assert cells["processor time, s"] == ["3.20", DASH]
    assert cells["probe tuples, tuples"] == ["5,000,000", DASH]
    assert all("None" not in cell.text for line in grid.rows for cell in line)


def test_latencies_nobody_has_are_dashes_and_who_fell_behind_is_seen() -> None:
    grid = paced_grid(sections([full_report()])[0])
    assert grid is not None
    plait, spark = grid.rows
    assert [cell.text for cell in plait[3:6]] == ["0.50 s", "0.90 s", "1.50 s"]
    assert [cell.text for cell in spark[3:7]] == [DASH] * 4
    assert (spark[-2].text, spark[-2].is_bad) == ("NO", True)


def test_every_case_where_a_peer_is_faster_is_told_and_by_how_much() -> None:
    found = slower(sections([report(slower={"spark": 0.5, "duckdb": 10.0}, cases=("1 query",))]))
    assert found == ()
    each = only(slower(sections([report(slower={"spark": 0.05, "duckdb": 10.0}, cases=("1 query",))])))
    assert (each.workload, each.case, each.plait, each.peer) == ("three-way", "1 query", "plait", "spark")
    assert each.factor == pytest.approx(2.0)
    assert each.is_apart


def test_a_limit_that_joins_nothing_is_no_peer() -> None:
    assert slower(sections([report(systems=("plait", "handover"))])) == ()


def test_the_batch_engine_is_a_floor_and_no_peer_and_by_how_much_it_is_faster_is_said() -> None:
    from benchmarks.reports.prose import behind_grids

    found = sections([report()])
    assert slower(found) == ()
    said = behind_grids(found)[0][1]
    assert said.endswith("Plait slower than a peer. The batch engine, duckdb, is faster in 2 cases, by 2.22× to 2.22×.")


def test_a_case_that_only_a_peer_has_a_time_for_comes_first() -> None:
    made = report(cases=("1 query", "10 queries"), systems=("plait", "spark"), slower={"spark": 0.05})
    kept = tuple(each for each in made.runs if (each.system, each.case) != ("plait", "10 queries"))
    found = slower(sections([replace(made, runs=kept)]))
    assert [(each.case, each.factor is None) for each in found] == [("10 queries", True), ("1 query", False)]


def test_plait_is_taken_in_its_usual_way_and_not_in_the_luckiest() -> None:
    made = report(systems=("plait", "spark"), cases=("1 query",), slower={"spark": 0.08})
    lucky = tuple(replace(each, system="plait:ilp") for each in report(cases=("1 query",), slower={"plait": 0.1}).runs)
    record = replace(made.systems[0], label="plait:ilp")
    both = replace(made, systems=(*made.systems, record), runs=(*made.runs, *lucky[::3]))
    each = only(slower(sections([both])))
    assert each.plait == "plait"
    by_system = {standing.system: standing for standing in standings(sections([both]))}
    assert by_system["plait"].factor == pytest.approx(1.0)
    assert by_system["spark"].factor == pytest.approx(0.8)
    assert by_system["plait:ilp"].factor == pytest.approx(0.1)


def test_nothing_to_compare_with_is_said() -> None:
    from benchmarks.reports.prose import behind_grids

    alone = sections([report(systems=("plait",))])
    assert [said for _, said, _ in behind_grids(alone)] == ["These reports have no peer to compare Plait with."] * 2


def test_markdown_cells_stay_in_their_column() -> None:
    grid = Grid(caption="c", columns=("a", "b"), rows=(row("x|y", Cell(text="two\nlines", is_bad=True)),))
    assert as_markdown(grid).splitlines()[-1] == "| x\\|y | **two lines** |"


def test_nothing_to_write_is_refused(tmp_path: Path) -> None:
    write_report(report(), tmp_path / "a.json")
    with pytest.raises(OptionError, match="nothing to write"):
        main([str(tmp_path / "a.json")])


def test_the_highest_rate_kept_up_with_is_told_and_who_keeps_up_with_more_than_plait() -> None:
    like = full_report().paced[0]
    tried = [("plait", 10.0, True), ("plait", 20.0, False), ("spark", 25.0, True), ("spark", 30.0, False)]
    paced = tuple(replace(like, system=name, rows_per_s=rate, is_sustained=kept) for name, rate, kept in tried)
    (section,) = sections([replace(report(), paced=paced)])
    grid = sustained_grid(section)
    assert grid is not None
    assert [[cell.text for cell in cells] for cells in grid.rows] == [
        ["1 query", "plait", "10", "20"],
        ["1 query", "spark", "25", "30"],
    ]
    (behind,) = (each for each in slower([section]) if each.measure == "sustained rate")
    assert (behind.peer, behind.factor) == ("spark", 2.5)


def test_a_rate_that_plait_was_never_asked_for_is_none_it_fell_behind_at() -> None:
    like = full_report().paced[0]
    paced = tuple(replace(like, system=name, rows_per_s=rate) for name, rate in (("plait", 10.0), ("spark", 25.0)))
    (section,) = sections([replace(report(), paced=paced)])
    assert not [each for each in slower([section]) if each.measure == "sustained rate"]


def test_the_rates_of_a_case_stand_in_their_order_whichever_was_tried_first() -> None:
    like = full_report().paced[0]
    paced = tuple(replace(like, rows_per_s=rate) for rate in (20.0, 160.0, 100.0))
    (section,) = sections([replace(report(), paced=paced)])
    grid = paced_grid(section)
    assert grid is not None
    assert [row[2].text for row in grid.rows] == ["20", "100", "160"]
