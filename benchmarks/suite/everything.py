"""`python -m benchmarks all`: every workload with the systems that can answer it, and the page of what was found.

What is run is fixed, so that two machines, or two versions of Plait, run the same. It takes 80 minutes on
two cores that have nothing else to do. Sizes are such that most systems take some seconds; a slow one is not asked for
more.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from rich.console import Console

from benchmarks.arguments import DIRECTORY, positive
from benchmarks.reports import page
from benchmarks.suite.command import main as run_workload
from benchmarks.workloads.listed import NAMES, workload
from plait.errors import PlaitError

_ENOUGH_S = 20
_ONE = "plait,plait:small-batches,flink,pathway,duckdb"
_MANY = "plait,plait:small-batches,flink:set,pathway,duckdb"
"""Spark's own joins take most of the time, so not every workload has them."""
_WAYS = "plait,plait:small-batches,spark,spark:rocksdb,flink,flink:multiway,pathway,pathway:keeping,duckdb,handover"
"""All ways that systems have of going about one query."""

STAGES: dict[str, tuple[str, ...]] = {
    "three-way": (
        *("--systems", _WAYS, "--sizes", "200000"),
        *("--pace", "20000", "--sustain", "--live", "plait,spark,flink,pathway"),
    ),
    "tpch-joins": ("--systems", f"{_MANY},spark", "--sizes", "0.02,0.1", "--limit", "100", "--cases", "all"),
    "tpch-random": ("--systems", _MANY, "--sizes", "0.05", "--cases", "5 queries"),
    "ajoin": ("--systems", _MANY, "--sizes", "1,40"),
    "tpcds-returns": ("--systems", _ONE, "--sizes", "0.3", "--cases", "SrCuWrCr"),
    "chains": ("--systems", f"{_ONE},spark", "--sizes", "50000", "--cases", "LHHL"),
    "nexmark-joins": ("--systems", _MANY, "--sizes", "500000", "--cases", "all"),
    "drift": ("--systems", _ONE, "--sizes", "100000"),
    "skew": ("--systems", f"{_ONE},spark", "--sizes", "1.5"),
    "flights": ("--systems", _MANY, "--sizes", "120", "--cases", "all"),
    "triples": ("--systems", _MANY, "--sizes", "10"),
}
"""What each workload is run with: arguments of ``python -m benchmarks WORKLOAD``."""


def main(arguments: list[str]) -> int:
    """Run everything, or some workloads; 0 if every system ran and every result was right, else 1."""
    options = _arguments(arguments)
    console, started = Console(), time.monotonic()
    status = 0
    for name in options.only or NAMES:
        console.rule(name)
        shared = [f"--dir={options.dir}", f"--json={options.json / name}.json", f"--repeat={options.repeat}"]
        try:
            status = max(status, run_workload(name, [*shared, f"--enough={_ENOUGH_S}", *STAGES[name]]))
        except PlaitError as error:
            console.print(f"{name}: FAILED: {error}", highlight=False, markup=False)
            status = 1
    target = options.json / "index.html"
    page.main([str(options.json), "--html", str(target), "--markdown", str(options.json / "README.md")])
    minutes = (time.monotonic() - started) / 60
    console.print(f"{target}, after {minutes:.0f} minutes", highlight=False, markup=False)
    return status


def _arguments(arguments: list[str]) -> argparse.Namespace:
    made = argparse.ArgumentParser(
        prog="python -m benchmarks all",
        description="Run every workload with the systems that can answer it, and make the page of what was found. "
        "Takes 80 minutes on two cores that have nothing else to do.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    made.add_argument(
        "--json", type=Path, default=Path("bench-out"), metavar="DIR", help="where reports and the page go"
    )
    made.add_argument("--dir", type=Path, default=DIRECTORY, metavar="DIR", help="where data is kept between runs")
    made.add_argument("--repeat", type=positive, default=3, help="timed runs of each system")
    made.add_argument(
        "--only", type=_workloads, default=(), metavar="NAME,...", help="run these again, and take the rest as it is"
    )
    return made.parse_args(arguments)


def _workloads(text: str) -> tuple[str, ...]:
    return tuple(workload(name).name for name in text.split(","))
