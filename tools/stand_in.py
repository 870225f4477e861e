"""A stand-in for Spark's session: answers what the driver asks for one batch of bigint columns, without a JVM.

DuckDB evaluates expressions, tasks run in this process when their frame is collected. It is here to follow the driver
(`tools/returns.py`), not to hold results: those are tested with Spark.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from tests.oracle.translate import connection, to_duckdb

_SETTINGS = {
    "spark.master": "local[1]",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true",
}
Batches = Iterable[pa.RecordBatch]


@contextmanager
def elsewhere() -> Iterator[None]:
    """Do what a worker does: nobody who follows the driver sees it."""
    follower = sys.getprofile()
    sys.setprofile(None)
    try:
        yield
    finally:
        sys.setprofile(follower)


class Frame:
    """A DataFrame: `rows` makes its batches when they are wanted, `schema` is Spark's."""

    def __init__(self, rows: Callable[[], Batches], schema: StructType, *, streaming: bool = False) -> None:
        self._rows, self.schema, self.isStreaming = rows, schema, streaming
        self.columns = schema.names

    def selectExpr(self, *expressions: str) -> Frame:
        """Compute these columns, bigint all of them as far as anybody asks."""

        def selected() -> Batches:
            connection().register("arrived", pa.Table.from_batches(list(self._rows())))
            named = (each.rpartition(" AS ") for each in expressions)
            columns = ", ".join(f"{to_duckdb(sql)} AS {name}" for sql, _, name in named)
            return connection().sql(f"SELECT {columns} FROM arrived").to_arrow_table().to_batches()

        fields = [StructField(f"c{number}", LongType()) for number in range(len(expressions))]
        return Frame(selected, StructType(fields), streaming=self.isStreaming)

    def select(self, *columns: Any) -> Frame:
        """Keep these columns."""
        return Frame(self._rows, self.schema, streaming=self.isStreaming)

    def mapInArrow(self, task: Callable[[Iterator[pa.RecordBatch]], Batches], schema: object) -> Frame:
        """Let one task have all rows."""
        known = schema if isinstance(schema, StructType) else StructType([])
        return Frame(lambda: task(iter(self._rows())), known, streaming=self.isStreaming)

    def union(self, other: Frame) -> Frame:
        """Put the other frame's rows behind these."""
        return Frame(lambda: [*self._rows(), *other._rows()], self.schema, streaming=self.isStreaming)

    def toArrow(self) -> pa.Table:
        """Return no rows, with the schema that there would be."""
        return pa.schema([(name, pa.int64()) for name in self.schema.names]).empty_table()

    def collect(self) -> list[dict[str, Any]]:
        """Run the tasks."""
        with elsewhere():
            return [row for batch in self._rows() for row in batch.to_pylist()]

    def as_it_is(self, *_: object, **__: object) -> Any:
        """Stand for whatever changes nothing here."""
        return self

    coalesce = limit = toDF = as_it_is

    @property
    def write(self) -> Any:
        """Write into a directory what Spark would: a file."""
        return _Builder(save=lambda path: _write(path))

    @property
    def writeStream(self) -> Any:
        """Start a streaming query of one batch."""
        process: list[Callable[[Any, int], None]] = []
        return _Builder(foreachBatch=process.append, start=lambda: StreamingQuery(self, process[0]))


class StreamingQuery:
    """Carries out its one batch for whoever waits for its end."""

    isActive = False

    def __init__(self, frame: Frame, process: Callable[[Any, int], None]) -> None:
        self._frame, self._process = frame, process

    def awaitTermination(self) -> None:
        """Carry out the batch, as Spark's own thread would."""
        self._process(self._frame, 0)

    def stop(self) -> None:
        """Nothing goes on."""


class _Builder:
    """Takes any setting; `ends` are the calls that do something."""

    def __init__(self, **ends: Callable[..., Any]) -> None:
        self._ends = ends

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **_: Any) -> Any:
            if name not in self._ends:
                return self
            outcome = self._ends[name](*arguments)
            return self if outcome is None else outcome

        return call


class _Reader(_Builder):
    def __init__(self, frames: Mapping[str, Frame]) -> None:
        chosen: list[str] = []
        super().__init__(name=chosen.append, load=lambda _: frames[chosen[-1]])


class Session:
    """A Spark session whose streams are `tables`, and whose queries have results of `columns`."""

    sparkContext = None

    def __init__(self, tables: Mapping[str, pa.Table], columns: Iterable[str]) -> None:
        self._output = StructType([StructField(name, LongType()) for name in columns])
        self._frames = {name: _stream(table) for name, table in tables.items()}
        self.conf = SimpleNamespace(get=lambda name, default=None: _SETTINGS.get(name, default), set=_SETTINGS.get)
        self.catalog = SimpleNamespace(functionExists=lambda _: False)

    @property
    def readStream(self) -> Any:
        """Read one of the tables."""
        return _Reader(self._frames)

    def sql(self, text: str, **frames: object) -> Frame:
        """Confirm a query."""
        return Frame(list, self._output)

    def range(self, start: int, end: int | None = None, *_: int) -> Frame:
        """Return numbers, from nought if there is only one bound."""
        numbers = pa.array(range(start) if end is None else range(start, end), pa.int64())
        return Frame(lambda: [pa.record_batch([numbers], ["id"])], StructType([StructField("id", LongType())]))

    def createDataFrame(self, table: pa.Table, schema: StructType) -> Frame:
        """Return the rows as a frame."""
        return Frame(table.to_batches, schema)


def _stream(table: pa.Table) -> Frame:
    kinds = {pa.int64(): LongType(), pa.string(): StringType()}
    fields = [StructField(field.name, kinds.get(field.type, TimestampType())) for field in table.schema]
    return Frame(table.to_batches, StructType(fields), streaming=True)


def _write(path: str) -> None:
    directory = Path(urlsplit(path).path)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "part-00000-stand-in.json").write_text("{}\n")


class Column:
    """An expression."""

    def __init__(self, text: str) -> None:
        self.text = text

    def as_it_is(self, *_: object) -> Column:
        """Stand for a cast, a name."""
        return self

    cast = alias = as_it_is


__all__ = ["Column", "Session", "elsewhere"]
