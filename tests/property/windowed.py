"""Random queries that group by windows of event time, or sessions, and what each batch must write of them.

They are made of random joins: the FROM and WHERE of a case's query stay, and its results are grouped. What must come
out is worked out from the rows that the join has over the whole input, window by window, by going through them.
"""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median, pvariance, stdev
from typing import Any

import pyarrow as pa

from plait.sql.lexis.tokens import depths, tokens_of
from tests.oracle.compare import table_rows
from tests.oracle.duckdb_oracle import expected
from tests.property.arrivals import Arrivals, watermarks
from tests.property.case import Case, CaseQuery, quoted

Rows = list[tuple[Any, ...]]
_KEYS, _NUMBERS = ("i", "l", "s", "b"), ("i", "l")


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """An aggregate as text over `{0}`, and its value for the values of a group, None among them."""

    sql: str
    value: Callable[[list[Any]], Any]


def _known(values: list[Any]) -> list[Any]:
    return [value for value in values if value is not None]


IN_PARTS = (
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
)
"""Those that are kept as partial ones, or do not mind duplicates."""

OF_ROWS = (
    Aggregate(sql="count(*) FILTER (WHERE {0} > 1)", value=lambda values: sum(value > 1 for value in _known(values))),
    Aggregate(sql="sum(DISTINCT {0})", value=lambda values: sum(set(_known(values))) if _known(values) else None),
    Aggregate(sql="bool_or({0} > 1)", value=lambda values: max((each > 1 for each in _known(values)), default=None)),
    Aggregate(sql="median({0})", value=lambda values: float(median(_known(values))) if _known(values) else None),
    Aggregate(
        sql="var_pop({0}) < 1.7183",
        value=lambda values: pvariance(_known(values)) < 1.7183 if _known(values) else None,
    ),
    Aggregate(
        sql="stddev({0}) > 0.8172",
        value=lambda values: stdev(_known(values)) > 0.8172 if len(_known(values)) > 1 else None,
    ),
)
"""Those for which rows are kept, and what does not mind duplicates either."""


def drawn_aggregates(rng: random.Random) -> tuple[Aggregate, ...]:
    """Draw one to three; half of the time all are kept in parts."""
    among = IN_PARTS if rng.random() < 0.5 else (*IN_PARTS, *OF_ROWS)
    return tuple(rng.choice(among) for _ in range(rng.randint(1, 3)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """How a query of a case groups. `plain`: the query that finds the rows, event time first, then `keys` columns to
    group by, then the argument of each aggregate. `having`: groups of at least so many rows. `gap_us`: of sessions,
    which have none of the lengths of windows.
    """

    plain: CaseQuery
    size_us: int
    slide_us: int
    start_us: int
    lag_us: int
    keys: int
    aggregates: tuple[Aggregate, ...]
    having: int
    gap_us: int | None = None


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
    keys = [*_columns(rng, case, query, _KEYS, rng.choice((0, 1, 1, 2)))]
    if rng.random() < 0.2:
        keys += [f"{column} % 2" for column in _columns(rng, case, query, _NUMBERS, 1)]
    aggregates = drawn_aggregates(rng)
    arguments = _columns(rng, case, query, _NUMBERS, len(aggregates))
    if len(arguments) < len(aggregates):
        return []
    tail, having = tail_of(query.sql), rng.choice((0, 0, 0, 2))
    values = [each.sql.format(argument) for each, argument in zip(aggregates, arguments, strict=True)]
    bounds = [rng.choice((f"{_COLUMN}.start", f"{_WINDOW}.start")), f"{_COLUMN}.end AS until"]
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
        gap = gap_of(rng, taus) if aggregates and rng.random() < 0.4 else None
        if gap is not None:
            window = f"session_window({time}, '{gap} microseconds')"
        sql = f"SELECT {select} {tail}{more}".replace(_WINDOW, window)
        sql = sql.replace(_COLUMN, "window" if gap is None else "session_window")
        how = Grouping(
            plain=replace(query, name=name, sql=f"SELECT {plain} {tail}", projection=(), star=()),
            size_us=size,
            slide_us=slide,
            start_us=start,
            lag_us=0 if len(streams) == 1 else case.window_us(query, alias) or 0,
            keys=len(keys),
            aggregates=aggregates,
            having=having,
            gap_us=gap,
        )
        made.append((replace(query, name=name, sql=sql, projection=(), star=()), how))
    return made


_WINDOW, _COLUMN = "<window>", "<column>"
"""What stands for the window of a query that is written with several, and for its name."""


def lengths(rng: random.Random, taus: list[int]) -> tuple[int, int, int]:
    """Draw size, slide and start of windows."""
    span = max(taus, default=0) - min(taus, default=0)
    size = max(1, span // rng.choice((1, 2, 5, 11)) + rng.choice((0, 1)))
    slide = max(1, size // rng.choice((1, 1, 1, 2, 3, 5)) - rng.choice((0, 0, 1)))
    slide = max(slide, -(-size // 8))
    return size, slide, rng.choice((0, 0, rng.randrange(slide), -rng.randrange(slide)))


def gap_of(rng: random.Random, taus: list[int]) -> int:
    """Draw the gap of sessions: sometimes exactly as far as two times are apart."""
    apart = sorted({later - before for before, later in itertools.pairwise(sorted(taus)) if later > before})
    span = max(taus, default=0) - min(taus, default=0)
    return rng.choice((*apart[-3:], *apart[:2], max(1, span // 30), max(1, span // 7)))


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
    if how.gap_us is not None:
        return _session_rows(table, how, how.gap_us, marks)
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


def _session_rows(table: pa.Table, how: Grouping, gap: int, marks: list[int | None]) -> dict[int, Rows]:
    """Return the same of sessions: a row at the very end of one belongs to it, so it has to be passed to be over."""
    taus = table.column(0).cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
    alike: dict[tuple[Any, ...], list[tuple[int, tuple[Any, ...]]]] = defaultdict(list)
    for tau, row in zip(taus, table_rows(table), strict=True):
        alike[row[1 : 1 + how.keys]].append((tau, row[1 + how.keys :]))
    written: dict[int, Rows] = defaultdict(list)
    for keys, rows in alike.items():
        rows.sort(key=lambda row: row[0])
        breaks = [place for place in range(1, len(rows)) if rows[place][0] > rows[place - 1][0] + gap]
        for first, after in itertools.pairwise([0, *breaks, len(rows)]):
            session = rows[first:after]
            begin, end = session[0][0], session[-1][0] + gap
            if len(session) < how.having:
                continue
            over = (batch for batch, mark in enumerate(marks) if mark is not None and mark > end + how.lag_us)
            values = (each.value([row[n] for _, row in session]) for n, each in enumerate(how.aggregates))
            written[next(over, len(marks))].append((begin, end, *keys, *values))
    return written
