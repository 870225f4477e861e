"""Reports of the suite made by hand, for tests."""

from __future__ import annotations

import math
import random
from dataclasses import replace

from benchmarks.measure import Moment, ProcessUse, Use
from benchmarks.reports.report import (
    Absence,
    CaseRecord,
    Check,
    Paced,
    Report,
    RunRecord,
    SystemRecord,
    Wrong,
)
from benchmarks.systems.checksum import Checksum
from benchmarks.systems.edges import EdgeTruth
from benchmarks.systems.system import Setting
from benchmarks.systems.task import Answer, Outcome

GB = 1 << 30
SECONDS = {"plait": 2.0, "spark": 20.0, "duckdb": 0.9, "handover": 0.5}


def run(case: str, system: str, turn: int, seconds: float, *, rows_in: int = 900_000, use: bool = True) -> RunRecord:
    is_plait = system.startswith("plait")
    outcome = Outcome(
        rows_in=rows_in,
        startup_seconds=3.0,
        seconds=seconds,
        answers=(Answer(query="triples", rows=1000),) if system != "handover" else (),
        probe_tuples=5_000_000 if is_plait else None,
        peak_stored_tuples=400_000 if is_plait else None,
        peak_stored_bytes=12_000_000 if is_plait else None,
    )
    moments = tuple(
        Moment(seconds=float(at), resident_bytes=GB + at * GB // 10, private_bytes=GB // 2 + at * GB // 20)
        for at in range(6)
    )
    process = ProcessUse(pid=1, kind="driver", resident_bytes=GB, cpu_seconds=1.5 * seconds, read_bytes=GB)
    kept = Use(
        resident_bytes=moments[-1].resident_bytes,
        processes=(process,),
        moments=moments,
        ended_cpu_seconds=1.6 * seconds,
    )
    return RunRecord(case=case, system=system, turn=turn, outcome=outcome, use=kept if use else None)


def report(
    *,
    workload: str = "three-way",
    cases: tuple[str, ...] = ("1 query", "10 queries"),
    systems: tuple[str, ...] = ("plait", "spark", "duckdb"),
    repeat: int = 3,
    noise: float = 0.0,
    seed: int = 1,
    slower: dict[str, float] | None = None,
) -> Report:
    """Return a report whose runs vary by `noise`, some systems `slower` by a factor."""
    drawn = random.Random(seed)
    runs = tuple(
        run(case, system, turn, SECONDS[system] * (slower or {}).get(system, 1.0) * math.exp(drawn.gauss(0, noise)))
        for case in cases
        for turn in range(repeat)
        for system in systems
    )
    settings = (Setting(name="spark.sql.shuffle.partitions", value="one a core", reason="the guide says <few>"),)
    return Report(
        workload=workload,
        summary="a windowed join of three streams",
        unit="queries",
        created="2026-11-28T10:00:00+00:00",
        machine={"processor": "a processor", "cores": 2, "memory_bytes": 24 * GB},
        versions={"python": "3.11.2", "duckdb": "1.4.1", "java": None},
        commit="0123456789abcdef0123456789abcdef01234567",
        settings={"cores": 2, "repeat": repeat},
        systems=tuple(SystemRecord(label=name, summary=f"what {name} is", settings=settings) for name in systems),
        cases=tuple(
            CaseRecord(
                name=name,
                size=float(name.split()[0]),
                files=20,
                rows_in=900_000,
                queries=(("triples", "SELECT * FROM r, s WHERE r.a < s.a"),),
            )
            for name in cases
        ),
        runs=runs,
        checks=tuple(Check(case=case, system=name, expected_rows=1000) for case in cases for name in systems),
        absences=(),
    )


def full_report() -> Report:
    """Return a report with something in every field."""
    made = report(noise=0.05)
    expected = Answer(query="triples", rows=1000, checksum=Checksum(rows=1000, first=7, second=3))
    wrong = (Wrong(expected=expected, found=replace(expected, rows=999)), Wrong(expected=expected, found=None))
    edge = EdgeTruth(edge="r -> s", joined=1, span_us=5, measured=10, estimated=12.5, filling=11.0)
    paced = tuple(
        Paced(
            case="1 query",
            system=system,
            turn=0,
            rows_per_s=rate,
            seconds=20.0,
            results=1000 if known else 0,
            p50_s=0.5 if known else None,
            p95_s=0.9 if known else None,
            p99_s=1.5 if known else None,
            backlog_s=0.01 if known else None,
            is_sustained=known,
        )
        for system, rate, known in (("plait", 10_000.0, True), ("spark", 10_000.0, False))
    )
    checks = (
        replace(made.checks[0], edges=(edge,)),
        replace(made.checks[1], wrong=wrong),
        replace(made.checks[2], failure="it ran out of <memory>"),
        *made.checks[3:],
    )
    absences = (
        Absence(case="1 query", system="flink", reason="only <equal> keys", unable=True),
        Absence(case="10 queries", system="flink", reason="it stopped", unable=False),
    )
    flink = SystemRecord(label="flink", summary="what flink is", settings=())
    return replace(made, systems=(*made.systems, flink), checks=checks, absences=absences, paced=paced)
