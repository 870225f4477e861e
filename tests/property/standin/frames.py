"""DataFrames: lazily evaluated, cut into partitions, each an Arrow table."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyspark
from pyspark.errors import PySparkException, PythonException
from pyspark.sql.functions import expr
from pyspark.sql.types import DataType, StructType
from sqlglot import exp

import plait.runtime.engine  # noqa: F401  # so that all modules that use `expr` are there to be patched
from plait.operators.ingest.placed_rows import is_told
from plait.operators.ingest.projection import IngestSpec
from plait.plan.key_groups import Generation
from plait.runtime.batch import streaming_query
from plait.runtime.spark import tasks
from tests.oracle.intervals import without_durations
from tests.oracle.translate import connect, rendered, to_duckdb
from tests.property.sending import sent
from tests.property.standin.types import Schema, arrow_schema, as_declared, of_duckdb, schema_of, struct_of
from tests.property.standin.windows import WINDOW, parsed, windows_of, with_windows

Inputs = Mapping[str, pa.Table]
"""What a micro-batch brings, by name of the source."""

Parts = list[pa.Table]
Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_NAME = re.compile(r"`(?:[^`]|``)+`|\w+")
_TO_INTERVAL = re.compile(r"CAST\(.* AS (INTERVAL [A-Z ]+)\)", re.IGNORECASE)
_SUM = re.compile(r"^(?!.*(CAST|CASE|IS|hash\w*\(|[=<>])).*[-+*]", re.DOTALL)
_lock = threading.RLock()
_task = threading.local()


@dataclass(frozen=True, slots=True)
class TaskContext:
    """What a task may ask about itself."""

    number: int
    batch: int | None

    def partitionId(self) -> int:
        return self.number

    def getLocalProperty(self, name: str) -> str | None:
        return str(self.batch) if name == "streaming.sql.batchId" and self.batch is not None else None


class WorkerEnded(BaseException):
    """Ends the worker of the task in which it is raised, as ``os._exit`` does."""


def _current_task() -> TaskContext | None:
    return getattr(_task, "context", None)


def install(patch: Callable[[object, str, object], None]) -> None:
    """Let tasks find their context, and keep nothing out of sight of a process that is not theirs alone; `patch` sets
    an attribute, and takes it back in time.
    """
    patch(tasks, "keep_out_of_sight", lambda: None)
    patch(pyspark.TaskContext, "get", staticmethod(_current_task))
    patch(streaming_query, "sent_frame", sent_by_tables)
    patch(StructType, "fromDDL", staticmethod(lambda ddl: struct_of(schema_of(ddl))))
    for name, module in list(sys.modules.items()):
        if name.startswith("plait.") and getattr(module, "expr", None) is expr:
            patch(module, "expr", Expression)


def sent_by_tables(frame: Frame, spec: IngestSpec, generation: Generation) -> Frame:
    """Send rows as `tests.property.sending` says; Spark's own expressions for it are more than DuckDB can be told."""
    if not is_told(spec, generation):
        return frame
    schema = (*frame.columns_, ("sent", "bigint"))

    def parts(inputs: Inputs, batch: int | None) -> Parts:
        whole = pa.concat_tables([arrow_schema(frame.columns_).empty_table(), *frame.parts(inputs, batch)])
        if not whole.num_rows:
            return [arrow_schema(schema).empty_table()]
        named = whole.rename_columns([name for name, _ in spec.projection])
        return [arrived.rename_columns([name for name, _ in schema]) for arrived in sent(named, spec, generation)]

    return replace(frame, columns_=schema, parts=parts)


class Expression(str):
    """A Column: its SQL text."""

    def cast(self, type_: DataType) -> Expression:
        return Expression(f"CAST(({self}) AS {type_.simpleString()})")

    def alias(self, name: str) -> Expression:
        return Expression(f"{self} AS `{name.replace('`', '``')}`")


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A DataFrame. `parts` computes its partitions from the inputs of a micro-batch (none for a static one).

    `sources`: (name, folder, schema, most bytes a batch) of the streams it reads; `files`: those a static one is read
    from.
    """

    columns_: Schema
    parts: Callable[[Inputs, int | None], Parts]
    sources: tuple[tuple[str, str, Schema, int | None], ...] = ()
    session: Any = None
    files: tuple[str, ...] = ()

    @property
    def isStreaming(self) -> bool:
        return bool(self.sources)

    @property
    def columns(self) -> list[str]:
        return [name for name, _ in self.columns_]

    @property
    def schema(self) -> StructType:
        return struct_of(self.columns_)

    def explain(self, mode: str) -> None:
        """Show what it reads, as Spark does."""
        for name, folder, *_ in self.sources:
            print(f'StreamingRelation FileSource[{folder}], [], name="{name}"')

    def __getitem__(self, name: str) -> str:
        return name

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the stand-in for Spark has no DataFrame.{name}: add it to tests/property/standin")

    # -- transformations -----------------------------------------------------------------------------------------------

    def selectExpr(self, *expressions: str) -> Frame:
        schema = select_schema(self.columns_, expressions)
        return replace(
            self,
            columns_=schema,
            parts=lambda inputs, batch: [select(part, expressions, schema) for part in self.parts(inputs, batch)],
        )

    def select(self, *names: str) -> Frame:
        return self.selectExpr(*names)

    def toDF(self, *names: str) -> Frame:
        return replace(
            self,
            columns_=tuple((name, type_) for name, (_, type_) in zip(names, self.columns_, strict=True)),
            parts=lambda inputs, batch: [part.rename_columns(names) for part in self.parts(inputs, batch)],
        )

    def withColumn(self, name: str, expression: str) -> Frame:
        windows = windows_of(expression)
        return replace(
            self,
            columns_=(*self.columns_, (name, WINDOW)),
            parts=lambda inputs, batch: [with_windows(part, name, windows) for part in self.parts(inputs, batch)],
        )

    def where(self, condition: str) -> Frame:
        return replace(self, parts=lambda inputs, batch: [_kept(part, condition) for part in self.parts(inputs, batch)])

    def mapInArrow(self, task: Task, schema: str | StructType) -> Frame:
        declared = schema_of(schema)

        def parts(inputs: Inputs, batch: int | None) -> Parts:
            found = self.parts(inputs, batch)
            return [_run(task, part, TaskContext(number, batch), declared) for number, part in enumerate(found)]

        return replace(self, columns_=declared, parts=parts)

    def coalesce(self, most: int) -> Frame:
        def parts(inputs: Inputs, batch: int | None) -> Parts:
            found = self.parts(inputs, batch)
            groups = [found[number::most] for number in range(min(most, len(found)))]
            return [pa.concat_tables(group) for group in groups]

        return replace(self, parts=parts)

    def repartitionById(self, count: int, column: str) -> Frame:
        def parts(inputs: Inputs, batch: int | None) -> Parts:
            whole = pa.concat_tables([arrow_schema(self.columns_).empty_table(), *self.parts(inputs, batch)])
            if isinstance(column, Expression):  # where a row is best stored; any place will do
                return [
                    whole.take(pa.array(range(number, whole.num_rows, count), pa.int64())) for number in range(count)
                ]
            return [whole.filter(pc.equal(whole.column(column), number)) for number in range(count)]

        return replace(self, parts=parts)

    def union(self, other: Frame) -> Frame:
        return Frame(
            self.columns_,
            lambda inputs, batch: [*self.parts(inputs, batch), *other.parts(inputs, batch)],
            (*self.sources, *other.sources),
            self.session,
        )

    def limit(self, rows: int) -> Frame:
        def parts(inputs: Inputs, batch: int | None) -> Parts:
            empty = arrow_schema(self.columns_).empty_table()
            return [pa.concat_tables([empty, *self.parts(inputs, batch)]).slice(0, rows)]

        return replace(self, parts=parts)

    # -- actions -------------------------------------------------------------------------------------------------------

    def toArrow(self) -> pa.Table:
        return pa.concat_tables([arrow_schema(self.columns_).empty_table(), *self.parts({}, None)])

    def collect(self) -> list[dict[str, Any]]:
        return [row for part in self.parts({}, None) for row in part.to_pylist()]

    def persist(self) -> Frame:
        """Return itself: what it has is computed once more."""
        return self

    def unpersist(self) -> Frame:
        """Return itself."""
        return self

    def inputFiles(self) -> list[str]:
        return list(self.files)

    def of_batch(self, inputs: Inputs, batch: int) -> Frame:
        """Return what a micro-batch hands over: planned already, evaluated with every action."""
        return replace(self, parts=lambda *_: self.parts(inputs, batch), sources=())

    @property
    def writeStream(self) -> Any:
        return self.session.stream_writer(self)

    @property
    def write(self) -> _Writer:
        return _Writer(self)


@dataclass(slots=True)
class _Writer:
    """Writes Parquet files, one a partition that has rows; or nothing, once all is computed."""

    frame: Frame
    is_discarded: bool = False

    def format(self, name: str) -> _Writer:
        if name not in ("parquet", "noop"):
            raise NotImplementedError(f"the stand-in for Spark writes no {name}")
        return replace(self, is_discarded=name == "noop")

    def options(self, **_: str) -> _Writer:
        return self

    def mode(self, _: str) -> _Writer:
        return self

    def save(self, path: str = "") -> None:
        if self.is_discarded:
            self.frame.parts({}, None)
            return
        folder = Path(path.removeprefix("file://"))
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for number, part in enumerate(self.frame.parts({}, None)):
            if part.num_rows:
                pq.write_table(part, folder / f"part-{number:05d}.parquet")


def _run(task: Task, part: pa.Table, context: TaskContext, declared: Schema) -> pa.Table:
    """Run a task over one partition; whatever it raises comes out as Spark passes on what a Python worker raised."""
    _task.context = context
    try:
        batches = list(task(iter(part.combine_chunks().to_batches())))
    except WorkerEnded as error:
        raise PythonException("Python worker exited unexpectedly (crashed)") from error
    except Exception as error:
        raise PythonException(f"{type(error).__module__}.{type(error).__name__}: {error}") from error
    finally:
        _task.context = None
    if not batches:
        return arrow_schema(declared).empty_table()
    return as_declared(pa.Table.from_batches(batches), declared)


# -- expressions, by DuckDB --------------------------------------------------------------------------------------------


@cache
def _database() -> Any:
    return connect()


@cache
def select_schema(columns: Schema, expressions: tuple[str, ...]) -> Schema:
    """Return the schema of a projection: of a bare column the column's own type, else what DuckDB infers."""
    with _lock:
        database = _database()
        database.register("#part", _readable(arrow_schema(columns).empty_table()))
        relation = database.sql(_projection(expressions))
        found = list(zip(relation.columns, map(str, relation.types), strict=True))
        database.unregister("#part")
    known = dict(columns)
    bare = [_type_of(_cut(expression)[0], known) for expression in expressions]
    if expressions[0] == "*":
        bare = [type_ for _, type_ in columns] + bare[1:]
    return tuple(
        (name, type_ or of_duckdb(inferred))
        for (name, inferred), type_ in zip_longest(found, bare[: len(found)], fillvalue=None)
    )


def _type_of(sql: str, known: Mapping[str, str]) -> str | None:
    """Return the type of a column, or of what is an interval and a number to DuckDB: a cast to one, and sums of such
    columns. None: DuckDB knows.
    """
    cast = _TO_INTERVAL.fullmatch(sql)
    if cast is not None:
        return cast[1].lower()
    read = [type_ for name, type_ in known.items() if f"`{name.replace('`', '``')}`" in sql]
    is_sum = _SUM.search(sql) is not None and any(type_.startswith("interval") for type_ in read)
    return read[0] if is_sum else known.get(sql.strip("`").replace("``", "`"))


def select(part: pa.Table, expressions: tuple[str, ...], schema: Schema) -> pa.Table:
    """Evaluate a projection over a table; the order of rows stays."""
    with _lock:
        database = _database()
        database.register("#part", _readable(part))
        try:
            return as_declared(database.sql(_projection(expressions)).to_arrow_table(), schema)
        except duckdb.Error as error:
            raise PySparkException(message=str(error)) from error
        finally:
            database.unregister("#part")


def _kept(part: pa.Table, condition: str) -> pa.Table:
    """Return the rows of a table for which a condition holds."""
    asked = f'SELECT {rendered(parsed(condition))} FROM "#part"'
    with _lock:
        database = _database()
        database.register("#part", _readable(part))
        held = database.sql(asked).to_arrow_table().column(0).combine_chunks()
        database.unregister("#part")
    return part.filter(held)


def _readable(table: pa.Table) -> pa.Table:
    """Return the table as expressions read it: intervals as numbers. DuckDB takes no table without columns."""
    table = without_durations(table)
    return table if table.num_columns else table.append_column("#none", pa.nulls(table.num_rows))


@cache
def _projection(expressions: tuple[str, ...]) -> str:
    items = ", ".join(_item(expression) for expression in expressions)
    return f'SELECT {items} FROM "#part"'


def _item(expression: str) -> str:
    sql, name = _cut(expression)
    return to_duckdb(sql) if name is None else f"{to_duckdb(sql)} AS " + '"' + name.replace('"', '""') + '"'


def _cut(expression: str) -> tuple[str, str | None]:
    """Cut an expression into SQL and the name behind AS, None if there is none."""
    sql, separator, name = expression.rpartition(" AS ")
    if not separator or not _NAME.fullmatch(name) or sql.count("(") != sql.count(")"):
        return expression, None
    return sql, name[1:-1].replace("``", "`") if name.startswith("`") else name


def schema_of_query(text: str, tables: Mapping[str, Schema]) -> Schema:
    """Return the schema of a SELECT over tables of these schemas."""
    with _lock:
        database = _database()
        for name, schema in tables.items():
            database.register(name, arrow_schema(schema).empty_table())
        try:
            tree = parsed(text)
            tree.set("where", None)  # it has no part in the types, and intervals are no numbers here
            relation = database.sql(rendered(tree))
            return tuple(
                (name, of_duckdb(str(type_))) for name, type_ in zip(relation.columns, relation.types, strict=True)
            )
        finally:
            for name in tables:
                database.unregister(name)


def rows_of_query(text: str, schema: Schema, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Return what a SELECT over tables has, as this schema says."""
    tree = parsed(text)
    for name in tree.find_all(exp.Identifier):
        name.set("quoted", True)
    with _lock:
        database = _database()
        for table, rows in tables.items():
            database.register(table, _readable(rows))
        try:
            return as_declared(database.sql(rendered(tree)).to_arrow_table(), schema)
        except duckdb.OutOfRangeException as error:
            raise PySparkException(message=f"[ARITHMETIC_OVERFLOW] {error} SQLSTATE: 22003") from error
        except duckdb.Error as error:
            raise PySparkException(message=str(error)) from error
        finally:
            for table in tables:
                database.unregister(table)
