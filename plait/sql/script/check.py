"""Whole scripts: everything that is wrong with one, what a right one says, and what in it is probably not meant."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from plait.errors import OptionError, PlacedError, SqlError
from plait.query.model import Query, Relation, Source, Stream
from plait.query.windows import with_narrow_windows
from plait.sql.expressions.scope import SchemaUnknownError
from plait.sql.lexis.names import backquoted, did_you_mean, folded
from plait.sql.lexis.text import SourceText
from plait.sql.predicates.evaluation import resolve_known_residuals
from plait.sql.script.reading import Reading, read_script
from plait.sql.script.set_options import checked_option, source_option_problem
from plait.sql.script.sinks import Mistake, overlap_problems, partition_problems, sink_problems
from plait.sql.script.sources import SchemaOf, SourceCheck
from plait.sql.select.binder import bind_statement, view_problems
from plait.sql.select.derived import derived_stream, still_read
from plait.sql.select.view_parts import View
from plait.sql.statements import CreateQuery, CreateStream, CreateTable, CreateView, DropQuery, SetOption

_INFERENCE = "spark.sql.streaming.schemainference"
_PATTERNS = "spark.sql.legacy.timeparserpolicy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What a script amounts to: its sources, views and options, the queries left after its drops, the names it dropped,
    and what in it is probably not meant. `derived`: the groups of queries that others read, as streams.
    """

    sources: tuple[Source, ...] = ()
    derived: tuple[Stream, ...] = ()
    views: tuple[View, ...] = ()
    queries: tuple[Query, ...] = ()
    options: tuple[SetOption, ...] = ()
    drops: tuple[str, ...] = ()
    warnings: tuple[ScriptWarning, ...] = ()

    @property
    def read(self) -> tuple[Source, ...]:
        """All that queries read: what the script creates, and the groups of other queries."""
        return (*self.sources, *self.derived)

    @property
    def settings(self) -> dict[str, str]:
        """What the script SETs; a later SET of the same name wins."""
        return {option.name: option.value for option in self.options}


def check_script(
    text: str,
    *,
    file: str | None = None,
    base: str = ".",
    predicates: Collection[str] = (),
    checkpoint: str | None = None,
) -> tuple[PlacedError, ...]:
    """Return every mistake that can be found without Spark, in order of appearance. `predicates` as in `bind_query`;
    `checkpoint`: where the script will be run, if that is known.

    A script without one can still fail: what takes Spark to know (columns behind unusual formats, types inside
    expressions) is left to it.
    """
    loader = _Loader(file=file, schema_of=None, predicates=predicates, checkpoint=checkpoint)
    loader.load(read_script(text, file=file, base=base))
    problems = [problem for problem in loader.problems if not isinstance(problem, SchemaUnknownError)]
    return tuple(_in_order(problems))


def load_script(
    text: str,
    *,
    file: str | None = None,
    base: str = ".",
    schema_of: SchemaOf | None = None,
    predicates: Collection[str] = (),
) -> Script:
    """Return what a script says, queries bound. Raises its first mistake. `predicates` as in `bind_query`.

    `schema_of` is asked for the columns of a source that declares none; without it they are looked for in its files.
    """
    loader = _Loader(file=file, schema_of=schema_of, predicates=predicates)
    loader.load(read_script(text, file=file, base=base))
    for problem in _in_order(loader.problems):
        raise problem
    return loader.script()


def _in_order(problems: Iterable[PlacedError]) -> list[PlacedError]:
    return sorted(problems, key=lambda problem: (problem.line or 0, problem.column or 0))


class _Loader:
    """Goes through the statements: first what queries need (options, sources, views), then queries and drops in
    order.
    """

    def __init__(
        self,
        *,
        file: str | None,
        schema_of: SchemaOf | None,
        predicates: Collection[str],
        checkpoint: str | None = None,
    ) -> None:
        self.problems: list[PlacedError] = []
        self._file, self._schema_of, self._predicates = file, schema_of, predicates
        self._checkpoint = checkpoint
        self._sources: dict[str, Source] = {}
        self._by_name: dict[str, Source] = {}
        self._broken: set[str] = set()
        self._views: dict[str, View] = {}
        self._queries: dict[str, Query | None] = {}
        self._derived: dict[str, Stream] = {}
        self._query_statements: dict[str, CreateQuery] = {}
        self._source_statements: dict[str, CreateStream | CreateTable] = {}
        self._options: list[SetOption] = []
        self._drops: list[str] = []
        self._windowless: dict[str, tuple[int, int]] = {}

    def load(self, readings: tuple[Reading, ...]) -> None:
        for reading in readings:
            self.problems.extend(reading.problems)
            if isinstance(reading.statement, SetOption):
                self._set(reading.statement)
        for reading in readings:
            if isinstance(reading.statement, CreateStream | CreateTable):
                self._add_source(reading.statement, is_sound=not reading.problems)
            elif reading.statement is None and reading.name is not None:
                self._broken.add(folded(reading.name))
        self._add_views([reading.statement for reading in readings if isinstance(reading.statement, CreateView)])
        for reading in readings:
            if isinstance(reading.statement, CreateQuery):
                self._add_query(reading.statement)
            elif isinstance(reading.statement, DropQuery):
                self._drop(reading.statement)
        self._check_views()
        for option in self._options:
            self._check_source_of(option)
        sources = [(statement, self._sources[name]) for name, statement in self._source_statements.items()]
        self._report_all(overlap_problems(sources, self._query_statements.values(), self._checkpoint))

    def script(self) -> Script:
        queries = tuple(query for query in self._queries.values() if query is not None)
        read = {relation.source for query in queries for relation in query.relations}
        return Script(
            sources=tuple(self._sources.values()),
            derived=tuple(stream for stream in self._derived.values() if stream.name in read),
            views=tuple(self._views.values()),
            queries=queries,
            warnings=tuple(forgotten_windows(queries, self._known(), self._windowless, self._file, self._said())),
            options=tuple(self._options),
            drops=tuple(self._drops),
        )

    def _report(self, message: str, place: tuple[int, int], kind: type[PlacedError] = SqlError) -> None:
        self.problems.append(kind(message, line=place[0], column=place[1], file=self._file))

    def _report_all(self, problems: Iterable[Mistake]) -> None:
        for message, place, kind in problems:
            self._report(message, place, kind)

    def _set(self, statement: SetOption) -> None:
        place = (statement.line, statement.column)
        try:
            name, value = checked_option(statement.name, statement.value)
        except OptionError as problem:
            self._report(problem.message, place, OptionError)
            return
        self._options.append(SetOption(name=name, value=value, line=statement.line, column=statement.column))

    def _check_source_of(self, option: SetOption) -> None:
        """Refuse ``plait.parallelism.<source>`` of a source that the script does not have."""
        problem = source_option_problem(option.name, (source.name for source in self._sources.values()))
        if problem is not None and not self._broken:
            self._report(problem, (option.line, option.column), OptionError)

    def _add_source(self, statement: CreateStream | CreateTable, *, is_sound: bool) -> None:
        infers = any(option.name.lower() == _INFERENCE and option.value == "true" for option in self._options)
        check = SourceCheck(
            statement,
            file=self._file,
            schema_of=self._schema_of,
            may_infer=infers,
            old_patterns=any(
                option.name.lower() == _PATTERNS and option.value.lower() == "legacy" for option in self._options
            ),
        )
        name = folded(check.source.name)
        if name in self._sources:
            message = f"'{check.source.name}' exists already; give this stream or table another name"
            self._report(message, (statement.line, statement.column))
            return
        if is_sound:
            check.run()
        self.problems.extend(check.problems)
        self._sources[name] = self._by_name[check.source.name] = check.source
        self._source_statements[name] = statement
        if isinstance(statement, CreateStream) and "window" not in dict(statement.places):
            self._windowless[check.source.name] = (statement.line, statement.column)

    def _add_views(self, statements: Iterable[CreateView]) -> None:
        for statement in statements:
            name, place = folded(statement.name), (statement.line, statement.column)
            if name in self._sources or name in self._views:
                self._report(f"'{statement.name}' exists already; give this view another name", place)
                continue
            self._views[name] = _view_of(statement, self._file)

    def _check_views(self) -> None:
        for view in self._views.values():
            self._note(view_problems(view, self._known(), views=self._views.values(), predicates=self._predicates))

    def _known(self) -> dict[str, Source]:
        """Return the sources there are; those with mistakes, queries among them, with columns that nobody knows."""
        mistaken = self._broken | {name for name, query in self._queries.items() if query is None}
        broken = {name: Stream(name=name, time="") for name in mistaken - set(self._views)}
        taken = {*self._views, *self._sources}
        derived = {stream.name: stream for name, stream in self._derived.items() if name not in taken}
        return {**broken, **derived, **self._by_name}

    def _note(self, problems: Iterable[PlacedError]) -> None:
        """Note mistakes that are not noted yet: those of a view are those of all that read it."""
        told = {str(problem) for problem in self.problems}
        self.problems.extend(problem for problem in problems if str(problem) not in told)

    def _add_query(self, statement: CreateQuery) -> None:
        self._report_all(sink_problems(statement))
        name = folded(statement.name)
        if name in self._queries:
            message = f"query '{statement.name}' exists already; choose another name, or drop the first one"
            self._report(message, (statement.line, statement.column))
            return
        others = (
            _view_of(other, self._file) for key, other in self._query_statements.items() if key not in self._views
        )
        query, problems = bind_statement(
            statement,
            self._known(),
            views=(*self._views.values(), *others),
            file=self._file,
            predicates=self._predicates,
        )
        self._note(problems)
        self._queries[name] = None if query is None else self._with_known_types(query)
        self._query_statements[name] = statement
        if query is not None:
            self._report_all(partition_problems(statement, query))
            derived = derived_stream(query, self._known())
            if derived is not None:
                self._derived[name] = derived

    def _with_known_types(self, query: Query) -> Query:
        try:
            return resolve_known_residuals(query, self._known())
        except SqlError as problem:
            self.problems.append(problem)
            return query

    def _drop(self, statement: DropQuery) -> None:
        name = folded(statement.name)
        if name not in self._queries:
            if name not in self._broken:
                hint = did_you_mean(statement.name, [query.name for query in self._queries.values() if query])
                message = f"there is no query '{statement.name}' to drop{hint}"
                self._report(message, (statement.line, statement.column))
            return
        stream = self._derived.get(name)
        reader = None if stream is None else self._reader_of(stream)
        if reader is not None:
            self._report(still_read(statement.name, reader), (statement.line, statement.column))
            return
        self._derived.pop(name, None)
        dropped = self._queries.pop(name)
        self._query_statements.pop(name, None)
        self._drops.append(dropped.name if dropped else statement.name)

    def _said(self) -> frozenset[tuple[str, str]]:
        """Return the queries and their relations that have a window of their own."""
        statements = self._query_statements.values()
        return frozenset((each.name, folded(one.alias)) for each in statements for one in each.windows)

    def _reader_of(self, stream: Stream) -> str | None:
        """Return a query that reads the groups of another one."""
        if self._known().get(stream.name) is not stream:
            return None
        queries = (query for query in self._queries.values() if query is not None)
        return next((each.name for each in queries if any(one.source == stream.name for one in each.relations)), None)


def _view_of(statement: CreateView | CreateQuery, file: str | None) -> View:
    """Return what a statement selects, for others to read."""
    text = SourceText(text=statement.select, file=file, line=statement.select_line, column=statement.select_column)
    return View(name=statement.name, text=text, windows=statement.windows)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptWarning:
    """A warning about a stream, and where it points into the script."""

    stream: str
    message: str
    file: str | None
    line: int
    column: int

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        return f"{place}: {self.message}"


def forgotten_windows(
    queries: Iterable[Query],
    sources: Mapping[str, Source],
    windowless: Mapping[str, tuple[int, int]],
    file: str | None,
    said: Collection[tuple[str, str]] = (),
) -> Iterator[ScriptWarning]:
    """Yield a warning for each stream that is kept for ever because nobody said for how long.

    `windowless`: the streams without a WINDOW clause, and where they are created; `said`: the relations of queries,
    by folded alias, with a window in the query. A stream that is joined with tables only is not kept; nor is one for
    ever whose event time the query's own predicates bound.
    """
    told: set[str] = set()
    for query in queries:
        if sum(not relation.is_table for relation in query.relations) < 2:
            continue
        narrowed = with_narrow_windows(query, lambda source: _time_of(sources.get(source)))
        for relation in narrowed.relations:
            if relation.is_table or relation.window_us is not None or relation.source in told:
                continue
            source = sources.get(relation.source)
            is_said = (query.name, folded(relation.alias)) in said
            if isinstance(source, Stream) and source.derived is not None and not is_said:
                told.add(relation.source)
                yield _forgotten_groups(query, relation, file)
            elif relation.source in windowless:
                told.add(relation.source)
                line, column = windowless[relation.source]
                message = (
                    f"stream '{relation.source}' has no WINDOW and query '{query.name}' joins it with streams, so all "
                    f"its rows are kept for ever; write WINDOW INTERVAL 1 HOUR in CREATE STREAM {relation.source} (as "
                    "long as its rows have to wait for others), or WINDOW UNBOUNDED if that is meant"
                )
                yield ScriptWarning(stream=relation.source, message=message, file=file, line=line, column=column)


def _forgotten_groups(query: Query, relation: Relation, file: str | None) -> ScriptWarning:
    message = (
        f"query '{query.name}' joins the groups of query '{relation.source}' with streams and gives them no WINDOW, so "
        f"all of them are kept for ever; write CREATE QUERY {query.name} ... WINDOW ({relation.alias} INTERVAL 1 HOUR) "
        "AS SELECT ... (as long as they have to wait for others), or UNBOUNDED if that is meant"
    )
    line, column = query.place.line, query.place.column
    return ScriptWarning(stream=relation.source, message=message, file=file, line=line, column=column)


def _time_of(source: Source | None) -> str | None:
    """Return a stream's event time as operands have it, if it is a TIMESTAMP."""
    if not isinstance(source, Stream):
        return None
    if source.computed is not None:
        return source.computed.sql if source.computed.type == "timestamp" else None
    types = {column.name: column.type for column in source.schema or ()}
    return backquoted(source.time) if types.get(source.time) == "timestamp" else None
