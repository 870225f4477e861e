"""`python -m benchmarks WORKLOAD`: run a workload of the suite, show what was found, write it down."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from typing import Any

from rich.console import Console

from benchmarks.arguments import parser, positive
from benchmarks.reports.report import Report, SystemRecord, write_report
from benchmarks.reports.terminal import console_tables
from benchmarks.suite.carry_out import carry_out
from benchmarks.suite.live_streams import FILES as LIVE_FILES
from benchmarks.suite.plan import Findings, Plan
from benchmarks.surroundings import surroundings
from benchmarks.systems.known import NAMES, Choice, choose
from benchmarks.systems.launch import peer_versions
from benchmarks.workloads.case import Case, Request, Workload
from benchmarks.workloads.listed import workload
from plait.errors import OptionError

_WIDTH = 110
_DEFAULT_SYSTEMS = "plait,spark,duckdb"


def main(name: str, arguments: list[str]) -> int:
    """Run the workload `name`; 0 if every system ran and every result was right, else 1."""
    asked = workload(name)
    options = _parser(asked).parse_args(arguments)
    choices = tuple(choose(text) for text in dict.fromkeys(options.systems.split(",")))
    plan = Plan(
        choices=choices,
        repeat=options.repeat,
        check=options.check,
        directory=options.dir.absolute(),
        cores=options.cores,
        sample=options.sample,
        timeout_s=options.timeout or None,
        limit_s=options.limit or None,
        enough_s=options.enough or None,
        paces=options.pace,
        sustain=options.sustain,
        live=options.live,
        conf=tuple(options.conf),
    )
    console = Console()
    where = surroundings()
    created = datetime.now(timezone.utc).isoformat(timespec="seconds")
    request = Request(
        sizes=options.sizes or asked.sizes,
        directory=plan.directory,
        seed=options.seed,
        files=options.files,
        variants=options.variants,
    )
    systems = tuple(_describe(choice) for choice in choices)

    def report_of(found: Findings) -> Report:
        return Report(
            workload=asked.name,
            summary=asked.summary,
            unit=asked.unit,
            created=created,
            machine=where["machine"],
            versions={**where["versions"], **peer_versions(choices)},
            commit=where["commit"],
            settings=_settings(options, request),
            systems=systems,
            cases=tuple(found.cases),
            runs=tuple(found.runs),
            checks=tuple(found.checks),
            absences=tuple(found.absences),
            paced=tuple(found.paced),
        )

    def keep(found: Findings) -> None:
        if options.json is not None:
            write_report(report_of(found), options.json)

    def grow(case: Case, factor: float) -> Case:
        return asked.grown(request, case, factor, files=request.files or LIVE_FILES)

    cases = _chosen(asked.cases(request), options.cases)
    report = report_of(carry_out(plan, cases, console, keep=keep, grow=grow if asked.grows else None))
    wide = Console(width=max(console.width, _WIDTH))
    for table in console_tables(report):
        wide.print(table)
    return 0 if report.is_right else 1


def _chosen(cases: Iterable[Case], wanted: Sequence[str]) -> Iterator[Case]:
    """Yield the cases that are wanted, all for no names. Raises OptionError for names of which there is no case."""
    known = []
    for case in cases:
        known.append(case.question)
        if not wanted or case.question in wanted:
            yield case
    missing = [name for name in wanted if name not in known]
    if missing:
        raise OptionError(f"no case is called {', '.join(missing)}; expected some of {', '.join(dict.fromkeys(known))}")


def _describe(choice: Choice) -> SystemRecord:
    return SystemRecord(label=choice.label, summary=choice.summary, settings=choice.settings)


def _settings(options: argparse.Namespace, request: Request) -> dict[str, Any]:
    plain = {name: value for name, value in sorted(vars(options).items()) if name not in {"json", "dir"}}
    return {**plain, "sizes": list(request.sizes), "conf": dict(options.conf)}


def _parser(asked: Workload) -> argparse.ArgumentParser:
    made = parser(asked.name, f"{asked.summary} ({asked.source}).")
    made.add_argument("--sizes", type=_sizes, metavar="N,...", help=f"{asked.unit}; default: {_listed(asked.sizes)}")
    made.add_argument(
        "--systems",
        default=_DEFAULT_SYSTEMS,
        metavar="NAME[:MODE],...",
        help=f"some of {', '.join(NAMES)}, or their modes: {'; '.join(_modes())}",
    )
    made.add_argument("--repeat", type=positive, default=3, help="timed runs of each system")
    made.add_argument(
        "--cases", type=_names, default=(), metavar="NAME,...", help="only these cases: their names up to a comma"
    )
    made.add_argument(
        "--variants",
        choices=("usual", "plain", "all"),
        default="usual",
        help="all: the cases that take long as well; plain: of ajoin those without selections",
    )
    made.add_argument("--files", type=positive, help="files a stream, so batches; default: the workload's own choice")
    made.add_argument(
        "--sample", type=int, default=0, metavar="N", help="batches after which Plait is started anew; 0: never"
    )
    made.add_argument("--timeout", type=float, default=900, metavar="SECONDS", help="end a run after; 0: never")
    made.add_argument(
        "--limit", type=float, default=300, metavar="SECONDS", help="no larger cases after a longer run; 0: all"
    )
    made.add_argument(
        "--enough",
        type=float,
        default=0,
        metavar="SECONDS",
        help="not run a system again whose timed runs of a case took this long together, two at least; 0: always",
    )
    made.add_argument(
        "--pace",
        type=_sizes,
        default=(),
        metavar="ROWS,...",
        help="for the cases of the smallest size, also let streams arrive at so many rows a second",
    )
    made.add_argument(
        "--sustain", action="store_true", help="in the same cases, look for the highest rate that systems keep up with"
    )
    made.add_argument(
        "--live",
        type=_names,
        default=(),
        metavar="NAME,...",
        help="only these systems follow live streams; else all that can",
    )
    made.add_argument(
        "--check", action=argparse.BooleanOptionalAction, default=True, help="compare results with DuckDB's, untimed"
    )
    return made


def _modes() -> list[str]:
    chosen = {name: [mode.name for mode in choose(name).system.modes] for name in NAMES}
    return [f"{name}:{' '.join(modes)}" for name, modes in chosen.items() if modes]


def _sizes(text: str) -> tuple[float, ...]:
    try:
        return tuple(sorted(float(part) for part in text.split(",")))
    except ValueError as error:
        raise OptionError(f"expected numbers with commas between, found '{text}'") from error


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _listed(sizes: tuple[float, ...]) -> str:
    return ",".join(f"{size:g}" for size in sizes)
