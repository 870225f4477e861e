"""`python -m benchmarks flowing`: rows without a partner, and groups of windows, of streams that flow.

A file of each stream arrives every half second by the clock, with as much event time. A result is as old as the file
that decides it: the one that brings its newest member, or that takes event time past the window within which a partner
could still come, or past the end of its group's. Plait and Flink, all in one statement set, answer the same questions
at the same rates, each in a process of its own. What Flink is asked, and why its semi join is another, is in
`benchmarks.systems.closing_flink`.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb
from rich.console import Console
from rich.table import Table

from benchmarks.arguments import numbers, parser, positive
from benchmarks.figures import count, write_json
from benchmarks.suite.pacing import GROWTH, Feed, latencies
from benchmarks.surroundings import surroundings
from benchmarks.systems.launch import launched
from benchmarks.systems.task import Outcome, Task
from benchmarks.workloads.closing_questions import (
    GROUPS,
    NAMES,
    SECOND_US,
    Decided,
    Times,
    question_set,
    select_in_duckdb,
    streams_of,
    write_streams,
)
from benchmarks.workloads.data import FIRST_US

FILE_US, WINDOW_US, GROUP_US = SECOND_US // 2, 2 * SECOND_US, SECOND_US
SYSTEMS = {"plait": None, "flink": "flink"}
"""Systems, and the environments they run in."""
_UNDECIDED_FILES = 2 + 2 * WINDOW_US // FILE_US
"""What the last files decide may be told after the end: Flink waits for two windows before it gives a row up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paced:
    """What a system came to at a rate: its latencies in seconds, None without results; how much they grew from the
    first half of the files to the second; how many results there were of `expected`, over the files that count.
    """

    system: str
    question: str
    rows_per_s: int
    latencies_s: tuple[float, ...]
    growth_s: float | None
    results: int
    expected: int

    @property
    def keeps_up(self) -> bool:
        """Tell whether all results came, and not ever later."""
        return self.growth_s is not None and self.growth_s <= GROWTH and self.results == self.expected


def main(arguments: list[str]) -> int:
    """Run the benchmark; the exit status is 1 if results are missing, or Flink keeps up where Plait does not."""
    asked = parser("flowing", "Outer and semi joins and windows of time on live streams, beside Flink.")
    asked.add_argument("--paces", type=numbers, default=(20_000,), metavar="RATE,...", help="rows a second")
    asked.add_argument("--files", type=positive, default=40, help="files of each stream, two a second")
    asked.add_argument("--questions", nargs="+", choices=NAMES, default=list(NAMES), help="only these")
    asked.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS), help="only these")
    given = asked.parse_args(arguments)
    if given.files < 2 * _UNDECIDED_FILES:
        asked.error(f"--files {given.files}: of fewer than {2 * _UNDECIDED_FILES} too few decide anything")
    runs: list[Paced] = []
    with tempfile.TemporaryDirectory(prefix="plait-closing-live-") as place:
        for pace in given.paces:
            for question in given.questions:
                data = _streams(Path(place), question, pace, given.files, given.seed)
                for system in given.systems:
                    runs.append(_paced(data, system, question, pace, given.files, given.cores))
                    print(f"  {question} at {count(pace)} rows/s, {system}: {_in_words(runs[-1])}")
    if given.json is not None:
        write_json(given.json, {**surroundings(), "runs": list(map(asdict, runs))})
    return _show(runs)


def times_of(question: str) -> Times:
    """Return how much event time a file has, and windows have."""
    return Times(file_us=FILE_US, window_us=GROUP_US if question == GROUPS else WINDOW_US)


def _streams(place: Path, question: str, pace: int, files: int, seed: int) -> Path:
    streams = streams_of(question)
    data = place / f"{streams}-{pace}"
    if not data.exists():
        rows = pace * FILE_US // SECOND_US // len(streams)
        write_streams(data, rows, files, times_of(question), seed=seed, streams=streams)
    return data


def _paced(data: Path, system: str, question: str, pace: int, files: int, cores: int) -> Paced:
    feed = Feed(rows_per_file=pace * FILE_US / SECOND_US, rows_per_s=pace, grace_s=5.0)
    with tempfile.TemporaryDirectory(dir=data.parent, ignore_cleanup_errors=True) as scratch:
        task = Task(
            system=f"closing_{system}",
            questions=question_set(question, times_of(question)),
            data=str(data),
            files=files,
            scratch=scratch,
            cores=cores,
            created_s=time.time(),
            live=True,
            slice_us=FILE_US,
        )
        with feed.beside(task):
            outcome = launched(task, environment=SYSTEMS[system], timeout_s=300.0)
    if outcome.unable is not None:
        raise RuntimeError(f"{system} cannot answer '{question}': {outcome.unable}")
    return judged(outcome, feed, system, question, data, files)


def judged(outcome: Outcome, feed: Feed, system: str, question: str, data: Path, files: int) -> Paced:
    """Return what a run came to: of the files after the first third, in which code is still compiled."""
    first, last = files // 3, files - _UNDECIDED_FILES
    half = (first + last) // 2
    counting = range(first, last)
    found = latencies(outcome.deliveries, feed.arrived_us, counting)
    early, late = (
        latencies(outcome.deliveries, feed.arrived_us, part) for part in (range(first, half), range(half, last))
    )
    return Paced(
        system=system,
        question=question,
        rows_per_s=round(feed.rows_per_s),
        latencies_s=found,
        growth_s=late[0] - early[0] if early and late else None,
        results=sum(each.rows for each in outcome.deliveries if each.file in counting),
        expected=results(data, question, counting),
    )


def results(data: Path, question: str, files: range) -> int:
    """Return how many results these files decide."""
    times = times_of(question)
    if question != GROUPS:
        return Decided.read(data, question, times).results(files)
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    database.execute(f"CREATE VIEW l AS FROM read_parquet('{data}/l/*.parquet')")
    file = f"(epoch_us(begin) + {times.window_us} - {FIRST_US}) // {times.file_us}"
    sql = (
        f"SELECT count(*) FROM ({select_in_duckdb(question, times)}) WHERE {file} BETWEEN {files.start} AND {files[-1]}"
    )
    return int(database.execute(sql).fetchall()[0][0])


def _in_words(run: Paced) -> str:
    latency = "no results" if not run.latencies_s else "latency " + ", ".join(f"{each:.2f}" for each in run.latencies_s)
    return f"{latency} s, {'kept up' if run.keeps_up else 'fell behind'}, {count(run.results)} of {count(run.expected)}"


def _show(runs: list[Paced]) -> int:
    table = Table(
        title="Seconds from the file that decides a result to the result, and whether the rate is kept up with"
    )
    for column in ("question", "rows/s", "system", "p50", "p95", "p99", "kept up", "results", "of"):
        table.add_column(column, justify="left" if column in ("question", "system") else "right")
    for run in runs:
        cells = [f"{each:.2f}" for each in run.latencies_s] or ["", "", ""]
        kept = "yes" if run.keeps_up else "no"
        table.add_row(
            run.question, count(run.rows_per_s), run.system, *cells, kept, count(run.results), count(run.expected)
        )
    Console().print(table)
    return int(any(_missed(runs)))


def _missed(runs: list[Paced]) -> Iterator[bool]:
    """Tell of each run of Plait's whether it gave wrong numbers of results, or fell behind where Flink did not."""
    ahead = {(run.question, run.rows_per_s) for run in runs if run.system == "flink" and run.keeps_up}
    for run in runs:
        if run.system == "plait":
            yield run.results > run.expected or (not run.keeps_up and (run.question, run.rows_per_s) in ahead)


__all__ = ["Paced", "judged", "main", "results", "times_of"]
