"""What the service needs of an engine: values to show and requests to pass on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from plait.plan.explain import ExplainFormat
from plait.sql.statements import CreateQuery

Json: TypeAlias = Mapping[str, Any]


class Served(Protocol):
    """A running engine. Each method may be called from any thread and may take a while; what comes back is plain values
    that nobody changes any more.

    A query is told of as ``name``, ``sql``, ``sink``, ``relations``, ``state`` (waiting, active, failing, set aside,
    refused), ``reason``, ``active_since`` and ``rows_out``.
    """

    def status(self) -> Json:
        """Return the engine's status."""

    def names(self) -> Sequence[str]:
        """Return the names of all queries."""

    def queries(self) -> Sequence[Json]:
        """Return all queries, those that wait to be taken up among them, in the order of their names."""

    def query(self, name: str) -> Json | None:
        """Return one query, one that was refused since too; None if there is none of this name."""

    def plan(self, format: ExplainFormat, queries: Sequence[str]) -> str:
        """Return the plan in force, or what of it these queries need."""

    def history(self) -> Json:
        """Return which plan was in force when, why, and what it brought."""

    def add(self, statement: CreateQuery, *, replaces: bool) -> Json:
        """Ask for a query to be added, or put in the place of the one of its name; return it. Raises PlaitError."""

    def drop(self, name: str) -> None:
        """Ask for a query to be dropped. Raises OptionError if there is none of this name."""

    def why(self, query: str, row: str) -> Json:
        """Return what has become of a row of a query: a condition on one of its relations. Raises PlaitError."""

    def check(self, statement: CreateQuery) -> None:
        """Raise PlaitError for what is wrong with a query, as far as that can be told at once."""

    def last_rows(self, query: str) -> Json:
        """Return ``columns`` and ``rows`` that a query has written lately, and a ``note`` where there are none."""

    def preview(self, added: Sequence[CreateQuery], dropped: Sequence[str]) -> Json:
        """Return what it would cost, and share, to answer other queries. Raises PlaitError."""

    def listen(self, hear: Callable[[Json], None]) -> None:
        """Let each event be heard as it happens. `hear` must return at once."""


__all__ = ["Json", "Served"]
