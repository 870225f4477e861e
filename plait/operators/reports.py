"""What tasks tell the driver: descriptions and counts, never rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from plait.errors import Failure
from plait.plan.model import Plan
from plait.sinks.staging import Publication
from plait.state.model import BadRows, Bucket, GatheredRows, NullKey


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestReport:
    """One ingest task's account of its share of a batch of one source.

    `rows` counts all rows read; `late`, `bad`, `outside` and `null_keys` those not kept for that reason, each row once
    (`SourceProgress` says more); of a table `bad_rows` are kept nevertheless. `sketches`: per key name the KMV sketch
    of the rows in time; `kept`: rows per selection text. `unstored_tau_max`: the largest τ among rows in time that no
    store keeps. `copies`: of rows at home elsewhere, which are in no other count; `sent_rows`, `sent_bytes`: what
    tables sent to the task.
    """

    source: str
    rows: int = 0
    late: int = 0
    bad: int = 0
    null_keys: int = 0
    tau_min: int | None = None
    tau_max: int | None = None
    buckets: tuple[Bucket, ...] = ()
    sketches: tuple[tuple[str, tuple[int, ...]], ...] = ()
    kept: tuple[tuple[str, int], ...] = ()
    publications: tuple[Publication, ...] = ()
    bad_rows: tuple[BadRows, ...] = ()
    null_keys_by: tuple[NullKey, ...] = ()
    outside: int = 0
    unstored_tau_max: int | None = None
    copies: tuple[Bucket, ...] = ()
    sent_rows: int = 0
    sent_bytes: int = 0

    @property
    def unstored(self) -> int:
        """Rows in time that no store keeps."""
        return self.outside + self.null_keys


LEFT_TO_SPARK: Final = ""
"""The failure of results that no sink has refused: DuckDB could not compute them for some row, which Spark may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFile:
    """Results of one query written by one task: spooled Arrow files in the checkpoint (`paths`), or already staged in
    the query's sink (`publication`), or neither for a sink that discards. `failure`: the sink refused, and why, or
    `LEFT_TO_SPARK`. `gathered`: joined rows that are no results yet, and not among the `rows`.
    """

    query: str
    rows: int
    paths: tuple[str, ...] = ()
    publication: Publication | None = None
    failure: str | None = None
    gathered: tuple[GatheredRows, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReport:
    """One probe task's account. Per edge `probe_tuples`, how many of them `matched` anything, and all `matches`; a
    broadcast tuple counts once per partition.

    `buckets`: what was kept in intermediate stores. `shuffled_bytes`: payload of the messages sent to other tasks,
    `shuffled_rows` the partial results in them.
    `seconds`: of processor time. `failures`: what could not be computed; nothing of the task is of any use then.
    """

    probe_tuples: tuple[tuple[str, int], ...] = ()
    matched: tuple[tuple[str, int], ...] = ()
    matches: tuple[tuple[str, int], ...] = ()
    results: tuple[ResultFile, ...] = ()
    buckets: tuple[Bucket, ...] = ()
    shuffled_bytes: int = 0
    shuffled_rows: int = 0
    seconds: float = field(default=0.0, compare=False)
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What a few tuples of a batch found on the orders of a plan that is not in force."""

    plan: Plan
    report: ProbeReport

    @property
    def probe_tuples(self) -> int:
        """What the sample took."""
        return sum(count for _, count in self.report.probe_tuples)
