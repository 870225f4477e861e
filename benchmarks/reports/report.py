"""What one run of the suite found, as it is written to disk: one JSON file for one workload.

Several reports fit one compressed file, a list of them: so they are published.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure import Moment, ProcessUse, Use
from benchmarks.systems.edges import EdgeTruth
from benchmarks.systems.system import Setting
from benchmarks.systems.task import Answer, Outcome
from plait.errors import OptionError

PACKED = ".json.xz"
"""How names of compressed files end."""

FORMAT = 1
"""Raise it when a file that was written before cannot be read any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemRecord:
    """A system that took part, and the settings it had."""

    label: str
    summary: str
    settings: tuple[Setting, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRecord:
    """A case that was run. `rows_in`: rows of all its streams, each counted once. `queries`: name and text."""

    name: str
    size: float
    files: int
    rows_in: int
    queries: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A timed run. `turn`: the how manieth of its case and system, from 0. `results`: of all queries, as the run
    counted them, or as its system delivered them when they were checked; None if nobody looked.
    """

    case: str
    system: str
    turn: int
    outcome: Outcome
    use: Use | None
    results: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """A query whose results differ; `found` None: the system gave none."""

    expected: Answer
    found: Answer | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """An untimed run against the oracle. `failure`: why it gave nothing. `edges`: how true Plait's estimates were."""

    case: str
    system: str
    expected_rows: int
    wrong: tuple[Wrong, ...] = ()
    failure: str | None = None
    edges: tuple[EdgeTruth, ...] = ()

    @property
    def is_equal(self) -> bool:
        """Whether every query's results are the oracle's, as a multiset."""
        return self.failure is None and not self.wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """A system that has no time for a case. `unable`: it cannot answer these questions at all, or is not installed;
    False: it failed. `reason`: in its own words. `asked` False: nobody asked it, since it took long for less; then it
    is neither.
    """

    case: str
    system: str
    reason: str
    unable: bool
    asked: bool = True

    @property
    def verdict(self) -> str:
        """What to say of it in a word."""
        return "not asked" if not self.asked else "cannot" if self.unable else "FAILED"

    @property
    def is_failure(self) -> bool:
        """Whether it should have had a time."""
        return self.asked and not self.unable


@dataclass(frozen=True, slots=True, kw_only=True)
class Paced:
    """A run on streams that arrive at a fixed rate. `rows_per_s`: of all streams together. Latencies, in seconds: from
    the arrival of a result's newest member to its delivery, over the results of all but the first third of the
    files; None without results. `backlog_s`: how much longer results of the last third took than those of the second.
    `is_sustained`: the system kept up, and found everything.
    """

    case: str
    system: str
    turn: int
    rows_per_s: float
    seconds: float
    results: int
    p50_s: float | None
    p95_s: float | None
    p99_s: float | None
    backlog_s: float | None
    is_sustained: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One run of the suite. `created`: UTC, ISO 8601. `machine`, `versions`, `commit`: where it ran."""

    workload: str
    summary: str
    unit: str
    created: str
    machine: dict[str, Any]
    versions: dict[str, Any]
    commit: str | None
    settings: dict[str, Any]
    systems: tuple[SystemRecord, ...]
    cases: tuple[CaseRecord, ...]
    runs: tuple[RunRecord, ...]
    checks: tuple[Check, ...]
    absences: tuple[Absence, ...]
    paced: tuple[Paced, ...] = ()

    @property
    def is_right(self) -> bool:
        """Whether nothing failed and every result was the oracle's. What a system cannot do is no failure."""
        return all(check.is_equal for check in self.checks) and not any(absence.is_failure for absence in self.absences)


def write_report(report: Report, path: Path) -> None:
    """Write a report as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"format": FORMAT, **asdict(report)}, indent=1) + "\n")


def pack_reports(reports: Sequence[Report], path: Path) -> None:
    """Write reports as one compressed file. Equal reports give equal bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    plain = json.dumps([{"format": FORMAT, **asdict(report)} for report in reports], separators=(",", ":"))
    path.write_bytes(lzma.compress(plain.encode(), preset=9 | lzma.PRESET_EXTREME))


def read_report(path: Path) -> Report:
    """Read what `write_report` wrote. Raises OptionError if it is something else."""
    (report,) = read_reports(path)
    return report


def read_reports(path: Path) -> tuple[Report, ...]:
    """Read what `write_report` or `pack_reports` wrote. Raises OptionError if it is something else."""
    try:
        if path.name.endswith(PACKED):
            return tuple(_versioned(value, path) for value in json.loads(lzma.decompress(path.read_bytes())))
        return (_versioned(json.loads(path.read_text()), path),)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, lzma.LZMAError) as error:
        raise OptionError(f"{path} is no report of `python -m benchmarks`: {error}") from error


def _versioned(value: dict[str, Any], path: Path) -> Report:
    version = value.pop("format")
    if version != FORMAT:
        raise OptionError(f"{path} has format {version}; this version reads format {FORMAT}: run the benchmark again")
    return _report(value)


def _report(value: dict[str, Any]) -> Report:
    lists = {
        "systems": lambda each: SystemRecord(
            **{**each, "settings": tuple(Setting(**setting) for setting in each["settings"])}
        ),
        "cases": lambda each: CaseRecord(**{**each, "queries": tuple((name, text) for name, text in each["queries"])}),
        "runs": lambda each: RunRecord(
            **{**each, "outcome": Outcome.from_plain(each["outcome"]), "use": _use(each["use"])}
        ),
        "checks": _check,
        "absences": lambda each: Absence(**each),
        "paced": lambda each: Paced(**each),
    }
    return Report(**{**value, **{name: tuple(map(make, value[name])) for name, make in lists.items()}})


def _use(value: dict[str, Any] | None) -> Use | None:
    if value is None:
        return None
    return Use(
        resident_bytes=value["resident_bytes"],
        processes=tuple(ProcessUse(**each) for each in value["processes"]),
        moments=tuple(Moment(**each) for each in value["moments"]),
        ended_cpu_seconds=value["ended_cpu_seconds"],
    )


def _check(value: dict[str, Any]) -> Check:
    wrong = tuple(
        Wrong(
            expected=Answer.from_plain(each["expected"]),
            found=None if each["found"] is None else Answer.from_plain(each["found"]),
        )
        for each in value["wrong"]
    )
    return Check(**{**value, "wrong": wrong, "edges": tuple(EdgeTruth(**edge) for edge in value["edges"])})
