"""What is read and asked: the streams, tables and queries of an engine, each confirmed by Spark when it is added."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from plait.errors import OptionError, SinkError, SqlError
from plait.plan.columns import name_problem
from plait.query.model import KEEPS, PLACEMENTS, Query, Source, Stream
from plait.runtime.inputs.opening import OpenSource, places_read, reading, schema_of, visible, visible_schema
from plait.runtime.outputs.binding import Binding, bind
from plait.sinks import Sink
from plait.sinks.overlaps import (
    Place,
    archive_places,
    checkpoint_place,
    letter_places,
    overlap,
    read_places,
    sink_places,
)
from plait.spelling import backquoted, folded
from plait.sql.lexis.names import naming_problem
from plait.sql.lexis.text import SourceText
from plait.sql.script.event_time import bind_event_time, refuse_other_types
from plait.sql.script.sources import statistics_problem
from plait.sql.select.binder import bind_query, view_problems
from plait.sql.select.derived import derived_stream, still_read
from plait.sql.select.view_parts import View

_NAME = re.compile(r"[A-Za-z]\w*")


class Registry:
    """Streams and tables in order of registration (which is the order of the stream ranks), and the queries over
    them. `checkpoint`: where their state will be, None if they are only looked at.
    """

    def __init__(self, spark: SparkSession, checkpoint: str | None = None) -> None:
        self._spark = spark
        self._places = [] if checkpoint is None else [checkpoint_place(checkpoint)]
        self.opened: dict[str, OpenSource] = {}
        self.derived: dict[str, OpenSource] = {}
        self._frames: dict[str, DataFrame] = {}
        self.bindings: dict[str, Binding] = {}
        self.predicates: dict[str, Callable[..., pa.Array]] = {}
        self.views: dict[str, View] = {}

    def copy(self) -> Registry:
        """Return one with the same in it: what is added there, or dropped, is not here."""
        made = Registry(self._spark)
        made._places = list(self._places)
        made.opened, made.derived, made._frames = dict(self.opened), dict(self.derived), dict(self._frames)
        made.bindings, made.predicates, made.views = dict(self.bindings), dict(self.predicates), dict(self.views)
        return made

    def sources(self) -> dict[str, Source]:
        """Return the registered streams and tables by name, and those that are groups of queries."""
        return {name: opened.source for name, opened in self._all_opened().items()}

    def _all_opened(self) -> dict[str, OpenSource]:
        """Return what arrives, in order of registration, and behind it the groups of queries."""
        return self.opened | {name: made for name, made in tuple(self.derived.items()) if name not in self.opened}

    def is_function(self, name: str) -> bool:
        """Tell whether Spark has a function of this name. It is asked only about names that are no built-in ones."""
        return bool(self._spark.catalog.functionExists(name))

    def streams(self) -> list[str]:
        """Return the names of the streams that arrive."""
        return [name for name, opened in self.opened.items() if isinstance(opened.source, Stream)]

    def read_by(self, bindings: Iterable[Binding]) -> dict[str, OpenSource]:
        """Return the registered streams and tables, and the groups of queries that these read."""
        read = {relation.source for each in bindings for relation in each.query.relations}
        return {name: each for name, each in self._all_opened().items() if name in self.opened or name in read}

    def refuse_read(self, query: str) -> None:
        """Raise OptionError if a query is to go, or to become another one, whose groups others read."""
        for reader in self.readers_of([query]):
            raise OptionError(still_read(query, reader))

    def readers_of(self, queries: Iterable[str]) -> dict[str, str]:
        """Return the queries that read the groups of these, or of such, each with one that it reads itself."""
        found, made = dict.fromkeys(queries, ""), self.derived.keys() - self.opened.keys()
        asked = tuple(found)
        while made.intersection(found):
            more = {
                name: relation.source
                for name, binding in tuple(self.bindings.items())
                for relation in binding.query.relations
                if name not in found and relation.source in made and relation.source in found
            }
            if not more:
                break
            found |= more
        return {name: read for name, read in found.items() if name not in asked}

    def add_source(self, opened: OpenSource) -> None:
        """Register a stream or table with the schema its DataFrame has. Raises OptionError for what cannot be one."""
        source = opened.source
        if source.name in self.opened or folded(source.name) in self.views:
            raise OptionError(f"'{source.name}' is registered already; give each stream and table its own name")
        self.refuse_read(source.name)
        if isinstance(source, Stream) != opened.frame.isStreaming:
            expected = "a streaming" if isinstance(source, Stream) else "a static"
            raise OptionError(
                f"'{source.name}' needs {expected} DataFrame (spark.readStream for streams, spark.read for tables)"
            )
        problem = naming_problem("stream or table", source.name)
        if problem is not None:
            raise OptionError(problem)
        described = _with_names(replace(source, schema=visible_schema(opened)))
        for problem in filter(None, (name_problem(column.name) for column in described.schema or ())):
            raise OptionError(f"'{source.name}': {problem}")
        if isinstance(described, Stream):
            described = self._timed(_checked(described), opened.frame)
        read = read_places(described) if described.connector is not None else places_read(described, opened.frame)
        written = (*archive_places(described), *letter_places(described))
        _refuse_overlaps(read, self._all_places())
        _refuse_overlaps(written, (*self._all_places(), *read))
        self._places += (*read, *written)
        self.opened[source.name] = replace(opened, source=described)

    def _timed(self, stream: Stream, frame: DataFrame) -> Stream:
        """Return the stream with its event time bound; Spark is asked for a type that only it knows."""
        text = SourceText(text=stream.time)
        try:
            bound = bind_event_time(stream, text, self.is_function)
            if bound.computed is None:
                return bound
            with reading(stream):
                data_type = frame.selectExpr(bound.computed.sql).schema[0].dataType
            type_ = str(data_type.simpleString()).lower()
            refuse_other_types(type_, bound.time, text)
        except SqlError as problem:
            raise OptionError(f"stream '{stream.name}': {problem.message}") from problem
        return replace(bound, computed=replace(bound.computed, type=type_))

    def add_view(self, view: View) -> None:
        """Register a view; the same one again is no other. Raises OptionError for a name that is taken, SqlError for
        what is wrong with it.
        """
        name = folded(view.name)
        if self.views.get(name) == view:
            return
        if name in self.views or name in map(folded, self.opened):
            raise OptionError(f"'{view.name}' is registered already; give each view, stream and table its own name")
        problem = naming_problem("view", view.name)
        if problem is not None:
            raise OptionError(problem)
        known = (*self.views.values(), view)
        for mistake in view_problems(
            view, self.sources(), views=known, predicates=self.predicates, is_function=self.is_function
        ):
            raise mistake
        self.views[name] = view

    def add_predicate(self, name: str, function: Callable[..., pa.Array]) -> None:
        """Register a join predicate. Raises OptionError for a name that SQL could take for something else."""
        if not _NAME.fullmatch(name):
            raise OptionError(f"predicate '{name}': a name consists of letters, digits and _, and starts with a letter")
        if self.is_function(name):
            raise OptionError(f"predicate '{name}': Spark has a function of this name; choose another one")
        if not callable(function):
            raise OptionError(f"predicate '{name}': expected a function, found {type(function).__name__}")
        try:
            cloudpickle.dumps(function)
        except Exception as error:  # whatever the function holds on to raises what it likes
            raise OptionError(
                f"predicate '{name}' cannot be sent to Spark's workers: {type(error).__name__}: {error}. Use nothing "
                "in it that belongs to this process (locks, files, connections, the Spark session)."
            ) from error
        self.predicates[name.lower()] = function

    def confirmed(self, query: Query, sink: Sink, *, replaces: bool = False) -> Binding:
        """Return a query that Spark accepts, to be added. Raises SqlError with Spark's words, OptionError for a name
        that is taken; `replaces`: by the one whose place it is to take.
        """
        self._refuse_misplaced(query, sink, () if replaces else self.bindings)
        query = self._with_schema_names(query)
        frames = {relation.source: self._frame(relation.source) for relation in query.relations}
        read = (self.sources()[relation.source] for relation in query.relations)
        groups = [each.derived for each in read if isinstance(each, Stream) and each.derived is not None]
        return bind(self._spark, query, sink, frames, self._time_of, groups)

    def add_query(self, binding: Binding) -> None:
        """Register a query that Spark has accepted. Raises OptionError for a name that has been taken meanwhile."""
        self._refuse_misplaced(binding.query, binding.sink, self.bindings)
        self.bindings[binding.query.name] = binding
        self._derive(binding)

    def restore_query(self, binding: Binding) -> None:
        """Register a query again that was dropped just now."""
        self.bindings[binding.query.name] = binding
        self._derive(binding)

    def readable(self) -> tuple[View, ...]:
        """Return the views, and the queries that group but of which nobody can read the groups, to be refused as such
        where they are read.
        """
        known = {*self.views, *map(folded, self.sources())}
        queries = (each.query for each in tuple(self.bindings.values()) if each.query.aggregation is not None)
        left = (query for query in queries if folded(query.name) not in known)
        return (*self.views.values(), *(View(name=each.name, text=SourceText(text=each.text)) for each in left))

    def _derive(self, binding: Binding) -> None:
        """Let other queries read the groups of one, if they can."""
        query = binding.query
        self.derived.pop(query.name, None)
        if query.name not in self.opened:
            self._frames.pop(query.name, None)
        stream = derived_stream(query, self.sources())
        if stream is None or query.aggregation is None or query.aggregation.end is None:
            return
        frame = self._spark.createDataFrame([], binding.output)
        time = binding.output.names[query.aggregation.end]
        self.derived[query.name] = OpenSource(source=replace(stream, time=time, schema=schema_of(frame)), frame=frame)

    def _refuse_misplaced(self, query: Query, sink: Sink, names: Collection[str]) -> None:
        if query.name in names:
            raise OptionError(f"query '{query.name}' exists already; drop it first or choose another name")
        if query.name not in self.opened and any(relation.source == query.name for relation in query.relations):
            raise OptionError(
                f"query '{query.name}' would read its own groups; give the one that reads them another name"
            )
        _refuse_overlaps(sink_places(query.name, sink.spec), self._all_places(without=query.name))

    def _frame(self, source: str) -> DataFrame:
        """Return what queries see of a source. Spark takes some milliseconds to make it, so it is kept."""
        if source not in self._frames:
            self._frames[source] = visible(self._all_opened()[source])
        return self._frames[source]

    def _with_schema_names(self, query: Query) -> Query:
        """Return the query with every column named as in the schemas, which are known now.

        Before, columns of a source that declares none were taken on trust, in the user's spelling.
        """
        known = {name: {column.name for column in source.schema or ()} for name, source in self.sources().items()}
        if all(column in known.get(source, ()) for source, column in query.mentioned()):
            return query
        bound = bind_query(
            name=query.name,
            select=query.text,
            sink=query.sink,
            sources=self.sources(),
            windows={
                each.alias: each.window_us for each in query.relations if not each.is_table and each.window_us != 0
            },
            predicates=self.predicates,
            is_function=self.is_function,
            file=query.place.file,
            line=query.place.line,
            column=query.place.column,
        )
        return replace(bound, places=query.places)

    def _all_places(self, without: str = "") -> tuple[Place, ...]:
        others = [(name, binding) for name, binding in tuple(self.bindings.items()) if name != without]
        sinks = (sink_places(name, binding.sink.spec) for name, binding in others)
        return (*self._places, *(place for places in sinks for place in places))

    def _time_of(self, source: str) -> str | None:
        """Return the event time of a stream if it is a TIMESTAMP: then predicates can bound it."""
        declared = self.sources()[source]
        if not isinstance(declared, Stream):
            return None
        if declared.computed is not None:
            return declared.computed.sql if declared.computed.type == "timestamp" else None
        types = {column.name: column.type for column in declared.schema or ()}
        return backquoted(declared.time) if types.get(declared.time) == "timestamp" else None

    def drop_query(self, name: str) -> Binding:
        """Forget a query; return what it was. Raises OptionError if there is none of this name."""
        if name not in self.bindings:
            known = ", ".join(self.bindings) or "none"
            raise OptionError(f"there is no query '{name}' to drop; the queries are {known}")
        self.derived.pop(name, None)
        return self.bindings.pop(name)


def _with_names(source: Source) -> Source:
    """Return the source with the columns its declarations name spelled as in the schema. Raises OptionError."""
    names: dict[str, str] = {}
    for column in source.schema or ():
        other = names.setdefault(folded(column.name), column.name)
        if other != column.name:
            raise OptionError(
                f"'{source.name}' has columns '{other}' and '{column.name}', which Spark cannot tell apart; rename one"
            )
    problem = statistics_problem(source)
    if problem is not None:
        raise OptionError(f"'{source.name}': {problem}")
    distinct = tuple((names[folded(name)], count) for name, count in source.declared.distinct)
    return replace(source, declared=replace(source.declared, distinct=distinct))


def _refuse_overlaps(places: Iterable[Place], others: Iterable[Place]) -> None:
    """Raise SinkError for directories that lie in each other although one of them is written to."""
    known = tuple(others)
    for place in places:
        message = overlap(place, known)
        if message is not None:
            raise SinkError(f"{place.owner}: {message}")


def _checked(stream: Stream) -> Stream:
    """Refuse options of a stream that have no such value."""
    if stream.keep not in KEEPS:
        raise OptionError(f"stream '{stream.name}': keep is '{stream.keep}'; expected {' or '.join(KEEPS)}")
    if stream.placement not in PLACEMENTS:
        raise OptionError(
            f"stream '{stream.name}': placement is '{stream.placement}'; expected {' or '.join(PLACEMENTS)}"
        )
    return stream
