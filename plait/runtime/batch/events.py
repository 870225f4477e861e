"""What the engine tells its listener, and what a run comes to: the records behind the live table and ``--json``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from plait.adapt.decision import Change, Outcome
from plait.operators.close.lacking import Lacking
from plait.runtime.losses.counts import EdgeFlow, RelationCounts, SourceCounts, outside_by_query
from plait.runtime.notice import Notice
from plait.stats.latency import Latency


@dataclass(frozen=True, slots=True, kw_only=True)
class FillingCounts:
    """How far an intermediate store is filled that comes: of `rows` stored before, `taken` now, and `left`."""

    store: str
    taken: int
    left: int
    rows: int

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {"taken": self.taken, "left": self.left, "rows": self.rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchEvent:
    """One finished micro-batch. Counts are of this batch, except `stored_tuples` and `stored_bytes`, which are kept
    now.

    `results`: rows per query. `sampled_tuples`: that few tuples took along orders not in force, beside `probe_tuples`,
    and `filling_tuples`: that rows from before took to fill intermediate stores, of which `filling` says how far they
    are.
    `phases`: seconds of each, in order. `shuffled_bytes`: partial results that Spark carried from one probe task to
    another, as serialized by Plait (before Spark's compression; arriving rows, which Spark shuffles itself, are not in
    it); 0 where routing is local. `failing`: query and reason where a sink does not take its results. `dropped`:
    intermediate stores given up to hold the storage budget. `sources`: what became of the rows that arrived;
    `relations`: of those, what the selections of each query left out; `flows`: what went along the edges of the plan.
    `warnings`: new notices of any kind, those of the start among them. `lacking`: what queries find nothing of in the
    rows that came before them. `change`: of the plan, with which the batch began; `outcome`: what the change before has
    been found to bring. `epoch_ms`: for how long the plan has been in force, `epoch_gain`: the share of the cost it
    saves, measured or else forecast, None if it did not take another's place. `published_ms`: when its results could be
    seen; `latency`: from arrival until then, over the last batches. `unfed`: how many batches so far nothing was read
    for.
    """

    batch: int
    rows_in: int
    late: int
    bad: int
    results: tuple[tuple[str, int], ...]
    epoch: int
    probe_tuples: int
    stored_tuples: int
    stored_bytes: int
    seconds: float
    unfed: int = 0
    sampled_tuples: int = 0
    filling_tuples: int = 0
    filling: tuple[FillingCounts, ...] = ()
    phases: tuple[tuple[str, float], ...] = ()
    shuffled_bytes: int = 0
    watermark_us: int | None = None
    laggard: str | None = None
    failing: tuple[tuple[str, str], ...] = ()
    dropped: tuple[str, ...] = ()
    sources: tuple[SourceCounts, ...] = ()
    relations: tuple[RelationCounts, ...] = ()
    flows: tuple[EdgeFlow, ...] = ()
    warnings: tuple[Notice, ...] = ()
    lacking: tuple[Lacking, ...] = ()
    change: Change | None = None
    outcome: Outcome | None = None
    epoch_ms: int = 0
    epoch_gain: float | None = None
    published_ms: int = 0
    latency: Latency | None = None

    @property
    def spark_batch(self) -> int:
        """What Spark calls the batch, or the last one before that it read something for."""
        return self.batch - self.unfed

    def as_json(self) -> dict[str, Any]:
        """Return the event as one JSON object."""
        return {
            "event": "batch",
            "batch": self.batch,
            "rows_in": self.rows_in,
            "late": self.late,
            "bad": self.bad,
            "results": dict(self.results),
            "epoch": self.epoch,
            "probe_tuples": self.probe_tuples,
            "sampled_tuples": self.sampled_tuples,
            "filling_tuples": self.filling_tuples,
            "filling": {each.store: each.as_json() for each in self.filling},
            "shuffled_bytes": self.shuffled_bytes,
            "stored_tuples": self.stored_tuples,
            "stored_bytes": self.stored_bytes,
            "seconds": round(self.seconds, 3),
            "phases": {name: round(seconds, 3) for name, seconds in self.phases},
            "watermark_us": self.watermark_us,
            "laggard": self.laggard,
            "failing": dict(self.failing),
            "dropped": list(self.dropped),
            "sources": {counts.source: counts.as_json() for counts in self.sources if counts.rows},
            "outside_selections": outside_by_query(self.relations),
            "warnings": [notice.as_json() for notice in self.warnings],
            "lacking": [each.as_json() for each in self.lacking],
            "latency": None if self.latency is None else self.latency.as_json(),
            "change": None if self.change is None else self.change.as_json(),
            "epoch_ms": self.epoch_ms,
            "epoch_gain": None if self.epoch_gain is None else round(self.epoch_gain, 4),
        }

    def plan_events(self) -> Iterator[dict[str, Any]]:
        """Yield what is told of plans besides: ``plan`` with which the batch began, ``plan_outcome`` of the one before.

        Costs are per second of event time, in what the strategy minimizes.
        """
        where = {"batch": self.batch, "epoch": self.epoch}
        if self.outcome is not None:
            yield {"event": "plan_outcome", **where, **self.outcome.as_json()}
        if self.change is not None:
            told = self.change.as_json()
            told["forecast"], told["cost"] = told.pop("cost_after"), told.pop("change_cost")
            yield {"event": "plan", **where, **told}


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A finished run. Counts are of this run; `stored_*` are what its last batch left. `failing`: undelivered
    results; `set_aside`: queries that no batch answers any more, and why. `sources`, `relations` and `warnings` as in
    `BatchEvent`, of all batches; `hints`: for queries that had input and no result, what the counters say about it.
    `filling`: how far intermediate stores were after the last batch.
    """

    batches: int
    rows_in: int
    late: int
    bad: int
    wall_seconds: float
    probe_tuples: int
    stored_tuples: int
    stored_bytes: int
    queries: tuple[tuple[str, int], ...]
    sampled_tuples: int = 0
    filling_tuples: int = 0
    filling: tuple[FillingCounts, ...] = ()
    shuffled_bytes: int = 0
    failing: tuple[tuple[str, str], ...] = ()
    set_aside: tuple[tuple[str, str], ...] = ()
    sources: tuple[SourceCounts, ...] = ()
    relations: tuple[RelationCounts, ...] = ()
    warnings: tuple[Notice, ...] = ()
    hints: tuple[tuple[str, str], ...] = ()
    lacking: tuple[Lacking, ...] = ()
    latency: Latency | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the summary as one JSON object."""
        outside, hints = outside_by_query(self.relations), dict(self.hints)
        return {
            "event": "finished",
            "batches": self.batches,
            "rows_in": self.rows_in,
            "late": self.late,
            "bad": self.bad,
            "wall_seconds": round(self.wall_seconds, 3),
            "probe_tuples": self.probe_tuples,
            "sampled_tuples": self.sampled_tuples,
            "filling_tuples": self.filling_tuples,
            "filling": {each.store: each.as_json() for each in self.filling},
            "shuffled_bytes": self.shuffled_bytes,
            "stored_tuples": self.stored_tuples,
            "stored_bytes": self.stored_bytes,
            "latency": None if self.latency is None else self.latency.as_json(),
            "queries": {
                query: {
                    "rows_out": rows,
                    **({"outside_selections": outside[query]} if query in outside else {}),
                    **({"hint": hints[query]} if query in hints else {}),
                }
                for query, rows in self.queries
            },
            "failing": dict(self.failing),
            "set_aside": dict(self.set_aside),
            "sources": {counts.source: counts.as_json() for counts in self.sources},
            "warnings": [notice.as_json() for notice in self.warnings],
            "lacking": [each.as_json() for each in self.lacking],
        }
