"""The session, its readers, and streaming queries over folders of Parquet files."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import StreamingQueryException
from pyspark.sql.types import StructType

from tests.property.standin.frames import Frame, Inputs, rows_of_query, schema_of_query
from tests.property.standin.types import Schema, arrow_schema, as_declared, schema_of

_SLOTS = 2
_EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"


@dataclass(slots=True)
class _Settings:
    values: dict[str, str] = field(
        default_factory=lambda: {
            "spark.master": f"local[{_SLOTS}]",
            "spark.sql.session.timeZone": "UTC",
            _EVOLUTION: "true",
        }
    )

    def get(self, name: str, default: str | None = None) -> str | None:
        return self.values.get(name, default)

    def set(self, name: str, value: str) -> None:
        self.values[name] = value


class _Functions:
    """The functions Spark knows: none of the names that tests register."""

    def functionExists(self, name: str) -> bool:
        return False


class Session:
    """A SparkSession. `boundary` is called before each micro-batch with its number, and once more when all input is
    taken: whatever it does then (new files, changed queries) happens between two batches.
    """

    def __init__(self, boundary: Callable[[int, bool], None] = lambda batch, done: None) -> None:
        self.conf, self.catalog, self.boundary = _Settings(), _Functions(), boundary

    def range(self, start: int, end: int | None = None, step: int = 1, parts: int | None = None) -> Frame:
        numbers = list(range(start, end, step)) if end is not None else list(range(start))
        cut = parts or _SLOTS
        bounds = [len(numbers) * part // cut for part in range(cut + 1)]
        tables = [pa.table({"id": pa.array(numbers[low:high], pa.int64())}) for low, high in pairwise(bounds)]
        return Frame((("id", "bigint"),), lambda *_: tables if numbers else [])

    def sql(self, text: str, **frames: Frame) -> Frame:
        named = text.format(**{name: "`" + name.replace("`", "``") + "`" for name in frames})
        found = schema_of_query(named, {name: frame.columns_ for name, frame in frames.items()})
        return Frame(
            found,
            lambda *_: [rows_of_query(named, found, {name: frame.toArrow() for name, frame in frames.items()})],
        )

    def createDataFrame(self, rows: pa.Table | list[object], schema: StructType) -> Frame:
        """Return the rows, a list being empty, in as many partitions as tasks run at a time."""
        declared = schema_of(schema)
        whole = as_declared(rows, declared) if isinstance(rows, pa.Table) else arrow_schema(declared).empty_table()
        bounds = [whole.num_rows * part // _SLOTS for part in range(_SLOTS + 1)]
        parts = [whole.slice(low, high - low) for low, high in pairwise(bounds) if high > low]
        return Frame(declared, lambda *_: parts)

    @property
    def read(self) -> _Reader:
        return _Reader(self)

    @property
    def readStream(self) -> _Reader:
        return _Reader(self, is_stream=True)

    def stream_writer(self, frame: Frame) -> _StreamWriter:
        """Return the builder of a streaming query over this DataFrame."""
        return _StreamWriter(frame, self)


@dataclass(frozen=True, slots=True)
class _Reader:
    session: Session
    is_stream: bool = False
    source: str = ""
    columns: Schema = ()
    path: str = ""
    most_bytes: int | None = None

    def name(self, name: str) -> _Reader:
        return replace(self, source=name)

    def schema(self, given: str | StructType) -> _Reader:
        return replace(self, columns=schema_of(given))

    def format(self, name: str) -> _Reader:
        if name != "parquet":
            raise NotImplementedError(f"the stand-in for Spark reads no {name}")
        return self

    def option(self, name: str, value: Any) -> _Reader:
        if name == "maxBytesPerTrigger":
            return replace(self, most_bytes=int(value))
        return replace(self, path=str(value)) if name == "path" else self

    def options(self, **options: Any) -> _Reader:
        return reduce(lambda reader, option: reader.option(*option), options.items(), self)

    def load(self, path: str | None = None) -> Frame:
        folder, columns = Path((path or self.path).removeprefix("file://")), self.columns
        if not self.is_stream:
            return Frame(
                columns,
                lambda *_: [_read(file, columns) for file in _files(folder)],
                files=tuple(f"file://{file}" for file in _files(folder)),
            )
        return Frame(
            columns,
            lambda inputs, _: _in_two(inputs[self.source]),
            ((self.source, str(folder), columns, self.most_bytes),),
            self.session,
        )


def _in_two(table: pa.Table) -> list[pa.Table]:
    half = table.num_rows // 2
    return [table.slice(0, half), table.slice(half)] if half else [table]


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.parquet"))


def _read(file: Path, columns: Schema) -> pa.Table:
    return as_declared(pq.read_table(file).select([name for name, _ in columns]), columns)


@dataclass(slots=True)
class _StreamWriter:
    frame: Frame
    session: Session
    folder: str = ""
    process: Callable[[Frame, int], object] = lambda frame, batch: None

    def queryName(self, _: str) -> _StreamWriter:
        return self

    def option(self, name: str, value: str) -> _StreamWriter:
        self.folder = value.removeprefix("file://") if name == "checkpointLocation" else self.folder
        return self

    def foreachBatch(self, process: Callable[[Frame, int], object]) -> _StreamWriter:
        self.process = process
        return self

    def trigger(self, **_: Any) -> _StreamWriter:
        return self

    def start(self) -> StreamingQuery:
        return StreamingQuery(self.frame, self.process, Path(self.folder), self.session)


class StreamingQuery:
    """Takes one file of every source, or as many as its bytes allow, into each micro-batch until all are taken. It
    runs while it is waited for.

    A batch is logged before it is carried out and again after it: one that did not end is carried out again with the
    same files by the next query on this checkpoint. Offsets of a source that is not read are remembered.
    """

    def __init__(self, frame: Frame, process: Callable[[Frame, int], object], folder: Path, session: Session) -> None:
        self._frame, self._process, self._session = frame, process, session
        self._offsets, self._commits = folder / "offsets", folder / "commits"
        for log in (self._offsets, self._commits):
            log.mkdir(parents=True, exist_ok=True)
        self._stopped = False

    @property
    def isActive(self) -> bool:
        return not self._stopped

    def stop(self) -> None:
        self._stopped = True

    def awaitTermination(self) -> None:
        try:
            while not self._stopped and self._advance():
                pass
        except Exception as error:
            raise StreamingQueryException(f"{type(error).__name__}: {error}") from error

    def _advance(self) -> bool:
        """Carry out the next batch; tell whether there was one, or `boundary` has brought something new."""
        last = max(_numbers(self._offsets), default=-1)
        is_open = last > max(_numbers(self._commits), default=-1)
        batch = last if is_open else last + 1
        self._session.boundary(batch, False)
        if self._stopped:
            return False
        offsets = self._logged(last) if is_open else self._next(self._logged(last))
        if offsets is None:
            self._session.boundary(batch, True)
            return self._next(self._logged(last)) is not None
        if not is_open:
            (self._offsets / str(batch)).write_text("standin\n" + json.dumps(offsets))
        self._process(self._frame.of_batch(self._inputs(offsets, self._logged(batch - 1)), batch), batch)
        (self._commits / str(batch)).write_text("standin")
        return True

    def _logged(self, batch: int) -> dict[str, int]:
        path = self._offsets / str(batch)
        logged: dict[str, int] = json.loads(path.read_text().split("\n", 1)[1]) if path.exists() else {}
        return logged

    def _next(self, before: dict[str, int]) -> dict[str, int] | None:
        """Return how many files are taken after one more batch, None if there is nothing to take."""
        after = dict(before)
        for name, folder, _, most_bytes in self._frame.sources:
            waiting = _files(Path(folder))[before.get(name, 0) :]
            after[name] = before.get(name, 0) + _fitting(waiting, most_bytes)
        return after if any(after[name] > before.get(name, 0) for name, *_ in self._frame.sources) else None

    def _inputs(self, offsets: dict[str, int], before: dict[str, int]) -> Inputs:
        inputs: dict[str, pa.Table] = {}
        for name, folder, columns, _ in self._frame.sources:
            taken = _files(Path(folder))[before.get(name, 0) : offsets.get(name, 0)]
            read = [_read(file, columns) for file in taken]
            inputs[name] = pa.concat_tables(read) if read else arrow_schema(columns).empty_table()
        return inputs


def _fitting(waiting: list[Path], most_bytes: int | None) -> int:
    """Return how many files are taken: one at least."""
    sizes = accumulate(file.stat().st_size for file in waiting)
    fitting = 0 if most_bytes is None else sum(size <= most_bytes for size in sizes)
    return min(max(fitting, 1), len(waiting))


def _numbers(log: Path) -> list[int]:
    return [int(path.name) for path in log.iterdir() if path.name.isdigit()]
