"""What one random life of a checkpoint is made of: runs and changes, and how to show them to a person."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.property.case import CaseQuery, CaseSource, interval, quoted


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Declared:
    """A source as one span declares it. `source` has the rows; `batch_of` are the numbers of the files they are in.

    `is_impatient`: silence of a millisecond makes it idle, which is any batch in which it sends nothing.
    """

    name: str
    source: CaseSource
    keep_all: bool = False
    dead_letter: bool = False
    is_impatient: bool = False

    @property
    def is_table(self) -> bool:
        return self.source.is_table


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How a span is run; none of it but `backfill` may matter to results. `strategy` ``independent`` does to what is
    kept for queries to come.
    """

    strategy: str = "greedy"
    parallelism: int = 2
    routing: str = "local"
    capacity: int = 1024
    compaction: bool = False
    backfill: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Span:
    """Batches between two changes of what is read and asked.

    Before it begins, the files of all streams with numbers below `until` are there. It ends when all of them are taken
    that are read. `is_restart`: another engine on the same checkpoint; else queries and streams change while the engine
    runs. `kill`: (batch of the span, fail point) where the engine dies once.
    """

    declared: tuple[Declared, ...]
    queries: tuple[CaseQuery, ...]
    until: int
    is_restart: bool = True
    way: Way = Way()
    kill: tuple[int, str] | None = None

    def named(self, name: str) -> Declared:
        return next(declared for declared in self.declared if declared.name == name)

    def read(self) -> list[Declared]:
        """Return the streams that are read: those in queries and those that keep everything."""
        asked = {name for query in self.queries for _, name in query.relations}
        return [each for each in self.declared if not each.is_table and (each.name in asked or each.keep_all)]

    def window_us(self, query: CaseQuery, alias: str) -> int | None:
        """Return the window of a stream relation."""
        windows = dict(query.windows)
        return windows[alias] if alias in windows else self.named(dict(query.relations)[alias]).source.window_us

    def windows_us(self, query: CaseQuery) -> tuple[int | None, ...]:
        """Return the windows of all stream relations, in FROM order: by these too a query means what it means."""
        aliases = [alias for alias, name in query.relations if not self.named(name).is_table]
        return tuple(self.window_us(query, alias) for alias in aliases)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Life:
    """A checkpoint's life."""

    seed: int
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Incarnation:
    """A query from the span in which it is added to the one after which it is dropped or changed."""

    query: CaseQuery
    first: int
    last: int

    @property
    def key(self) -> str:
        return f"{self.query.name}-{self.first}"


def incarnations(life: Life) -> Iterator[Incarnation]:
    """Yield them in order of their beginnings. A query is another one as soon as it is written otherwise, or a stream
    that it gives no window has another one.
    """
    open_: dict[str, Incarnation] = {}
    for number, span in enumerate(life.spans):
        live = {query.name: query for query in span.queries}
        for name, known in list(open_.items()):
            windows_us = life.spans[known.last].windows_us(known.query)
            if live.get(name) is known.query and span.windows_us(known.query) == windows_us:
                open_[name] = replace(known, last=number)
            else:
                yield open_.pop(name)
        for name, query in live.items():
            open_.setdefault(name, Incarnation(query=query, first=number, last=number))
    yield from open_.values()


def incarnation_at(life: Life, number: int, name: str) -> Incarnation:
    """Return the incarnation of a query that lives in a span."""
    return next(each for each in incarnations(life) if each.query.name == name and each.first <= number <= each.last)


def script(life: Life, number: int, *, sinks: str = "out") -> str:
    """Return what the engine is told in a span; sources and results are in folders, results one an incarnation."""
    span = life.spans[number]
    parts = [_source_text(each) for each in span.declared]
    for query in span.queries:
        windows = ", ".join(f"{alias} {interval(us)}" for alias, us in query.windows)
        clause = f" WINDOW ({windows})" if windows else ""
        folder = f"{sinks}/{incarnation_at(life, number, query.name).key}"
        parts.append(f"CREATE QUERY {query.name} INTO parquet OPTIONS (path '{folder}'){clause}\n  AS {query.sql};")
    return "\n".join(parts) + "\n"


def _source_text(declared: Declared) -> str:
    source = declared.source
    columns = ", ".join(f"{quoted(column.name)} {column.kind.spark}" for column in source.columns)
    kind = "TABLE" if source.is_table else "STREAM"
    text = f"CREATE {kind} {declared.name} ({columns})\n  USING parquet OPTIONS (path '{source.name}'"
    if source.is_table:
        return text + ");"
    text += ", maxFilesPerTrigger '1'"
    text += ", keep 'all'" if declared.keep_all else ""
    text += f", deadLetter 'dead/{declared.name}'" if declared.dead_letter else ""
    text += ", idle '1 millisecond'" if declared.is_impatient else ""
    text += ", placement 'random'" if source.at_random else ""
    text += f")\n  TIMESTAMP BY {quoted(source.time or '')} WINDOW {interval(source.window_us)}"
    return text + f" DELAY INTERVAL {source.delay_us} MICROSECONDS;"


def describe(life: Life) -> str:
    """Return all a person needs to follow the life by hand: the script of each span, and the rows file by file."""
    lines = [f"seed {life.seed}"]
    sources: dict[str, CaseSource] = {}
    for number, span in enumerate(life.spans):
        begins = "restart" if span.is_restart else "while running"
        lines.append(f"-- span {number} ({begins}), files below {span.until}, {span.way}, kill {span.kill}")
        lines.append(script(life, number))
        sources.update((each.source.name, each.source) for each in span.declared)
    for source in sources.values():
        lines.append(f"{source.name}: {', '.join(column.name for column in source.columns)}")
        rows = [tuple(row.values()) for row in source.rows.to_pylist()]
        files = ["-"] * len(rows) if source.is_table else source.batch_of
        taus = [None] * len(rows) if source.is_table else source.taus()
        shown = [f"  file {file} τ={tau} {row}" for file, tau, row in zip(files, taus, rows, strict=True)]
        lines += shown[:60] + ([f"  ... {len(shown) - 60} more"] if len(shown) > 60 else [])
    return "\n".join(lines)
