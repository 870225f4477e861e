"""An engine to look at: as many queries over three streams as one likes, planned for real, and batches that come in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from plait.adapt.planning import PlanRequest
from plait.optimizer.options import PlanOptions
from plait.plan.explain import ExplainFormat
from plait.query.model import Query
from plait.runtime.explaining import explained_plan
from plait.server.served import Json
from plait.sql import load_script
from plait.sql.statements import CreateQuery
from tests.served.stand_in import StandIn

STREAMS = """
CREATE STREAM orders (id BIGINT, word STRING, ts TIMESTAMP) USING mine OPTIONS (rate '100', distinct.id '1000')
  TIMESTAMP BY ts WINDOW INTERVAL 30 SECONDS;
CREATE STREAM items (id BIGINT, word STRING, ts TIMESTAMP) USING mine OPTIONS (rate '300', distinct.id '1000')
  TIMESTAMP BY ts WINDOW INTERVAL 2 MINUTES;
CREATE STREAM trips (id BIGINT, word STRING, ts TIMESTAMP) USING mine OPTIONS (rate '20', distinct.id '1000')
  TIMESTAMP BY ts WINDOW INTERVAL 1 MINUTE;
"""
JOINS = (
    "orders o JOIN items i ON o.id = i.id",
    "items i JOIN trips t ON i.id = t.id",
    "orders o JOIN items i ON o.id = i.id JOIN trips t ON i.id = t.id",
)


class Pictured(StandIn):
    """Holds `count` queries."""

    def __init__(self, count: int) -> None:
        super().__init__()
        texts = (
            f"CREATE QUERY query_{number:03d} INTO parquet OPTIONS (path '/out/query_{number:03d}') "
            f"AS SELECT i.id, i.word FROM {JOINS[number % 3]} WHERE i.id > {number // 3 * 10};"
            for number in range(count)
        )
        script = load_script(STREAMS + "".join(texts), base="/nowhere")
        self.sources = script.sources
        self.held = {query.name: query for query in script.queries}
        self.number, self.last = 0, dict[str, Any]()

    def batch(self) -> None:
        """Let a batch have come in."""
        self.number += 1
        results = {name: (place * 7 + self.number * 13) % 50 for place, name in enumerate(self.held)}
        self.last = {
            "event": "batch",
            "batch": self.number,
            "rows_in": 40_000 + self.number % 7 * 1000,
            "results": results,
            "seconds": 0.31,
            "stored_tuples": 1_250_000,
            "stored_bytes": 96_000_000,
            "epoch": 2,
            "epoch_ms": 93_000,
            "watermark_us": 1_767_261_600_000_000,
            "laggard": "trips",
            "failing": {},
            "latency": {"p50_seconds": 0.24, "p99_seconds": 0.61},
            "published_ms": 1_767_261_600_000 + self.number * 500,
        }
        self.tell(**self.last)

    def status(self) -> Json:
        rows = {"rows": 120_000, "late": 3, "bad": [], "outside_selections": 900, "null_keys": 0}
        bad = {"reason": "no event time", "rows": 2, "hint": "declare the column as it is written"}
        warning = "stream trips has no WINDOW, so all its rows are kept for ever; write WINDOW INTERVAL 1 HOUR"
        totals = {"sources": {"orders": rows, "items": {**rows, "bad": [bad]}, "trips": rows}, "warnings": []}
        return {
            "running": True,
            "failure": None,
            "queries": sorted(self.held),
            "streams": ["orders", "items", "trips"],
            "set_aside": {},
            "lag": {"orders": {"o-0": 12, "o-1": 3}},
            "marks": {"orders": 1_767_261_605_000_000, "items": 1_767_261_606_000_000, "trips": 1_767_261_600_000_000},
            "last_batch": self.last or None,
            "totals": {**totals, "warnings": [{"kind": "no window", "of": "trips", "text": warning}]},
        }

    def plan(self, format: ExplainFormat, queries: Sequence[str]) -> str:
        chosen = tuple(query for name, query in self.held.items() if query and (not queries or name in queries))
        request = PlanRequest(
            queries=chosen, options=PlanOptions(strategy="shared", sources=self.sources, parallelism=1)
        )
        return explained_plan(request, request.plan(None), None, None, format, baselines=False)

    def history(self) -> Json:
        began = {"epoch": 1, "batch": 0, "clock_ms": 1_767_261_000_000, "strategy": "dppick", "orders": []}
        change = {"reason": "cheaper", "gain": 0.42}
        brought = {"gain": 0.39, "taken_back": False}
        second = {**began, "epoch": 2, "batch": 40, "change": change, "outcome": brought}
        return {"epochs": [{**began, "change": None, "outcome": None}, second]}

    def add(self, statement: CreateQuery, *, replaces: bool) -> Json:
        added = super().add(statement, replaces=replaces)
        query: Query | None = self.held[statement.name]
        assert query is not None, "it has just been bound"
        return added

    def why(self, query: str, row: str) -> Json:
        texts = ["arrived with batch 3", "t: no row of stream trips with i.id = t.id"]
        return json.loads(json.dumps({"query": query, "row": row, "findings": [{"text": text} for text in texts]}))
