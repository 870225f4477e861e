"""What is read and asked: the streams, tables and queries of an engine, each confirmed by Spark when it is added."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from plait.errors import OptionError
from plait.query.model import Query, Source, Stream
from plait.runtime.binding import Binding, bind
from plait.runtime.sources import OpenSource, schema_of
from plait.sinks import Sink

_TIME_TYPES = frozenset({"timestamp", "timestamp_ntz", "date"})
_NAME = re.compile(r"[A-Za-z]\w*")
_KEEPS = ("needed", "all")
_PLACEMENTS = ("keys", "random")


class Registry:
    """Streams and tables in order of registration (which is the order of the stream ranks), and the queries over
    them.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.opened: dict[str, OpenSource] = {}
        self.bindings: dict[str, Binding] = {}
        self.predicates: dict[str, Callable[..., pa.Array]] = {}

    def sources(self) -> dict[str, Source]:
        """Return the registered streams and tables by name."""
        return {name: opened.source for name, opened in self.opened.items()}

    def streams(self) -> list[str]:
        """Return the names of the streams."""
        return [name for name, source in self.sources().items() if isinstance(source, Stream)]

    def add_source(self, opened: OpenSource) -> None:
        """Register a stream or table with the schema its DataFrame has. Raises OptionError for what cannot be one."""
        source = opened.source
        if source.name in self.opened:
            raise OptionError(f"'{source.name}' is registered already; give each stream and table its own name")
        if isinstance(source, Stream) != opened.frame.isStreaming:
            expected = "a streaming" if isinstance(source, Stream) else "a static"
            raise OptionError(
                f"'{source.name}' needs {expected} DataFrame (spark.readStream for streams, spark.read for tables)"
            )
        described = replace(source, schema=schema_of(opened.frame))
        if isinstance(described, Stream):
            described = _checked(described)
        self.opened[source.name] = replace(opened, source=described)

    def add_predicate(self, name: str, function: Callable[..., pa.Array]) -> None:
        """Register a join predicate. Raises OptionError for a name that SQL could take for something else."""
        if not _NAME.fullmatch(name):
            raise OptionError(f"predicate '{name}': a name consists of letters, digits and _, and starts with a letter")
        if self._spark.catalog.functionExists(name):
            raise OptionError(f"predicate '{name}': Spark has a function of this name; choose another one")
        if not callable(function):
            raise OptionError(f"predicate '{name}': expected a function, found {type(function).__name__}")
        self.predicates[name.lower()] = function

    def add_query(self, query: Query, sink: Sink) -> None:
        """Register a query that Spark accepts. Raises SqlError with Spark's words, OptionError for a taken name."""
        if query.name in self.bindings:
            raise OptionError(f"query '{query.name}' exists already; drop it first or choose another name")
        frames: dict[str, DataFrame] = {name: opened.frame for name, opened in self.opened.items()}
        self.bindings[query.name] = bind(self._spark, query, sink, frames, self._time_of)

    def _time_of(self, source: str) -> str | None:
        """Return the event-time column of a stream if it is a TIMESTAMP: then predicates can bound it."""
        found = self.opened[source].source
        if not isinstance(found, Stream):
            return None
        types = {column.name: column.type for column in found.schema or ()}
        return found.time if types.get(found.time) == "timestamp" else None

    def drop_query(self, name: str) -> None:
        """Forget a query. Raises OptionError if there is none of this name."""
        if name not in self.bindings:
            known = ", ".join(self.bindings) or "none"
            raise OptionError(f"there is no query '{name}' to drop; the queries are {known}")
        del self.bindings[name]


def _checked(stream: Stream) -> Stream:
    """Return the stream with its time column spelled as in the schema; refuse one that cannot be event time."""
    columns = {column.name.lower(): column for column in stream.schema or ()}
    found = columns.get(stream.time.lower())
    if found is None:
        known = ", ".join(column.name for column in columns.values())
        raise OptionError(f"stream '{stream.name}' has no column '{stream.time}'; its columns are {known}")
    if found.type not in _TIME_TYPES:
        raise OptionError(
            f"stream '{stream.name}': event-time column '{found.name}' is {found.type}; expected timestamp "
            "(cast it in the DataFrame or the schema)"
        )
    if stream.keep not in _KEEPS:
        raise OptionError(f"stream '{stream.name}': keep is '{stream.keep}'; expected {' or '.join(_KEEPS)}")
    if stream.placement not in _PLACEMENTS:
        raise OptionError(
            f"stream '{stream.name}': placement is '{stream.placement}'; expected {' or '.join(_PLACEMENTS)}"
        )
    return replace(stream, time=found.name)
