"""What a program declares to an engine: sources, predicates, queries and options."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from plait.arguments import mapping, number, option_text, path, shown, text
from plait.errors import ComputationError, OptionError, PlaitError
from plait.query.model import Column, DeclaredStatistics, Keep, Placement, Query, Source, Stream, Table
from plait.query.remembering import Gone
from plait.runtime.checkpoint.set_aside import SetAside
from plait.runtime.engine_options import EngineOptions
from plait.runtime.inputs.opening import (
    CORRUPT,
    OpenSource,
    open_source,
    read_by,
    refuse_misfit,
    schema_columns,
    schema_of,
)
from plait.runtime.notice import Notice
from plait.runtime.outputs.binding import Binding
from plait.runtime.registry import Registry
from plait.runtime.requests import Request, Requests
from plait.runtime.setting_aside import SettingAside
from plait.sinks import Sink
from plait.sql.lexis.durations import delay_us, idle_us, refresh_us, window_us
from plait.sql.lexis.text import SourceText
from plait.sql.script.check import Script
from plait.sql.select.binder import bind_query
from plait.sql.select.view_parts import View
from plait.sql.statements import WindowOverride
from plait.state.place import state_of


@dataclass(slots=True)
class QueryHandle:
    """A registered query. While an engine runs it waits for the next boundary between two batches. Results of a memory
    sink live as long as it does, also after the query was dropped.
    """

    name: str
    _binding: Binding
    _request: Request
    _aside: Callable[[Binding], SetAside | None]

    @property
    def active_since(self) -> int | None:
        """The first batch that answers it; None as long as none does."""
        return self._request.active_since

    def wait_active(self, timeout: float | None = None) -> bool:
        """Wait until it is decided which batch is the first that answers it, at most `timeout` seconds and while the
        run goes on; tell whether it is. Raises the reason if the engine, running already, cannot take the query, or has
        set it aside since.
        """
        is_active = self._request.wait(timeout)
        reason = self.set_aside
        if reason is not None:
            raise ComputationError(reason)
        return is_active

    @property
    def set_aside(self) -> str | None:
        """Why the query is set aside, so that no batch answers it; None as long as it is not."""
        known = self._aside(self._binding)
        return None if known is None else known.text

    def results(self) -> pa.Table:
        """Return all results of a query with a memory sink so far, as an Arrow table."""
        return self._binding.results()


class Declarations(ABC):
    """Everything that is registered on one checkpoint, by any thread. `_dropped`: the queries whose results may be
    discarded. `_requests`: queries that were added or dropped, until a batch takes place with them or without.
    `_setting_aside`: the queries that no batch answers because what they compute fails.
    """

    def __init__(self, spark: SparkSession, checkpoint: str) -> None:
        self._spark = spark
        self._registry = Registry(spark, checkpoint)
        self._options = EngineOptions()
        self._dropped: set[str] = set()
        self._of_script: list[Notice] = []
        self._requests = Requests()
        self._setting_aside = SettingAside(lambda: state_of(checkpoint))
        self._gone = Gone()
        self._declaring = threading.RLock()

    @abstractmethod
    def results(self, query: str) -> pa.Table:
        """Return all results of a query with a memory sink so far."""

    @abstractmethod
    def _heard_of(self, request: Request) -> None:
        """Let a run that goes on hear of a request. Raises SinkError if the sink holds results of somebody else."""

    def stream(
        self,
        name: str,
        frame: DataFrame | None = None,
        *,
        time: str,
        format: str | None = None,
        schema: str | StructType | None = None,
        options: Mapping[str, object] | None = None,
        window: str | None = "unbounded",
        delay: str = "0 seconds",
        idle: str | None = None,
        dead_letter: str | None = None,
        keep: Keep = "needed",
        placement: Placement = "keys",
        rate: float | None = None,
        distinct: Mapping[str, float] | None = None,
    ) -> None:
        """Register a streaming DataFrame; or, with `format` (and `options` such as the path, and `schema` as Spark
        DDL where Spark wants one), a stream that Plait opens itself, as ``CREATE STREAM`` does, and reads in batches of
        the right size: what is read of a DataFrame is bounded by its own options alone. `time` names the event-time
        column; durations are like ``"30 seconds"``.

        On a session of `plait.runtime.spark.session.open_session`, or with its settings `NAMED_SOURCES`, load the frame
        with ``spark.readStream.name(...)``: streams can then be added and dropped on the same checkpoint.
        """
        owner = f"stream '{name}'"
        source = Stream(
            name=text("Engine.stream", "name", name, "'orders'"),
            time=text(owner, "time", time, "'ts' or 'timestamp_millis(ms)'"),
            window_us=window_us(window),
            delay_us=delay_us(delay),
            idle_us=None if idle is None else idle_us(idle),
            dead_letter=None if dead_letter is None else path(owner, "dead_letter", dead_letter),
            keep=keep,
            placement=placement,
            declared=DeclaredStatistics(rate_rows_per_s=number(rate), distinct=_counts(owner, distinct)),
        )
        if frame is None:
            given = mapping(owner, "options", options, "{'path': 'in/orders'}")
            said = {key: option_text(owner, key, value) for key, value in given.items() if value is not None}
            kind = None if format is None else text(owner, "format", format, "'parquet'")
            connector = read_by(name, kind, said)
            declared = replace(source, connector=connector, schema=None if schema is None else schema_columns(schema))
            refuse_misfit(declared, connector)
            self._registry.add_source(open_source(self._spark, declared))
            return
        if format is not None:
            raise OptionError(f"stream '{name}': expected a DataFrame or a format, found both; leave one out")
        _refuse_other_frame(name, frame, "let Plait open files: format='parquet', options={'path': 'in'}")
        corrupt = CORRUPT if CORRUPT in frame.columns else None
        self._registry.add_source(OpenSource(source=source, frame=frame, corrupt_column=corrupt))

    def table(
        self,
        name: str,
        frame: DataFrame | Callable[[], DataFrame],
        *,
        rows: float | None = None,
        distinct: Mapping[str, float] | None = None,
        refresh: str | None = None,
    ) -> None:
        """Register a static DataFrame. It is read once, when the engine first needs it on this checkpoint; or again and
        again, between two batches, with `refresh`, how often, such as ``"10 minutes"``. Then it is a function that
        returns the DataFrame, since one that is there has listed its files: ``lambda: spark.read.csv("rates")``.
        """
        text("Engine.table", "name", name, "'products'")
        again = None if isinstance(frame, DataFrame) else frame
        if (refresh is None) == callable(again):
            raise OptionError(
                f"table '{name}': expected a DataFrame, or, with refresh, a function that returns one: lambda: "
                f"spark.read.parquet('products'); found {shown(frame)} and refresh {refresh!r}"
            )
        opened = again() if callable(again) else frame
        _refuse_other_frame(name, opened, "open files with spark.read")
        source = Table(
            name=name,
            declared=DeclaredStatistics(rows=number(rows), distinct=_counts(f"table '{name}'", distinct)),
            refresh_us=None if refresh is None else refresh_us(refresh),
        )
        self._registry.add_source(OpenSource(source=source, frame=opened, again=again))

    def view(self, name: str, select: str, *, windows: Mapping[str, str | None] | None = None) -> None:
        """Register a view: queries added later read it like a stream or table, as does ``CREATE VIEW``. `windows`: of
        its relations, where they are not the streams' own.
        """
        owner = f"view '{text('Engine.view', 'name', name, repr('large'))}'"
        given = mapping(owner, "windows", windows, "{'o': '10 seconds'}")
        written = text(owner, "select", select, "'SELECT o.id, o.qty * o.price AS total FROM orders o'")
        lengths = (WindowOverride(alias=alias, window_us=window_us(window)) for alias, window in given.items())
        self._registry.add_view(View(name=name, text=SourceText(text=written), windows=tuple(lengths)))

    def predicate(self, name: str, function: Callable[..., pa.Array]) -> None:
        """Register a join predicate that queries call by `name`: ``... JOIN b ON similar(a.name, b.name)``.

        `function` takes one Arrow array per argument, all of one length, and returns a boolean array of that length;
        NULL counts as false. It runs in Spark's Python workers, must depend on its arguments alone, and has to be
        registered again, the same, by every program that opens the checkpoint.
        """
        self._registry.add_predicate(text("Engine.predicate", "name", name, "'similar'"), function)

    def query(
        self,
        name: str,
        select: str,
        *,
        sink: Sink,
        windows: Mapping[str, str | None] | None = None,
    ) -> QueryHandle:
        """Register a continuous query. `windows` overrides the streams' windows per relation.

        While the engine runs, the query takes part from the next batch boundary on and sees every tuple still kept.
        All that is asked for until then takes effect together; the handle says when that is.
        """
        binding = self._registry.confirmed(
            self.bound(name, select, sink=sink, windows=windows), sink
        )  # takes a while, and no turn
        return self._handle(binding, self._add_query(binding))

    def replace(
        self,
        name: str,
        select: str,
        *,
        sink: Sink,
        windows: Mapping[str, str | None] | None = None,
    ) -> QueryHandle:
        """Drop a query and register another under its name, so that no batch goes without. If the new one is refused,
        the old one stays.
        """
        binding = self._registry.confirmed(self.bound(name, select, sink=sink, windows=windows), sink, replaces=True)
        with self._declaring:
            self._registry.refuse_read(name)
            before = self._registry.drop_query(name)
            try:
                request = self._add_query(binding)
            except PlaitError:
                self._registry.restore_query(before)
                raise
            self._dropped.add(name)
            self._setting_aside.forget(name)
            self._gone.note(1, left=len(self._registry.bindings))
        return self._handle(binding, request)

    def retry(self, name: str) -> QueryHandle:
        """Have a query tried once more that was set aside because what it computes failed for some row. It goes on with
        what comes, from the next batch boundary on. Raises OptionError if it is not set aside.
        """
        name = text("Engine.retry", "name", name, "'late'")
        with self._declaring:
            self._refuse_over_aside(name)
            if not self._setting_aside.forget(name):
                raise OptionError(f"query '{name}' is not set aside, so there is nothing to try again")
            binding = self._registry.bindings.get(name)
            if binding is None:
                raise OptionError(f"there is no query '{name}' here; it will be tried where there is one")
            request = Request(name, is_retry=True)
            self._requests.add(request)
            self._heard_of(request)
        return self._handle(binding, request)

    def _handle(self, binding: Binding, request: Request) -> QueryHandle:
        return QueryHandle(binding.query.name, binding, request, self._setting_aside.of)

    def bound(
        self,
        name: str,
        select: str,
        *,
        sink: Sink,
        windows: Mapping[str, str | None] | None = None,
        among: Registry | None = None,
    ) -> Query:
        """Return a query as it would be added, so far as Spark need not be asked; or added `among` what is registered
        elsewhere. Raises SqlError for what is wrong.
        """
        registry = self._registry if among is None else among
        owner = f"query '{text('Engine.query', 'name', name, repr('late'))}'"
        _refuse_other_sink(name, sink)
        given = mapping(owner, "windows", windows, "{'o': '10 seconds'}")
        return bind_query(
            name=name,
            select=text(owner, "select", select, "'SELECT o.id FROM orders o JOIN items i ON o.id = i.id'"),
            sink=sink.spec,
            windows={alias: window_us(window) for alias, window in given.items()},
            sources=registry.sources(),
            views=registry.readable(),
            predicates=registry.predicates,
            is_function=registry.is_function,
        )

    def _add_query(self, binding: Binding) -> Request:
        request = Request(binding.query.name)
        with self._declaring:
            self._registry.add_query(binding)
            self._requests.add(request)  # before a run hears of it, which looks at once, and then not again
            try:
                self._refuse_over_aside(binding.query.name)
                self._heard_of(request)
            except PlaitError as error:
                self._registry.drop_query(binding.query.name)
                self._requests.refuse(request, error)
                raise
        return request

    def _refuse_over_aside(self, query: str) -> None:
        """Raise OptionError if a query reads the groups of one that is set aside: nothing would come of it."""
        aside = {each.query for each in self._setting_aside.among(self._registry.bindings)} - {query}
        read = self._registry.readers_of(aside).get(query)
        if read is not None:
            raise OptionError(
                f"query '{query}' reads the groups of query '{read}', which is set aside; have that tried once more "
                f"first: engine.retry('{read}')"
            )

    def drop(self, name: str) -> None:
        """Drop a query; while the engine runs, at the next batch boundary. When none is left it waits for another.

        Results that its sink has not taken are discarded; those of a query that a later start only leaves out wait.
        """
        with self._declaring:
            self._registry.refuse_read(text("Engine.drop", "name", name, "'late'"))
            self._registry.drop_query(name)
            self._setting_aside.forget(name)
            self._dropped.add(name)
            self._gone.note(1, left=len(self._registry.bindings))
            gone = OptionError(f"query '{name}' was dropped before it took effect")
            for waiting in self._requests.waiting():
                if waiting.query == name and not waiting.is_drop:
                    self._requests.refuse(waiting, gone)
            request = Request(name, is_drop=True)
            self._requests.add(request)
            self._heard_of(request)

    def sources(self) -> dict[str, Source]:
        """Return the registered streams and tables by name."""
        return self._registry.sources()

    def queries(self) -> dict[str, Query]:
        """Return the registered queries by name, those that are set aside too."""
        return {name: binding.query for name, binding in tuple(self._registry.bindings.items())}

    def load(self, script: Script) -> None:
        """Apply a script (`plait.sql.load_script`): its options, sources, views and queries."""
        if not isinstance(script, Script):
            raise OptionError(
                f"expected a script, found {shown(script)}; Engine.load takes what plait.sql.load_script(text) returns"
            )
        with self._declaring:
            for option in script.options:
                self.set_option(option.name, option.value)
            for source in script.sources:
                if source.name not in self._registry.opened:
                    self._registry.add_source(open_source(self._spark, source))
            self._dropped |= set(script.drops) - {query.name for query in script.queries}
            for query in script.queries:
                self._add_query(self._registry.confirmed(query, Sink(spec=query.sink)))
            for view in script.views:  # which may read the groups of queries
                self._registry.add_view(view)
        told = (Notice(kind="no window", of=warning.stream, text=str(warning)) for warning in script.warnings)
        self._of_script += [notice for notice in told if notice not in self._of_script]

    def describe_source(self, source: Source) -> tuple[Column, ...]:
        """Return the schema that Spark finds for a source without a declared one."""
        return schema_of(open_source(self._spark, source).frame)

    def set_option(self, name: str, value: str | float | None) -> None:
        """Set ``plait.strategy``, ``plait.parallelism``, ``plait.routing`` and the like; any ``spark.*`` goes to the
        session. Raises OptionError for what ``SET`` in a script would refuse.
        """
        self._options.apply(self._spark, name, value)


def _refuse_other_frame(name: str, frame: object, advice: str) -> None:
    if not isinstance(frame, DataFrame):
        raise OptionError(f"'{name}': expected a Spark DataFrame, found {shown(frame)}; {advice}")


def _refuse_other_sink(query: str, sink: object) -> None:
    if isinstance(sink, Sink):
        return
    if callable(sink):
        advice = "call the function of plait.sinks; one of your own is plait.sinks.foreach(function)"
    else:
        advice = "write for example sink=plait.sinks.parquet('out')"
    raise OptionError(f"query '{query}': expected a sink of plait.sinks, found {shown(sink)}; {advice}")


def _counts(owner: str, distinct: Mapping[str, float] | None) -> tuple[tuple[str, float], ...]:
    given = mapping(owner, "distinct", distinct, "{'customer': 500}")
    return tuple(sorted((name, number(count)) for name, count in given.items()))
