"""Run a life with the engine, on Spark or on its stand-in, and collect what each query wrote."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import plait
from plait import faults
from plait.optimizer.incremental import former
from plait.runtime.batch import compacting, prober
from plait.runtime.batch.stream import Run
from plait.sql import load_script
from plait.state.buckets import close_others
from plait.state.storage import Storage
from tests.oracle.compare import multiset, table_rows
from tests.oracle.entitlement import Entitlement, entitlements, history
from tests.property.case import CaseSource
from tests.property.lives import Life, Span, incarnations, script
from tests.property.registered import PREDICATES
from tests.property.standin import frames
from tests.property.standin.session import Session

_MEMORY = Path("/dev/shm")


class Killed(Exception):
    """The engine died at a fail point."""


@dataclass(slots=True)
class LifeOutcome:
    """What a life produced: rows by incarnation, and late, bad and dead-lettered rows; `warnings` of merges that
    failed.
    """

    rows: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    late: int = 0
    bad: int = 0
    letters: dict[str, int] = field(default_factory=dict)
    batches: int = 0
    warnings: list[str] = field(default_factory=list)


@dataclass(slots=True)
class LifeRun:
    """One life in a directory. `session`: Spark's or the stand-in's; only the latter can change while running."""

    session: Any
    life: Life
    directory: Path
    outcome: LifeOutcome = field(default_factory=LifeOutcome)
    _at: int = 0
    _batches: int = 0
    _revealed: int = 0
    _kills: set[int] = field(default_factory=set)
    _engine: Any = None
    _fault: Any = None

    def run(self) -> LifeOutcome:
        """Run all spans."""
        self._write_tables()
        while self._at < len(self.life.spans):
            self._begin()
            try:
                summary = self._engine.run_available()
            except Exception:
                if not self._died():
                    raise
                continue
            self.outcome.late += summary.late
            self.outcome.bad += summary.bad
            self.outcome.batches += summary.batches
            self._at += 1
        self._collect()
        return self.outcome

    def boundary(self, batch: int, done: bool) -> None:
        """Between two batches: begin the next span if this one is over and the engine goes on; arm fail points."""
        following = self._at + 1
        if done and following < len(self.life.spans) and not self.life.spans[following].is_restart:
            before = self.life.spans[self._at]
            self._at, self._batches = following, 0
            self._reveal()
            self._change(before, self.life.spans[following])
            return
        kill = self.life.spans[self._at].kill
        armed = not done and kill is not None and self._at not in self._kills and kill[0] == self._batches
        self._arm(kill[1] if armed and kill is not None else None)
        self._batches += not done

    def _begin(self) -> None:
        self._batches = 0
        span = self.life.spans[self._at]
        self._reveal()
        self._engine = plait.Engine(
            self.session,
            checkpoint=str(self.directory / "checkpoint"),
            strategy=span.way.strategy,
            parallelism=span.way.parallelism,
            routing=span.way.routing,
        )
        for option in ("capacity", "compaction", "backfill"):
            self._engine.set_option(f"plait.{option}", str(getattr(span.way, option)).lower())
        for name, function in PREDICATES.items():
            self._engine.predicate(name, function)
        self._engine.load(self._script(self._at))

    def _script(self, number: int, only: frozenset[str] | None = None) -> Any:
        """Load the script of a span, or that of `only` some of its queries."""
        text = script(self.life, number)
        loaded = load_script(text, file="life.sql", base=str(self.directory), predicates=PREDICATES)
        if only is None:
            return loaded
        return replace(loaded, queries=tuple(query for query in loaded.queries if query.name in only))

    def _change(self, before: Span, after: Span) -> None:
        """Drop and add queries, in the order of their names, and declare streams that are new."""
        old = {query.name: query for query in before.queries}
        new = {query.name: query for query in after.queries}
        for name in sorted(old):
            if new.get(name) is not old[name]:
                self._engine.drop(name)
        added = frozenset(name for name in new if old.get(name) is not new[name])
        self._engine.load(self._script(self._at, added))
        self._engine._run.settle()

    def _arm(self, point: str | None) -> None:
        faults._reached.clear()

        def die(*_: object) -> None:
            self._kills.add(self._at)
            raise Killed

        environment = {} if point is None else {"PLAIT_FAULT": point}
        if self._fault is not None:
            self._fault(SimpleNamespace(environ=environment, kill=die, getpid=os.getpid))

    def _died(self) -> bool:
        """Tell whether the engine died on purpose just now."""
        is_new = self._at in self._kills
        spans = list(self.life.spans)
        if is_new:
            # What the engine is told goes on as it was: the batch it died in belongs to the span.
            spans[self._at] = replace(spans[self._at], kill=None)
            self.life = replace(self.life, spans=tuple(spans))
            self._kills.discard(self._at)
        return is_new

    def _sources(self) -> dict[str, CaseSource]:
        return {each.source.name: each.source for span in self.life.spans for each in span.declared}

    def _write_tables(self) -> None:
        for name, source in self._sources().items():
            (self.directory / name).mkdir(parents=True)
            if source.is_table:
                pq.write_table(with_zone(source.rows), self.directory / name / "all.parquet")

    def _reveal(self) -> None:
        """Let the files of this span appear."""
        until = self.life.spans[self._at].until
        for name, source in self._sources().items():
            for number in range(self._revealed, until) if not source.is_table else ():
                start, rows = source.batch(number)
                path = self.directory / name / f"{number:03d}.parquet"
                pq.write_table(with_zone(source.rows.slice(start, rows)), path)
                os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))  # the oldest file is taken first
        self._revealed = max(self._revealed, until)

    def _collect(self) -> None:
        for each in incarnations(self.life):
            tables = [pq.read_table(path) for path in sorted((self.directory / "out" / each.key).glob("*.parquet"))]
            self.outcome.rows[each.key] = [row for table in tables for row in table_rows(table)]
        for folder in sorted((self.directory / "dead").glob("*")):
            files = folder.glob("*.parquet")
            self.outcome.letters[folder.name] = sum(pq.read_metadata(file).num_rows for file in files)


def with_zone(table: pa.Table) -> pa.Table:
    """Return the table with its times as instants, which Spark reads as TIMESTAMP, not TIMESTAMP_NTZ."""
    for number, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type):
            instants = table.column(number).cast(pa.timestamp("us", tz="UTC"))
            table = table.set_column(number, column.name, instants)
    return table


def run_life(life: Life, prepare: Callable[[pytest.MonkeyPatch], None] | None = None) -> LifeOutcome:
    """Run a life on the stand-in, in memory where there is a place for that. `prepare`: what else is patched."""
    directory = Path(tempfile.mkdtemp(prefix="plait-life-", dir=_MEMORY if _MEMORY.is_dir() else None))
    try:
        with pytest.MonkeyPatch.context() as patch:
            frames.install(patch.setattr)
            patch.setattr(Run, "_attend", lambda self: None)  # a life settles what it asks for itself
            if life.seed % 4:  # with so few queries most changes are of half of them
                patch.setattr(former, "MOST_CHANGED", 1e9)
            session = Session()
            run = LifeRun(session, life, directory)
            session.boundary = run.boundary
            run._fault = lambda shim: patch.setattr(faults, "os", shim)
            turns = count()  # the driver and tasks probe by turns
            patch.setattr(prober, "is_quicker_here", lambda work, *_: not work.calls_functions and next(turns) % 2)
            patch.setattr(compacting._LOG, "warning", lambda text, error: run.outcome.warnings.append(text % error))
            if prepare is not None:
                prepare(patch)
            return run.run()
    finally:
        close_others(Storage.open(str(directory / "checkpoint" / "plait")), ())
        shutil.rmtree(directory)


def fault(life: Life, outcome: LifeOutcome, owed: Mapping[str, Entitlement]) -> str | None:
    """Return what is wrong with an outcome; None if every query got what it is entitled to and nothing else."""
    for key, entitlement in owed.items():
        found = multiset(outcome.rows[key])
        problem = shortfall(found, entitlement.must) or shortfall(entitlement.may, found, "too many")
        if problem is not None:
            return f"{key}: {problem}"
    if outcome.warnings:
        return outcome.warnings[0]
    played = history(life)
    if +Counter(outcome.letters) != +played.letters:
        return f"dead letters {outcome.letters}, expected {dict(played.letters)}"
    if any(span.kill is not None for span in life.spans):
        return None
    late, bad = played.late.total(), played.bad.total()
    if (outcome.batches, outcome.late, outcome.bad) != (len(played.batches), late, bad):
        return (
            f"batches, late and bad rows {(outcome.batches, outcome.late, outcome.bad)}, "
            f"expected {(len(played.batches), late, bad)}"
        )
    return None


def shortfall(found: Counter[tuple[Any, ...]], wanted: Counter[tuple[Any, ...]], what: str = "missing") -> str | None:
    """Return which rows of `wanted` are not in `found`."""
    missing = wanted - found
    if not missing:
        return None
    shown = "\n".join(f"  {what} x{count}: {row}" for row, count in sorted(missing.items(), key=repr)[:8])
    return f"{missing.total()} rows {what} of {wanted.total()}\n{shown}"


def check_life(life: Life, prepare: Callable[[pytest.MonkeyPatch], None] | None = None) -> str | None:
    """Run a life on the stand-in and return its fault or the error it died of; None if all is well.

    Raises UnsuitableCaseError.
    """
    owed = entitlements(life)
    try:
        return fault(life, run_life(life, prepare), owed)
    except Exception as error:  # any error at all is a finding
        return f"{type(error).__name__}: {error}"


__all__ = ["LifeOutcome", "LifeRun", "check_life", "fault", "run_life", "shortfall", "with_zone"]
