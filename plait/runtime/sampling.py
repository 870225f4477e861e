"""Measure sources on a few of their rows: rates, distinct keys, shares of rows that selections keep."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from plait.errors import SourceError
from plait.operators.ingest.projection import IngestSpec, ingest_spec
from plait.operators.ingest.report_sums import highest, lowest, union_sketches
from plait.operators.reports import IngestReport
from plait.optimizer.options import PlanOptions
from plait.optimizer.planner import plan
from plait.plan.model import Store
from plait.query.model import Options, Query, Source, Stream, Table
from plait.runtime.inputs.loading import select_ingest
from plait.runtime.inputs.opening import OpenSource, open_source
from plait.runtime.registry import Registry
from plait.runtime.spark.tasks import REPORT, reports, table_ingest
from plait.sinks import Sink
from plait.sql.script.check import Script
from plait.state.storage import Storage
from plait.stats.measured import Measurement, measured_statistics
from plait.stats.model import SourceStatistics, Statistics
from plait.stats.sampled import Piece, rate_of

_FILES = frozenset({"parquet", "orc", "csv", "json", "text", "avro"})
_UNIQUE = 0.9
_LISTING = frozenset({"pathGlobFilter", "recursiveFileLookup"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledSource:
    """What came of sampling a source. `rows` read; `is_whole`: there are no more. `problem`: why nothing was read."""

    source: str
    rows: int = 0
    is_whole: bool = False
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Queries as Spark understands them, sources with their columns, and what a sample of these showed."""

    queries: tuple[Query, ...]
    sources: tuple[Source, ...]
    statistics: Statistics
    read: tuple[SampledSource, ...]


def take_sample(spark: SparkSession, script: Script, *, rows: int) -> Sample:
    """Read at most `rows` rows of each source that a query uses. Raises SqlError and SourceError as a run would."""
    registry = Registry(spark)
    for source in script.sources:
        registry.add_source(open_source(spark, source))
    for query in script.queries:
        registry.add_query(registry.confirmed(query, Sink(spec=query.sink)))
    queries = tuple(binding.query for binding in registry.bindings.values())
    sources = tuple(registry.sources().values())
    made = plan(queries, Statistics(), PlanOptions(strategy="shared", sources=sources, parallelism=1))
    sampled = [
        _measure(spark, source, stores, rows)
        for source in sources
        if source.name in registry.opened
        for stores in (tuple(store for store in made.stores if store.source == source.name),)
        if stores
    ]
    statistics = Statistics(sources=tuple(sorted((told for _, told in sampled if told), key=lambda told: told.source)))
    return Sample(queries=queries, sources=sources, statistics=statistics, read=tuple(read for read, _ in sampled))


@dataclass(slots=True, kw_only=True)
class _Reading:
    """A sample while it is taken."""

    wanted: int
    report: IngestReport
    pieces: list[Piece] = field(default_factory=list)
    is_whole: bool = False

    @property
    def left(self) -> int:
        return self.wanted - self.report.rows

    def add(self, report: IngestReport) -> None:
        """Take in the account of a task."""
        before, kept = self.report, dict(self.report.kept)
        for selection, count in report.kept:
            kept[selection] = kept.get(selection, 0) + count
        if report.tau_min is not None and report.tau_max is not None:
            rows = report.rows - report.bad
            self.pieces.append(Piece(rows=rows, tau_min_us=report.tau_min, tau_max_us=report.tau_max))
        self.report = replace(
            before,
            rows=before.rows + report.rows,
            bad=before.bad + report.bad,
            tau_min=lowest(before.tau_min, report.tau_min),
            tau_max=highest(before.tau_max, report.tau_max),
            sketches=union_sketches(before.sketches, report.sketches),
            kept=tuple(sorted(kept.items())),
        )

    def statistics(self) -> SourceStatistics | None:
        """Return what was measured; None without rows.

        How many rows there are is known if all were read. Keys of which nearly every row has its own go on like that in
        the rest of a table, so what a part of it shows of them is no number of distinct keys.
        """
        report = self.report
        measured = measured_statistics(
            [
                Measurement(
                    source=report.source,
                    rows=report.rows,
                    tau_min_us=report.tau_min,
                    tau_max_us=report.tau_max,
                    sketches=report.sketches,
                    kept=report.kept,
                )
            ]
        )
        if not measured.sources:
            return None
        told = replace(measured.sources[0], rate_rows_per_s=rate_of(self.pieces))
        if self.is_whole:
            return told
        most = report.rows * _UNIQUE if report.tau_min is None else report.rows
        return replace(told, rows=None, distinct=tuple(counted for counted in told.distinct if counted[1] <= most))


def _measure(
    spark: SparkSession, source: Source, stores: tuple[Store, ...], rows: int
) -> tuple[SampledSource, SourceStatistics | None]:
    reading = _Reading(wanted=rows, report=IngestReport(source=source.name))
    try:
        _read(spark, source, stores, reading)
    except (PySparkException, SourceError) as error:  # it may be one that is read as a stream only
        reason = str(error.__cause__ or error).split("\n", 1)[0].rstrip(". ")
        return SampledSource(source=source.name, problem=reason), None
    read = SampledSource(source=source.name, rows=reading.report.rows, is_whole=reading.is_whole)
    return read, reading.statistics()


def _read(spark: SparkSession, source: Source, stores: tuple[Store, ...], reading: _Reading) -> None:
    """Read the source's first rows: files in the order in which a stream takes them, a few at a time."""
    spec, corrupt = None, None
    for frame, is_last in _frames(spark, source, reading):
        if spec is None or corrupt != frame.corrupt_column:
            spec, corrupt = _spec(source, stores, frame.corrupt_column), frame.corrupt_column
        before = reading.report.rows
        chosen = select_ingest(frame.frame.limit(reading.left), spec)
        task = table_ingest(spec, Storage.open("sample"), max(reading.wanted, 1))
        for report in reports(chosen.mapInArrow(task, REPORT).collect()):
            reading.add(report)
        reading.is_whole = is_last and reading.left > 0
        if reading.left <= 0 or (is_last and reading.report.rows == before):
            return


def _spec(source: Source, stores: tuple[Store, ...], corrupt: str | None) -> IngestSpec:
    """Return what Spark evaluates for each row: event time, keys and selections, nothing that would be stored."""
    quiet = replace(source, dead_letter=None) if isinstance(source, Stream) else source
    bare = tuple(replace(store, columns=()) for store in stores)
    return replace(ingest_spec(quiet, bare, corrupt_column=corrupt), stores=())


def _frames(spark: SparkSession, source: Source, reading: _Reading) -> Iterator[tuple[OpenSource, bool]]:
    """Yield pieces of the source and whether it is the last one; more files at once where they turn out small."""
    connector = source.connector
    if connector is None or connector.format not in _FILES or "path" not in dict(connector.options):
        yield _static(spark, source, connector.options if connector else ()), True
        return
    files = _files(spark, dict(connector.options))
    taken = 0
    while taken < len(files):
        per_file = reading.report.rows / taken if taken else reading.left
        count = max(1, int(reading.left // max(per_file, 1)))
        chosen = files[taken : taken + count]
        taken += len(chosen)
        yield _static(spark, source, connector.options, chosen), taken >= len(files)


def _static(spark: SparkSession, source: Source, options: Options, files: list[str] | None = None) -> OpenSource:
    """Return the source, or some of its files, as a DataFrame at rest."""
    connector = source.connector
    if connector is not None and files is not None:
        connector = replace(connector, options=tuple((name, value) for name, value in options if name != "path"))
    table = Table(name=source.name, schema=source.schema, connector=connector)
    return open_source(spark, table, files=files)


def _files(spark: SparkSession, options: dict[str, str]) -> list[str]:
    """Return the files of a source, oldest first."""
    reader = spark.read.format("binaryFile")
    for name, value in options.items():
        if name in _LISTING:
            reader = reader.option(name, value)
    listed: DataFrame = reader.load(options["path"]).select("path", "modificationTime", "length")
    rows = [(row["modificationTime"], row["path"]) for row in listed.collect() if row["length"]]
    return [path for _, path in sorted(rows)]


__all__ = ["Sample", "SampledSource", "take_sample"]
