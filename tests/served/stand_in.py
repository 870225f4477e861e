"""An engine that only remembers what it was asked for. Queries are bound as the real one binds them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from plait.errors import OptionError, PlacedError
from plait.plan.explain import ExplainFormat
from plait.query.model import Column, Query, Source, Stream
from plait.server.of_engine import described, placed
from plait.server.served import Json
from plait.sql.select.binder import bind_query
from plait.sql.statements import CreateQuery

SOURCES: dict[str, Source] = {
    name: Stream(
        name=name,
        time="ts",
        window_us=30_000_000,
        schema=(
            Column(name="id", type="bigint"),
            Column(name="word", type="string"),
            Column(name="ts", type="timestamp"),
        ),
    )
    for name in ("orders", "items")
}


class StandIn:
    """Implements `plait.server.served.Served`."""

    def __init__(self, *names: str) -> None:
        self.held: dict[str, Query | None] = dict.fromkeys(names)
        self.hears: list[Callable[[Json], None]] = []
        self.looked = 0

    def status(self) -> Json:
        self.looked += 1
        return {"running": True, "queries": sorted(self.held)}

    def names(self) -> Sequence[str]:
        return sorted(self.held)

    def queries(self) -> Sequence[Json]:
        return [_told(name, self.held[name]) for name in sorted(self.held)]

    def query(self, name: str) -> Json | None:
        return _told(name, self.held[name]) if name in self.held else None

    def plan(self, format: ExplainFormat, queries: Sequence[str]) -> str:
        return f"plan as {format} of {list(queries)}"

    def history(self) -> Json:
        return {"epochs": []}

    def add(self, statement: CreateQuery, *, replaces: bool) -> Json:
        try:
            bound = bind_query(
                name=statement.name,
                select=statement.select,
                sink=statement.sink,
                sources=SOURCES,
                windows={each.alias: each.window_us for each in statement.windows},
                is_function=_unknown,
            )
        except PlacedError as error:
            raise placed(error, statement) from error
        self.held[statement.name] = bound
        return {"name": statement.name, "state": "waiting"}

    def why(self, query: str, row: str) -> Json:
        return {"query": query, "row": row}

    def drop(self, name: str) -> None:
        if name not in self.held:
            raise OptionError(f"there is no query '{name}'")
        del self.held[name]

    def check(self, statement: CreateQuery) -> None:
        kept = dict(self.held)
        self.add(statement, replaces=True)
        self.held = kept

    def last_rows(self, query: str) -> Json:
        return {"columns": ["id", "word"], "rows": [["1", "ann"], ["22", None]], "note": None}

    def preview(self, added: Sequence[CreateQuery], dropped: Sequence[str]) -> Json:
        return {"before": None, "after": None, "added": {each.name: {} for each in added}, "dropped": list(dropped)}

    def listen(self, hear: Callable[[Json], None]) -> None:
        self.hears.append(hear)

    def tell(self, **event: Any) -> None:
        for hear in self.hears:
            hear({"event": "batch", **event})


def _told(name: str, query: Query | None) -> dict[str, Any]:
    known = {"name": name} if query is None else described(query)
    return {**known, "state": "active", "reason": None, "active_since": 3, "rows_out": 7}


def _unknown(name: str) -> bool:
    return False
