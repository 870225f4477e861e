"""An engine as the service sees it: the only module of the service that knows one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from plait.errors import PlacedError, PlaitError
from plait.plan.explain import ExplainFormat
from plait.query.model import Query
from plait.runtime.batch.events import BatchEvent
from plait.runtime.checkpoint.plan_history import history_of
from plait.runtime.declarations import QueryHandle
from plait.runtime.engine import Engine
from plait.runtime.previewing import Wanted
from plait.server.last_rows import last_rows
from plait.server.served import Json
from plait.sinks import Sink
from plait.sql.statements import CreateQuery

_MOST_REMEMBERED: Final = 2000
_SHOWN_OPTIONS: Final = frozenset({"path", "topic", "partitionby", "format"})
"""Of sinks. Others may hold passwords."""


class ServedEngine:
    """Implements `plait.server.served.Served`. `checkpoint`: where the engine keeps its state."""

    def __init__(self, engine: Engine, checkpoint: str) -> None:
        self._engine, self._checkpoint = engine, checkpoint
        self._asked: OrderedDict[str, QueryHandle] = OrderedDict()

    def status(self) -> Json:
        """Return the engine's status."""
        return self._engine.status()

    def names(self) -> Sequence[str]:
        """Return the names of all queries."""
        return sorted(self._engine.queries())

    def queries(self) -> Sequence[Json]:
        """Return all queries."""
        queries, status = self._engine.queries(), self._engine.status()
        return [self._told(queries[name], status) for name in sorted(queries)]

    def query(self, name: str) -> Json | None:
        """Return one query, one that was refused since too; None if there is none of this name."""
        found = self._engine.queries().get(name)
        if found is not None:
            return self._told(found, self._engine.status())
        reason = self._refusal(name)
        return None if reason is None else {"name": name, "state": "refused", "reason": reason}

    def plan(self, format: ExplainFormat, queries: Sequence[str]) -> str:
        """Return the plan in force."""
        return self._engine.explain(format, queries=queries, baselines=False)

    def history(self) -> Json:
        """Return which plan was in force when."""
        return {"epochs": [entry.as_json() for entry in history_of(self._checkpoint)]}

    def add(self, statement: CreateQuery, *, replaces: bool) -> Json:
        """Ask for a query to be added, or put in the place of another."""
        is_there = statement.name in self._engine.queries()
        ask = self._engine.replace if replaces and is_there else self._engine.query
        try:
            handle = ask(statement.name, statement.select, sink=Sink(spec=statement.sink), windows=_windows(statement))
        except PlacedError as error:
            raise placed(error, statement) from error
        self._asked[statement.name] = handle
        self._asked.move_to_end(statement.name)
        if len(self._asked) > _MOST_REMEMBERED:
            self._asked.popitem(last=False)
        found = self.query(statement.name)
        return {"name": statement.name} if found is None else found

    def drop(self, name: str) -> None:
        """Ask for a query to be dropped."""
        self._asked.pop(name, None)
        if name in self._engine.queries():  # one that was refused is gone already
            self._engine.drop(name)

    def why(self, query: str, row: str) -> Json:
        """Return what has become of a row."""
        return self._engine.why(query, row).as_json()

    def check(self, statement: CreateQuery) -> None:
        """Raise PlaitError for what is wrong with a query, but for what takes Spark to tell."""
        try:
            self._engine.bound(
                statement.name, statement.select, sink=Sink(spec=statement.sink), windows=_windows(statement)
            )
        except PlacedError as error:
            raise placed(error, statement) from error

    def last_rows(self, query: str) -> Json:
        """Return what a query has written lately."""
        return last_rows(self._engine.queries()[query].sink)

    def preview(self, added: Sequence[CreateQuery], dropped: Sequence[str]) -> Json:
        """Return what other queries would cost."""
        wanted = [
            Wanted(name=each.name, select=each.select, sink=Sink(spec=each.sink), windows=_windows(each))
            for each in added
        ]
        return self._engine.preview(wanted, dropped)

    def listen(self, hear: Callable[[Json], None]) -> None:
        """Let each event be heard as it happens."""

        def told(event: BatchEvent) -> None:
            for change in event.plan_events():
                hear(change)
            hear(event.as_json())

        self._engine.listen(told)

    def _told(self, query: Query, status: Mapping[str, Any]) -> Json:
        last, asked = status["last_batch"] or {}, self._asked.get(query.name)
        aside, failing = status["set_aside"].get(query.name), last.get("failing", {}).get(query.name)
        waits = asked is not None and asked.active_since is None
        state = "set aside" if aside else "failing" if failing else "waiting" if waits else "active"
        return {
            **described(query),
            "state": state,
            "reason": aside or failing,
            "active_since": None if asked is None else asked.active_since,
            "rows_out": status["totals"]["queries"].get(query.name, {}).get("rows_out", 0),
            "last_rows": last.get("results", {}).get(query.name, 0),
        }

    def _refusal(self, name: str) -> str | None:
        """Return why a query that was asked for has been refused since; None if it has not."""
        asked = self._asked.get(name)
        if asked is None:
            return None
        try:
            asked.wait_active(0)
        except PlaitError as reason:
            return str(reason)
        return None


def described(query: Query) -> dict[str, Any]:
    """Return what a query is, as plain values."""
    return {
        "name": query.name,
        "sql": query.text,
        "sink": {
            "format": query.sink.format,
            "options": {name: value for name, value in query.sink.options if name.lower() in _SHOWN_OPTIONS},
        },
        "relations": [
            {"alias": each.alias, "source": each.source, "table": each.is_table, "window_us": each.window_us}
            for each in query.relations
        ],
    }


def _windows(statement: CreateQuery) -> dict[str, str | None]:
    """Return the windows of a statement as an engine takes them."""
    return {
        each.alias: None if each.window_us is None else f"{each.window_us} microseconds" for each in statement.windows
    }


def placed(error: PlacedError, statement: CreateQuery) -> PlacedError:
    """Return an error in a SELECT with its place in the whole text."""
    if error.line is None or error.file is not None:
        return error
    line, column = statement.select_line + error.line - 1, error.column
    if error.line == 1 and column is not None:
        column += statement.select_column - 1
    return type(error)(error.message, line=line, column=column)


__all__ = ["ServedEngine", "described", "placed"]
