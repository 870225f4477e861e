"""`plait bench multi-query`: several join queries over the same streams, as one plan, one by one, and by Spark itself.

Two kinds of workload. Random join queries over TPC-H, as in paper 000, with the full history and with windows; each
system has its results compared with DuckDB's, query by query. With ``--curve``, more and more random queries over the
streams of the three-way join, to see how the total time grows with their number.

Every run is a process of its own, and the order of the systems is reversed from one repetition to the next.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from plait.bench import multi_report
from plait.bench.curve import curve_case, draw, follow, points, require_pyplot
from plait.bench.curve import tables as curve_tables
from plait.bench.data import Workload, prepare
from plait.bench.multi_run import OTHERS, SEPARATE, SPARK, Case, Plan, Results, carry_out, case_json
from plait.bench.options import numbers, parser, positive
from plait.bench.report import write_json
from plait.bench.surroundings import surroundings
from plait.bench.tpch_data import TpchInput, prepare_tpch, read_streams
from plait.bench.tpch_joins import RowCounter, find_joins, open_tpch
from plait.optimizer import STRATEGIES
from plait.workloads.joins import QuerySet
from plait.workloads.tpch_random import Wanted, draw_workload, with_window

_SYSTEMS = (SEPARATE, "independent", "shared", "ilp", SPARK)
_SIZES = {5: (2, 4), 10: (2, 5)}
"""Relations of the smallest and of the largest query, by number of queries."""
_OTHER_SIZES = (2, 5)
_OVERLAP = {5: 3.1, 10: 5.3}
"""Memory of queries that share nothing against those that share their stores, in the paper, by number of queries."""
_MOST_ROWS_FACTOR = 4
"""Rows that any part of a query may have, in multiples of the largest stream."""


def main(arguments: list[str]) -> int:
    """Run the benchmark; 0 if every system ran and every result was right, else 1."""
    options = _arguments(arguments)
    if options.plot is not None:
        require_pyplot()
    console = Console()
    where = surroundings()
    plan = Plan(
        systems=_known(options.systems, console),
        repeat=options.repeat,
        check=options.check,
        directory=options.dir.absolute(),
        cores=options.cores,
        spark_memory=options.spark_memory,
        sample=options.sample,
        timeout_s=options.timeout or None,
        conf=tuple(options.conf),
    )
    if options.curve:
        cases = _curve_cases(options, plan.directory, console)
        results = follow(plan, cases, options.limit, console)
    else:
        cases = tpch_cases(options, plan.directory, console)
        results = carry_out(plan, cases, console)
    _report(options, where, cases, results, console)
    _, comparisons, failures = results
    return 0 if not failures and all(found.is_equal for found in comparisons) else 1


def _report(
    options: argparse.Namespace, where: dict[str, Any], cases: tuple[Case, ...], results: Results, console: Console
) -> None:
    """Write and print what was found."""
    runs, comparisons, failures = results
    figures = multi_report.summarize(runs, comparisons)
    line = points(cases, runs) if options.curve else ()
    if options.json is not None:
        document = {
            "benchmark": "multi-query",
            **where,
            "settings": {name: _plain(value) for name, value in sorted(vars(options).items())},
            "workloads": [case_json(case) for case in cases],
            "curve": [asdict(point) for point in line],
            **multi_report.document(runs, comparisons, failures, figures),
        }
        write_json(options.json, document)
    for table in curve_tables(line) if line else multi_report.tables(figures):
        console.print(table)
    if options.plot is not None and line:
        draw(line, options.plot)
    for complaint in multi_report.complaints(comparisons, failures):
        console.print(complaint, markup=False)


def _plain(value: object) -> object:
    return str(value) if isinstance(value, Path) else value


def _arguments(arguments: list[str]) -> argparse.Namespace:
    made = parser("multi-query", "Several join queries over the same streams: shared, one by one, and Spark's own.")
    made.set_defaults(seed=0)
    made.add_argument(
        "--systems", type=_names, default=_SYSTEMS, metavar="NAME,...", help="strategies, 'separate', 'spark'"
    )
    made.add_argument("--queries", type=numbers, default=(5, 10), metavar="N,...", help="queries in a TPC-H workload")
    made.add_argument("--history", type=_histories, default=("full", "window"), help="'full', 'window' or both")
    made.add_argument("--window", type=positive, default=30, metavar="SECONDS", help="window of 'window'")
    made.add_argument("--scale", type=float, default=0.1, help="TPC-H scale factor")
    made.add_argument("--files", type=positive, default=20, help="files a stream, so batches")
    made.add_argument(
        "--sample", type=int, default=1, metavar="N", help="batches after which Plait plans anew; 0: none"
    )
    made.add_argument("--repeat", type=positive, default=3, help="timed runs of each system")
    made.add_argument("--spark-memory", default="6g", help="heap for Spark's own joins, which keep their state there")
    made.add_argument("--timeout", type=float, default=3600, metavar="SECONDS", help="end a run after; 0: never")
    made.add_argument(
        "--check", action=argparse.BooleanOptionalAction, default=True, help="compare results with DuckDB's, untimed"
    )
    made.add_argument("--curve", action="store_true", help="total time by number of queries over r, s and t instead")
    made.add_argument(
        "--counts", type=numbers, default=(1, 2, 5, 10, 20, 50, 100), metavar="N,...", help="queries, for --curve"
    )
    made.add_argument("--rows", type=positive, default=100_000, help="rows a stream, for --curve")
    made.add_argument(
        "--limit", type=float, default=600, metavar="SECONDS", help="--curve ends a system's line after a longer run"
    )
    made.add_argument("--plot", type=Path, metavar="FILE", help="draw the curve there (PNG, SVG or PDF)")
    return made.parse_args(arguments)


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text.split(",")))


def _histories(text: str) -> tuple[str, ...]:
    names = _names(text)
    for name in names:
        if name not in {"full", "window"}:
            raise argparse.ArgumentTypeError(f"unknown history '{name}'; expected 'full', 'window' or 'full,window'")
    return names


def _known(systems: tuple[str, ...], console: Console) -> tuple[str, ...]:
    """Return the systems there are; say which are left out."""
    for name in systems:
        if name not in STRATEGIES and name not in OTHERS:
            console.print(f"there is no strategy '{name}'; it is left out", highlight=False)
    return tuple(name for name in systems if name in STRATEGIES or name in OTHERS)


def tpch_cases(options: argparse.Namespace, directory: Path, console: Console) -> tuple[Case, ...]:
    """Prepare the data, draw the workloads of the seed and describe them."""
    wanted = TpchInput(scale=options.scale, files=options.files)
    console.print(f"TPC-H at scale {wanted.scale:g}: preparing the data and drawing queries", highlight=False)
    data = prepare_tpch(wanted, directory)
    streams = read_streams(data)
    with open_tpch(data, streams, options.cores) as database:
        pool = find_joins(database, streams)
        counter = RowCounter(database)
        most_rows = _MOST_ROWS_FACTOR * max(counter((stream.name,), ()) for stream in streams)
        drawn = {
            count: draw_workload(
                Wanted(
                    queries=count,
                    smallest=smallest,
                    largest=largest,
                    most_rows=most_rows,
                    overlap=_OVERLAP.get(count, 1.0),
                ),
                pool,
                streams,
                counter,
                options.seed,
            )
            for count in options.queries
            for smallest, largest in (_SIZES.get(count, _OTHER_SIZES),)
        }
    return tuple(
        Case(
            name=f"{count} queries, {'full history' if history == 'full' else f'window {options.window} s'}",
            questions=QuerySet.over(streams, with_window(queries, None if history == "full" else options.window)),
            data=data,
            files=options.files,
        )
        for count, queries in drawn.items()
        for history in options.history
    )


def _curve_cases(options: argparse.Namespace, directory: Path, console: Console) -> tuple[Case, ...]:
    workload = Workload(rows=options.rows, files=options.files)
    console.print(f"{workload.rows:,} rows a stream: preparing the data", highlight=False)
    data = prepare(workload, directory)
    return tuple(curve_case(workload, data, queries, options.seed) for queries in sorted(options.counts))
