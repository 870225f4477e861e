"""What would come of changes: queries are tried one after the other, each beside those before it, and nothing is asked.

So a query can read the groups of one that comes with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from plait.errors import PlaitError
from plait.query.model import Query, Source
from plait.runtime.outputs.binding import Binding
from plait.runtime.registry import Registry
from plait.sinks import Sink


class Rehearsal:
    """A copy of what is registered, without the queries `dropped`. `bound` returns a query as it would be added there.

    Each query takes the place of any of its name, as in `Engine.replace`.
    """

    def __init__(self, registry: Registry, dropped: Iterable[str], bound: Callable[..., Query]) -> None:
        self._registry, self._bound = registry.copy(), bound
        for name in dropped:
            if name in self._registry.bindings:
                self._registry.drop_query(name)

    def sources(self) -> dict[str, Source]:
        """Return the streams and tables that queries could read then, groups of queries included."""
        return self._registry.sources()

    def add(self, name: str, select: str, *, sink: Sink, windows: Mapping[str, str | None] | None = None) -> Binding:
        """Return a query that Spark accepts. Raises SqlError for one that cannot be, OptionError if others read the
        groups of the one whose place it is to take.
        """
        return self._added(self._bound_here(name, select, sink, windows), sink)

    def read(self, name: str, select: str, *, sink: Sink, windows: Mapping[str, str | None] | None = None) -> None:
        """Do that as far as Spark need not be asked. Of a query that groups, others can read the groups then if Spark
        accepts it.
        """
        query = self._bound_here(name, select, sink, windows)
        if query.aggregation is not None:
            with suppress(PlaitError):  # whoever adds it is told
                self._added(query, sink)

    def _bound_here(self, name: str, select: str, sink: Sink, windows: Mapping[str, str | None] | None) -> Query:
        if name in self._registry.bindings:
            self._registry.refuse_read(name)
            self._registry.drop_query(name)
        return self._bound(name, select, sink=sink, windows=windows, among=self._registry)

    def _added(self, query: Query, sink: Sink) -> Binding:
        binding = self._registry.confirmed(query, sink)
        self._registry.add_query(binding)
        return binding


__all__ = ["Rehearsal"]
