"""What one random case is made of, and how to show it to a person."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from tests.property.expressions import Expression
from tests.property.values import Kind

Windows = tuple[tuple[str, int | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseColumn:
    """A column of a source."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CaseSource:
    """A stream or table with its rows in order of arrival; `batch_of` gives each row's micro-batch, ascending.

    Tables have no time column and no batches. `window_us` None: unbounded.
    """

    name: str
    columns: tuple[CaseColumn, ...]
    rows: pa.Table
    time: str | None = None
    window_us: int | None = None
    delay_us: int = 0
    keep_all: bool = False
    at_random: bool = False
    batch_of: tuple[int, ...] = ()

    @property
    def is_table(self) -> bool:
        return self.time is None

    def batch(self, number: int) -> tuple[int, int]:
        """Return (first row, number of rows) of one batch."""
        first = sum(1 for batch in self.batch_of if batch < number)
        return first, sum(1 for batch in self.batch_of if batch == number)

    def taus(self) -> list[int | None]:
        """Return τ of each row in microseconds since the epoch."""
        return self.rows.column(self.time).cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CaseView:
    """A view; `sql`: all that follows its name."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CaseQuery:
    """A query as text and, for the nested loop, as structure.

    `relations`: (alias, source) in FROM order. `windows` overrides those of the streams. `conditions` are all
    selections and equalities, `projection` the output, stars written out. `star` names the (alias, column) behind a
    bare ``*`` that Spark and DuckDB would order differently.
    """

    name: str
    sql: str
    relations: tuple[tuple[str, str], ...]
    windows: Windows
    conditions: tuple[Expression, ...]
    projection: tuple[Expression, ...]
    star: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a case is run. Per batch: the strategy that plans it, whether the engine restarts and compacts before it.

    Besides the product's strategies there is ``random``: random orders, intermediate stores and wider steps.
    `storage_rows` is the budget of ``ilp``. `derives`: tasks get raw columns and compute keys, values and selections
    themselves, where that takes no Spark. `fill_rows`: so many stored rows a batch takes to fill intermediate stores
    that come; None: one batch takes all. `abreast_steps`: from so many on steps are taken side by side.
    `tables`: before which batches tables are drawn that send rows and probes from then on, if they are shuffled; before
    the first of them there are none.
    A new strategy may come with another parallelism, `parallelism` plus the batch number, up to five.
    """

    strategies: tuple[str, ...]
    parallelism: int
    routing: str
    block_rows: int
    sliced_ingest: int = 1
    restarts: frozenset[int] = frozenset()
    compactions: frozenset[int] = frozenset()
    weak_hash: bool = False
    storage_rows: float | None = None
    derives: bool = False
    fill_rows: int | None = None
    abreast_steps: int = 24
    tables: frozenset[int] = frozenset()

    def parallelism_at(self, batch: int) -> int:
        """Return the number of partitions of a store planned before this batch."""
        return 1 + (self.parallelism - 1 + batch) % 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """Sources, queries and one way to run them. `late`: rows older than the watermark were left in on purpose."""

    seed: int
    sources: tuple[CaseSource, ...]
    queries: tuple[CaseQuery, ...]
    batches: int
    options: RunOptions
    late: bool = False
    views: tuple[CaseView, ...] = ()

    def source(self, name: str) -> CaseSource:
        return next(source for source in self.sources if source.name == name)

    def window_us(self, query: CaseQuery, alias: str) -> int | None:
        """Return the window of a stream relation: the query's own if it gives one."""
        windows = dict(query.windows)
        return windows[alias] if alias in windows else self.source(dict(query.relations)[alias]).window_us

    def with_options(self, **changes: Any) -> Case:
        """Return the same case run another way."""
        return replace(self, options=replace(self.options, **changes))


def quoted(name: str) -> str:
    """Return the name as a Spark identifier, backquoted where it must be."""
    plain = name.replace("_", "a").isalnum() and name.isascii() and name != "select"
    return name if plain else "`" + name.replace("`", "``") + "`"


def interval(us: int | None) -> str:
    return "UNBOUNDED" if us is None else f"INTERVAL {us} MICROSECONDS"


def is_text_before(column: CaseColumn) -> bool:
    """Tell whether a column of rows that are made (`script`) is a text in what is read."""
    return column.kind.spark in ("TINYINT", "SMALLINT", "INT", "BIGINT")


def _made(source: CaseSource) -> tuple[str, str]:
    """Return the columns that are read, and what makes the rows of them."""
    read, items = [], []
    for number, column in enumerate(source.columns):
        type_, name = column.kind.spark, quoted(column.name)
        is_text = is_text_before(column)
        read.append(f"in{number} {'STRING' if is_text else type_}")
        items.append(f"CAST(in{number} AS {type_}) AS {name}" if is_text else f"in{number} AS {name}")
    return ", ".join((*read, "dropped BOOLEAN")), f"SELECT {', '.join(items)} FROM source WHERE NOT dropped"


def script(case: Case, *, sink: str = "noop", stream_options: str = "", is_made: bool = False) -> str:
    """Return the case as a Plait script; each source is in the directory of its name. `is_made`: what is read are other
    columns, ``in0``, ``in1`` ..., and ``dropped``, of which AS SELECT makes the rows.
    """
    parts = []
    for source in case.sources:
        columns = ", ".join(f"{quoted(column.name)} {column.kind.spark}" for column in source.columns)
        made = ""
        if is_made:
            columns, select = _made(source)
            made = f"\n  AS {select}"
        kind = "TABLE" if source.is_table else "STREAM"
        more = f", {stream_options}" if stream_options and not source.is_table else ""
        more += ", keep 'all'" if source.keep_all else ""
        more += ", placement 'random'" if source.at_random else ""
        text = f"CREATE {kind} {source.name} ({columns})\n  USING parquet OPTIONS (path '{source.name}'{more})"
        if not source.is_table:
            text += f"\n  TIMESTAMP BY {quoted(source.time or '')} WINDOW {interval(source.window_us)}"
            text += f" DELAY INTERVAL {source.delay_us} MICROSECONDS"
        parts.append(f"{text}{made};")
    parts += [f"CREATE VIEW {view.name}{view.sql};" for view in case.views]
    for query in case.queries:
        windows = ", ".join(f"{alias} {interval(us)}" for alias, us in query.windows)
        clause = f" WINDOW ({windows})" if windows else ""
        parts.append(f"CREATE QUERY {query.name} INTO {sink}{clause}\n  AS {query.sql};")
    return "\n".join(parts) + "\n"


def describe(case: Case) -> str:
    """Return all a person needs to follow the case by hand: script, options and the rows of each batch."""
    lines = [f"seed {case.seed}{' (late rows)' if case.late else ''}, {case.options}", script(case)]
    for source in case.sources:
        lines.append(f"{source.name}: {', '.join(column.name for column in source.columns)}")
        rows = [tuple(row.values()) for row in source.rows.to_pylist()]
        batches = [-1] * len(rows) if source.is_table else source.batch_of
        taus = [None] * len(rows) if source.is_table else source.taus()
        shown = [f"  {batch:>2} τ={tau} {row}" for batch, tau, row in zip(batches, taus, rows, strict=True)]
        lines += shown[:80] + ([f"  ... {len(shown) - 80} more"] if len(shown) > 80 else [])
    return "\n".join(lines)
