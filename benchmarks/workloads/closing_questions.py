"""Questions whose results come by the watermark: rows without a partner, first partners, and groups of windows; and
the streams they are asked of, two in order of time.

Half of the keys of a file are in both streams, a key comes once in each stream or never. So it is known of every row
when what becomes of it is decided, which the streams come with.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.workloads.data import FIRST_US, write_files
from benchmarks.workloads.joins import Join, JoinQuery, JoinStream, OutputOf, QuerySet
from plait.query.model import Column

Int64s = npt.NDArray[np.int64]
SECOND_US: Final = 1_000_000
GROUPS: Final = "groups"
KINDS: Final = {"left": "LEFT", "full": "FULL", "semi": "LEFT SEMI"}
NAMES: Final = (*KINDS, GROUPS)
_COLUMNS: Final = tuple(
    Column(name=name, type="timestamp" if name == "ts" else "bigint") for name in ("id", "k", "g", "x", "ts")
)
_DECIDED: Final = "decided-{}.npy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """How much event time a file has, and how far apart partners may be, or how long windows of groups are, in
    microseconds; a second's or files' multiples.
    """

    file_us: int
    window_us: int

    def file_of(self, time_us: Int64s) -> Int64s:
        """Return with which file event time comes to these times."""
        return (time_us - FIRST_US) // self.file_us


def streams_of(question: str) -> str:
    """Return the streams that a question reads."""
    return "l" if question == GROUPS else "lr"


def columns_of(question: str) -> tuple[str, ...]:
    """Return what a question needs of each stream."""
    return ("g", "x", "ts") if question == GROUPS else ("id", "k", "ts")


def outputs_of(question: str) -> tuple[str, ...]:
    """Return the columns of the results."""
    return ("begin", "g", "n", "x") if question == GROUPS else ("l_id",) if question == "semi" else ("l_id", "r_id")


def select(question: str, times: Times, *, windowed: bool) -> str:
    """Return a question as Plait is asked; `windowed`: with the window in ON, as others are. Groups are asked of Spark
    as of Plait.
    """
    if question == GROUPS:
        return (
            "SELECT window.start AS begin, l.g AS g, count(*) AS n, sum(l.x) AS x FROM l "
            f"GROUP BY window(l.ts, '{times.window_us} microseconds'), l.g"
        )
    columns = ", ".join(f"{name[0]}.id AS {name}" for name in outputs_of(question))
    near = f"INTERVAL {times.window_us} MICROSECONDS"
    within = f" AND r.ts BETWEEN l.ts - {near} AND l.ts + {near}" if windowed else ""
    return f"SELECT {columns} FROM l {KINDS[question]} JOIN r ON l.k = r.k{within}"


def select_in_duckdb(question: str, times: Times) -> str:
    """Return a question over everything at once."""
    if question == GROUPS:
        # Buckets of DuckDB's begin with the year 2000, windows with 1970: both lie on seconds here.
        return (
            f"SELECT time_bucket(INTERVAL {times.window_us} MICROSECONDS, ts) AS begin, g, count(*) AS n, sum(x) AS x "
            "FROM l GROUP BY ALL"
        )
    return select(question, times, windowed=True).replace("LEFT SEMI", "SEMI")


def question_set(question: str, times: Times) -> QuerySet:
    """Return a question with its streams, as far as systems are told of it that way."""
    names = streams_of(question)
    streams = tuple(JoinStream(name=name, time="ts", columns=_COLUMNS) for name in names)
    joins = (Join(left="l", right="r", columns=(("k", "k"),)),) if len(names) > 1 else ()
    query = JoinQuery(
        name=question,
        relations=tuple(names),
        joins=joins,
        outputs=tuple(OutputOf(relation=name, column="id", type="bigint") for name in names),
        window_s=times.window_us // SECOND_US,
    )
    return QuerySet(streams=streams, queries=(query,))


def write_streams(directory: Path, rows: int, files: int, times: Times, *, seed: int, streams: str = "lr") -> None:
    """Write so many files of each stream, of so many rows each, and when it is decided what becomes of each row."""
    random = np.random.default_rng(seed)
    directory.mkdir(parents=True)
    decided: dict[str, list[Int64s]] = {stream: [] for stream in streams}
    for file in range(files):
        keys = {stream: random.permutation(2 * rows)[:rows] for stream in streams}
        taus = FIRST_US + file * times.file_us + np.arange(rows) * times.file_us // rows
        for stream in streams:
            table = pa.table(
                {
                    "id": np.arange(file * rows, (file + 1) * rows),
                    "k": keys[stream] + file * 2 * rows,
                    "g": random.integers(0, 1000, rows),
                    "x": random.integers(0, 100, rows),
                    "ts": pa.array(taus, pa.timestamp("us", "UTC")),
                }
            )
            write_files(directory / stream, iter((table,)), first=file)
        for stream, other in (("l", "r"), ("r", "l")) if len(streams) > 1 else ():
            found = np.full(2 * rows, np.iinfo(np.int64).min)
            found[keys[other]] = taus
            partner = found[keys[stream]]
            alone = partner < 0
            decided[stream].append(np.where(alone, -(taus + times.window_us), np.maximum(taus, partner)))
    for stream, parts in decided.items():
        if parts:
            np.save(directory / _DECIDED.format(stream), np.concatenate(parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """When what becomes of the rows of each stream is decided (int64, by id); negative: that there is no partner."""

    question: str
    times: Times
    rows: dict[str, Int64s]

    @classmethod
    def read(cls, directory: Path, question: str, times: Times) -> Decided:
        """Return what `write_streams` wrote of the streams of a question."""
        names = streams_of(question)
        rows = {name: np.load(directory / _DECIDED.format(name)) for name in names} if len(names) > 1 else {}
        return cls(question=question, times=times, rows=rows)

    def file_of(self, noted: Int64s) -> Int64s:
        """Return which file decides results, by what is noted of each: the id of its row of l, -1 - that of the row of
        r if it has none; of a group the second its window begins with.
        """
        if self.question == GROUPS:
            return self.times.file_of(noted * SECOND_US + self.times.window_us)
        ours = noted >= 0
        at = np.empty(len(noted), np.int64)
        at[ours] = np.abs(self.rows["l"][noted[ours]])
        at[~ours] = np.abs(self.rows["r"][-1 - noted[~ours]])
        return self.times.file_of(at)

    def results(self, files: range) -> int:
        """Return how many rows the join has that these files decide."""
        ours, theirs = self.rows["l"], self.rows["r"]
        counted = [ours[ours > 0] if self.question == "semi" else ours]
        counted += [theirs[theirs < 0]] if self.question == "full" else []
        found = self.times.file_of(np.abs(np.concatenate(counted)))
        return int(((found >= files.start) & (found < files.stop)).sum())


__all__ = [
    "GROUPS",
    "NAMES",
    "SECOND_US",
    "Decided",
    "Times",
    "columns_of",
    "outputs_of",
    "question_set",
    "select",
    "select_in_duckdb",
    "streams_of",
    "write_streams",
]
