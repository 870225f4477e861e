"""Random queries that group by windows of event time, and what each batch must write of them.

They are made of random joins: the FROM and WHERE of a case's query stay, and its results are grouped. What must come
out is worked out from the rows that the join has over the whole input, window by window, by going through them.
"""

from __future__ import annotations

import itertools
import random
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import sqlglot
from sqlglot import exp

from plait.operators.close import final_groups as final_groups_module
from plait.operators.close import groups
from plait.operators.close.closing import Closed
from plait.operators.close.final_groups import final_groups
from plait.operators.close.groups import GroupedQuery, Over, close_windows
from plait.operators.probe.probing import ProbeContext
from plait.operators.reports import ProbeReport, ResultFile
from plait.operators.traversal.traverse import ProbeTask
from plait.query.model import Aggregation, ColumnRef, Query, with_countable
from plait.query.time_windows import TimeWindow
from plait.sinks.delivery import Delivery, Gathering
from plait.sql.lexis.tokens import depths, tokens_of
from plait.sql.select.finishing import finishing_of
from plait.sql.select.folding import Folding, folding_of
from plait.sql.select.why_pairs import countable
from plait.state.buckets import close_others
from plait.state.gathered import folder_of, microseconds, read_gathered
from plait.state.model import Manifest
from plait.state.storage import Storage
from tests.oracle.compare import table_rows
from tests.oracle.duckdb_oracle import expected, load
from tests.oracle.translate import connection, rendered
from tests.property.arrivals import Arrivals, watermarks
from tests.property.case import Case, CaseQuery, quoted
from tests.property.direct import DirectRun
from tests.property.front_end import from_text
from tests.property.running import _MEMORY

Rows = list[tuple[Any, ...]]
_KEYS, _NUMBERS = ("i", "l", "s", "b"), ("i", "l")


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """An aggregate as text over `{0}`, and its value for the values of a group, None among them."""

    sql: str
    value: Callable[[list[Any]], Any]


def _known(values: list[Any]) -> list[Any]:
    return [value for value in values if value is not None]


AGGREGATES = (
    Aggregate(sql="count(*)", value=len),
    Aggregate(sql="count({0})", value=lambda values: len(_known(values))),
    Aggregate(sql="sum({0})", value=lambda values: sum(_known(values)) if _known(values) else None),
    Aggregate(sql="min({0})", value=lambda values: min(_known(values), default=None)),
    Aggregate(sql="max({0}) + 1", value=lambda values: max(_known(values)) + 1 if _known(values) else None),
    Aggregate(
        sql="avg({0})",
        value=lambda values: float(sum(_known(values)) / len(_known(values))) if _known(values) else None,
    ),
    Aggregate(sql="count(DISTINCT {0})", value=lambda values: len(set(_known(values)))),
    Aggregate(sql="count(*) FILTER (WHERE {0} > 1)", value=lambda values: sum(value > 1 for value in _known(values))),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """How a query of a case groups. `plain`: the query that finds the rows, event time first, then `keys` columns to
    group by, then the argument of each aggregate. `having`: groups of at least so many rows.
    """

    plain: CaseQuery
    size_us: int
    slide_us: int
    start_us: int
    lag_us: int
    keys: int
    aggregates: tuple[Aggregate, ...]
    having: int


def grouped_case(case: Case) -> tuple[Case, dict[str, Grouping]]:
    """Return the case with those of its queries grouping that can, and how each of them does; some once more, by other
    windows.
    """
    rng = random.Random(f"{case.seed} grouped")
    queries, groupings = [], {}
    for query in case.queries:
        made = _grouped_queries(rng, case, query)
        queries += [each for each, _ in made] or [query]
        groupings |= {each.name: how for each, how in made}
    return replace(case, queries=tuple(queries)), groupings


def _grouped_queries(rng: random.Random, case: Case, query: CaseQuery) -> list[tuple[CaseQuery, Grouping]]:
    """Return a query that groups, and some more that do so by other windows; none if it cannot."""
    streams = [alias for alias, source in query.relations if not case.source(source).is_table]
    bounded = streams if len(streams) == 1 else [alias for alias in streams if case.window_us(query, alias) is not None]
    if not bounded:
        return []
    alias = rng.choice(bounded)
    source = case.source(dict(query.relations)[alias])
    time = f"{alias}.{quoted(source.time or '')}"
    keys = _columns(rng, case, query, _KEYS, rng.choice((0, 1, 1, 2)))
    aggregates = tuple(rng.choice(AGGREGATES) for _ in range(rng.randint(1, 3)))
    arguments = _columns(rng, case, query, _NUMBERS, len(aggregates))
    if len(arguments) < len(aggregates):
        return []
    tail, having = tail_of(query.sql), rng.choice((0, 0, 0, 2))
    values = [each.sql.format(argument) for each, argument in zip(aggregates, arguments, strict=True)]
    bounds = [rng.choice(("window.start", f"{_WINDOW}.start")), "window.end AS until"]
    if not having and rng.random() < 0.15:
        aggregates, arguments, values = (), [], []
        select, more = f"DISTINCT {_WINDOW}.start, {', '.join([f'{_WINDOW}.end', *keys])}", ""
    else:
        select = ", ".join([*bounds, *keys, *(f"{value} AS v{n}" for n, value in enumerate(values))])
        more = f" GROUP BY {', '.join([_WINDOW, *keys])}" + (f" HAVING count(*) >= {having}" if having else "")
    plain = ", ".join(f"{column} AS p{n}" for n, column in enumerate([time, *keys, *arguments]))
    taus, made = [tau for tau in source.taus() if tau is not None], []
    for name in [query.name, *(f"{query.name}_again{n}" for n in range(rng.choice((0, 0, 0, 1, 2))))]:
        size, slide, start = lengths(rng, taus)
        window = f"window({time}, '{size} microseconds', '{slide} microseconds', '{start} microseconds')"
        if slide == size and start == 0 and rng.random() < 0.5:
            window = f"window({time}, '{size} microseconds')"
        sql = f"SELECT {select} {tail}{more}".replace(_WINDOW, window)
        how = Grouping(
            plain=replace(query, name=name, sql=f"SELECT {plain} {tail}", projection=(), star=()),
            size_us=size,
            slide_us=slide,
            start_us=start,
            lag_us=0 if len(streams) == 1 else case.window_us(query, alias) or 0,
            keys=len(keys),
            aggregates=aggregates,
            having=having,
        )
        made.append((replace(query, name=name, sql=sql, projection=(), star=()), how))
    return made


_WINDOW = "<window>"
"""What stands for the window of a query that is written with several."""


def lengths(rng: random.Random, taus: list[int]) -> tuple[int, int, int]:
    """Draw size, slide and start of windows."""
    span = max(taus, default=0) - min(taus, default=0)
    size = max(1, span // rng.choice((1, 2, 5, 11)) + rng.choice((0, 1)))
    slide = max(1, size // rng.choice((1, 1, 1, 2, 3, 5)) - rng.choice((0, 0, 1)))
    slide = max(slide, -(-size // 8))
    return size, slide, rng.choice((0, 0, rng.randrange(slide), -rng.randrange(slide)))


def _columns(rng: random.Random, case: Case, query: CaseQuery, kinds: Sequence[str], count: int) -> list[str]:
    found = [
        f"{alias}.{quoted(column.name)}"
        for alias, source in query.relations
        for column in case.source(source).columns
        if column.kind.name in kinds
    ]
    return [rng.choice(found) for _ in range(count)] if found else []


def tail_of(sql: str) -> str:
    """Return a query from its FROM on."""
    tokens = tokens_of(sql)
    for index, depth, token in depths(tokens):
        before = [each.keyword for each in tokens[max(index - 1, 0) : index]]
        if depth == 0 and token.keyword == "FROM" and before != ["DISTINCT"]:
            return sql[token.start :]
    raise ValueError(sql)


def expected_groups(case: Case, groupings: dict[str, Grouping]) -> dict[str, dict[int, Rows]]:
    """Return what each batch writes of each query that groups; after the last batch the input ends."""
    plain = replace(case, queries=tuple(grouping.plain for grouping in groupings.values()))
    tables, marks = expected(plain), marks_after(case)
    return {name: grouped_rows(tables[name], grouping, marks) for name, grouping in groupings.items()}


def marks_after(case: Case) -> list[int | None]:
    """Return the watermark after each batch."""
    streams = [source for source in case.sources if not source.is_table]
    arrivals = [
        Arrivals(delay_us=source.delay_us, taus=source.taus(), batch_of=list(source.batch_of)) for source in streams
    ]
    return watermarks(arrivals, case.batches + 1)[1:]


def grouped_rows(table: pa.Table, how: Grouping, marks: list[int | None]) -> dict[int, Rows]:
    """Return what each batch writes of the groups of these rows."""
    groups: dict[tuple[Any, ...], list[tuple[Any, ...]]] = defaultdict(list)
    taus = table.column(0).cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
    for tau, row in zip(taus, table_rows(table), strict=True):
        first = (tau - how.size_us - how.start_us) // how.slide_us
        for number in range(first, (tau - how.start_us) // how.slide_us + 2):
            begin = how.start_us + number * how.slide_us
            if begin <= tau < begin + how.size_us:
                groups[(begin, *row[1 : 1 + how.keys])].append(row[1 + how.keys :])
    written: dict[int, Rows] = defaultdict(list)
    for (begin, *keys), rows in groups.items():
        if len(rows) < how.having:
            continue
        end = begin + how.size_us
        over = (batch for batch, mark in enumerate(marks) if mark is not None and mark >= end + how.lag_us)
        values = (each.value([row[n] for row in rows]) for n, each in enumerate(how.aggregates))
        written[next(over, len(marks))].append((begin, end, *keys, *values))
    return written


@dataclass(slots=True)
class Written:
    """What was written of each query, by batch. `counted`: results of which no pairs were made; `shared`: how often
    queries kept the same files; `made`: how often groups were made of partial aggregates as a batch does, and not by
    what stands in for Spark.
    """

    groups: dict[str, dict[int, Rows]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    left: int = 0
    counted: int = 0
    shared: int = 0
    made: int = 0


class WindowedRun(DirectRun):
    """A run of a case with queries that group, until the end of its input. DuckDB computes the groups."""

    written: Written

    def run_to_end(self) -> Written:
        """Run all batches, and the one that ends the input; pairs are made of all matches in one case of five."""
        self.written = Written()
        if self.case.seed % 5:
            self.queries = tuple(map(self._counting, self.queries))
        self.run()
        manifest, closed, certain = self.end()
        closed = self._with_final(self.case.batches, manifest, closed, certain)
        self.written.left = sum(len(groups.files) for groups in closed.groups)
        return self.written

    def _deliveries(self) -> dict[str, Delivery]:
        plain, grouped = super()._deliveries(), {query.name: query for query in self._grouped()}
        return {
            name: delivery if name not in grouped else self._gathering(grouped[name])
            for name, delivery in plain.items()
        }

    def _counting(self, query: Query) -> Query:
        folding = self._folding(query)
        if folding is None:
            return query
        return with_countable(query, countable(query, folding.fold, self._types(query)))

    def _probe(self, tasks: tuple[ProbeTask, ...], context: ProbeContext) -> tuple[ProbeReport, ...]:
        reports = super()._probe(tasks, context)
        counted = {step.edge for tree in context.plan.trees for step in tree.steps() if step.is_counted}
        self.written.counted += sum(n for report in reports for edge, n in report.matches if edge in counted)
        kept = [{query: file.gathered for query, file in _by_query(report)} for report in reports]
        self.written.shared += sum(len(set(files.values())) < len(files) for files in kept)
        return reports

    def _grouped(self) -> list[Query]:
        return [query for query in self.queries if query.aggregation is not None]

    def _gathering(self, query: Query) -> Gathering:
        columns, folding = self.wanted[query.name], self._folding(query)
        return Gathering(
            query=query.name,
            columns=columns,
            time=columns[0],
            folder=folder_of(query.name),
            fold=None if folding is None else folding.fold,
        )

    def _folding(self, query: Query) -> Folding | None:
        """Return how rows are kept; of one case in three as they are."""
        if self.case.seed % 3 == 0 or query.aggregation is None:
            return None
        return folding_of(query.aggregation, self._types(query))

    def _types(self, query: Query) -> dict[ColumnRef, str]:
        """Return the Spark types of the columns of the joined row."""
        sources = {relation.alias: self.case.source(relation.source) for relation in query.relations}
        kinds = {
            ref: next(column.kind for column in sources[ref.relation].columns if column.name == ref.column)
            for ref in self.wanted[query.name]
        }
        return {ref: kind.spark.lower() for ref, kind in kinds.items()}

    def _with_final(self, batch: int, before: Manifest, closed: Closed, probed: tuple[ProbeReport, ...]) -> Closed:
        queries = {query.name: self._grouped_query(query, query.aggregation) for query in self._grouped()}
        name = f"{batch}-a{next(self._attempts)}"
        windows = close_windows(self.storage, before, probed, queries.values(), closed.watermark_us, name)
        for query in self._grouped():
            over = windows.over.get(query.name)
            if over is not None and query.aggregation is not None:
                table = self._groups(query, query.aggregation, over)
                made = self._made(query, query.aggregation, queries[query.name], over, table)
                self.written.made += made is not None
                rows = table_rows(table if made is None else made)
                self.written.groups[query.name][batch] = [(*map(_us, row[:2]), *row[2:]) for row in rows]
        return replace(closed, groups=windows.waiting)

    def _grouped_query(self, query: Query, aggregation: Aggregation | None) -> GroupedQuery:
        assert aggregation is not None
        time, fold = self.wanted[query.name][0].name, self._gathering(query).fold
        return GroupedQuery(query=query.name, identity="1", window=aggregation.window, time=time, fold=fold)

    def _made(
        self, query: Query, aggregation: Aggregation, grouped: GroupedQuery, over: Over, found: pa.Table
    ) -> pa.Table | None:
        """Return the groups as a batch makes them without Spark, None if it does not. `found`: the same groups."""
        folding = self._folding(query)
        if folding is None:
            return None
        types = [_SPARK_TYPES.get(str(type_), folding.kept[0][1]) for type_ in found.schema.types]
        how = finishing_of(aggregation, folding, types, time_zone="UTC")
        if how is None:
            return None
        groups = final_groups(list(read_gathered(self.storage, over.files)), grouped, how, over)
        return pa.Table.from_batches([groups])

    def _groups(self, query: Query, aggregation: Aggregation, over: Over) -> pa.Table:
        folding = self._folding(query)
        parts = [pa.Table.from_batches([part]) for part in read_gathered(self.storage, over.files)]
        load(connection(), {"#windowed": _windowed(pa.concat_tables(parts), aggregation.window, over)})
        tree = sqlglot.parse_one((folding or aggregation).sql.format(rows="`#windowed`"), dialect="spark")
        for name in tree.find_all(exp.Identifier):
            name.set("quoted", True)
        return connection().sql(rendered(tree)).to_arrow_table()


_SPARK_TYPES = {
    "int64": "bigint",
    "int32": "int",
    "int16": "smallint",
    "int8": "tinyint",
    "string": "string",
    "bool": "boolean",
    "double": "double",
}
"""What Spark calls types of groups; all others are those of event times."""


def _by_query(report: ProbeReport) -> list[tuple[str, ResultFile]]:
    return [(file.query, file) for file in report.results if file.gathered]


def _us(value: Any) -> int:
    return int(pa.scalar(value, pa.timestamp("us")).cast(pa.int64()).as_py())


def _windowed(rows: pa.Table, window: TimeWindow, over: Over) -> pa.Table:
    """Return the rows once for each window they belong to and that is over, with that in column ``window``."""
    taus = microseconds(rows.column(f"{window.relation}.{window.column}").combine_chunks()).to_numpy()
    pieces = []
    for back in itertools.count():
        begins = (
            (taus - window.start_us) // window.slide_us * window.slide_us + window.start_us - back * window.slide_us
        )
        ends = begins + window.size_us
        if back * window.slide_us >= window.size_us:
            break
        taken = (ends > taus) & (ends <= over.until_us)
        if over.after_us is not None:
            taken &= ends > over.after_us
        places = np.flatnonzero(taken)
        bounds = [pa.array(each[places]).cast(pa.timestamp("us")) for each in (begins, ends)]
        struct = pa.StructArray.from_arrays(bounds, names=["start", "end"])
        pieces.append(rows.take(pa.array(places)).append_column("window", struct))
    return pa.concat_tables(pieces)


def run_windowed(case: Case) -> Written:
    """Run a case with few files or many, to the end of its input, and leave nothing of it behind."""
    directory = tempfile.mkdtemp(prefix="plait-windowed-", dir=_MEMORY if _MEMORY.is_dir() else None)
    try:
        sources, queries = from_text(case)
        most_windows = patch.object(final_groups_module, "MOST_WINDOWS", case.seed % 4 * 2)
        with patch.object(groups, "MOST_FILES", (16, 1, 2)[case.seed % 3]), most_windows:
            return WindowedRun(case, sources, queries, directory).run_to_end()
    finally:
        close_others(Storage.open(directory), ())
        shutil.rmtree(directory)
