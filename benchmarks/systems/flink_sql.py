"""Questions in Flink's SQL, as text. Windows become interval joins over the event time, or plain conditions.

Flink's event times have milliseconds, ours microseconds. A window is whole seconds, so members that lie within it do so
in milliseconds as well: the interval join lets nothing pass unseen, and a condition on the exact times decides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from benchmarks.systems.task import UnableError
from benchmarks.workloads.data import FIRST_US
from benchmarks.workloads.joins import QUALIFIED, JoinQuery, JoinStream

EVENT_TIME = "_event_time"
"""The column that carries a stream's watermark. No stream's column starts with an underscore."""

_TEXT = re.compile(r"('(?:[^']|'')*')")
_MOST_DIGITS = 5
_CSV = {"format": "csv"}
# Times with their microseconds, as numbers since 1970 in UTC. CSV files would not tell NULL from an empty string.
_PARQUET = {
    "format": "parquet",
    "parquet.utc-timezone": "true",
    "parquet.write.int64.timestamp": "true",
    "parquet.timestamp.time.unit": "micros",
}
_TYPES = {"tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "date", "string"}


def flink_type(column: str) -> str:
    """Return Spark's type in Flink's words. Raises UnableError."""
    if column == "timestamp":
        return "TIMESTAMP(6)"
    if column in _TYPES or column.startswith("decimal("):
        return column.upper()
    raise UnableError(f"the type {column} has no counterpart here in Flink SQL")


def interval(milliseconds: int) -> str:
    """Return a duration as a literal. Raises UnableError.

    >>> interval(90_061_005)
    "INTERVAL '1 01:01:01.005' DAY TO SECOND(3)"
    """
    seconds, rest = divmod(milliseconds, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    digits = len(str(days))
    if digits > _MOST_DIGITS:
        raise UnableError(f"Flink's intervals have up to {_MOST_DIGITS} digits of days: {days:,} days are asked for")
    # A day's precision is two digits unless it is told.
    day = f"DAY({digits})" if digits > 2 else "DAY"
    return f"INTERVAL '{days} {hours:02}:{minutes:02}:{seconds:02}.{rest:03}' {day} TO SECOND(3)"


def table(stream: str, *, timed: bool) -> str:
    """Return the name of a stream's table, with its event time or without: a regular join must not have one."""
    return f"`_{stream}`" if timed else f"`{stream}`"


def event_time(stream: JoinStream) -> str:
    """Return the expression of a stream's event time."""
    return f"CAST(`{stream.time}` AS TIMESTAMP(3))"


def watermark(delay_ms: int) -> str:
    """Return the expression of a watermark that is so far behind."""
    return f"`{EVENT_TIME}` - {interval(delay_ms)}"


def condition(text: str) -> str:
    """Return a condition with its columns quoted, for names that are words of Flink's SQL.

    >>> condition("r.value > 'a.b'")
    "`r`.`value` > 'a.b'"
    """
    parts = _TEXT.split(text)
    return "".join(part if at % 2 else QUALIFIED.sub(r"`\1`.`\2`", part) for at, part in enumerate(parts))


def select(query: JoinQuery, times: dict[str, str], *, interval_joins: bool) -> str:
    """Return a query. `times` names each stream's event-time column."""
    timed = interval_joins and query.window_s is not None
    sources = f"{table(query.stream_of(query.relations[0]), timed=timed)} AS `{query.relations[0]}`"
    for position, relation in enumerate(query.relations[1:], start=1):
        joins = query.joins_of(relation, query.relations[:position])
        terms = [condition(join.sql) for join in joins]
        if timed and query.window_s is not None:
            # One pair of event times makes an interval join, a second would make it a regular one.
            partner = next(iter(joins[0].relations - {relation}))
            terms.append(_within(partner, EVENT_TIME, relation, EVENT_TIME, query.window_s))
        sources += f" JOIN {table(query.stream_of(relation), timed=timed)} AS `{relation}` ON {' AND '.join(terms)}"
    where = [f"({condition(text)})" for text in (*(text for _, text in query.selections), *query.conditions)]
    where += _windows(query, times)
    columns = ", ".join(f"`{output.relation}`.`{output.column}` AS `{output.name}`" for output in query.outputs)
    return f"SELECT {columns} FROM {sources}" + (f" WHERE {' AND '.join(where)}" if where else "")


def _windows(query: JoinQuery, times: dict[str, str]) -> list[str]:
    if query.window_s is None:
        return []
    return [
        _within(left, times[query.stream_of(left)], right, times[query.stream_of(right)], query.window_s)
        for at, right in enumerate(query.relations)
        for left in query.relations[:at]
    ]


def _within(left: str, left_time: str, right: str, right_time: str, window_s: int) -> str:
    one, other, window = f"`{left}`.`{left_time}`", f"`{right}`.`{right_time}`", interval(window_s * 1000)
    return f"{other} BETWEEN {one} - {window} AND {one} + {window}"


def sink(query: JoinQuery, name: str, path: str | None) -> str:
    """Return the DDL of a query's sink: Parquet files below `path`, or nothing at all for None."""
    return results_sink(name, ", ".join(f"`{output.name}` {flink_type(output.type)}" for output in query.outputs), path)


def results_sink(name: str, columns: str, path: str | None) -> str:
    """Return the DDL of a sink of these columns: Parquet files below `path`, or nothing at all for None."""
    return _sink(name, columns, {"connector": "blackhole"} if path is None else _files(path, _PARQUET))


def delivery_sink(name: str, path: str) -> str:
    """Return the DDL of a sink of deliveries: CSV files of the file and the time of each result."""
    return _sink(name, "`file` INT, `at` TIMESTAMP_LTZ(3)", _files(path, _CSV))


def _files(path: str, format: Mapping[str, str]) -> dict[str, str]:
    return {"connector": "filesystem", "path": path, **format}


def _sink(name: str, columns: str, options: dict[str, str]) -> str:
    settings = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    return f"CREATE TEMPORARY TABLE `{name}` ({columns}) WITH ({settings})"


def delivered(query: JoinQuery, times: dict[str, str], slice_us: int, answers: str) -> str:
    """Return for each result of a view which file brought its newest member, and the time. Raises UnableError."""
    named = {(output.relation, output.column): output.name for output in query.outputs}
    missing = [each for each in query.relations if (each, times[query.stream_of(each)]) not in named]
    if missing:
        raise UnableError(
            f"query '{query.name}' does not output the event time of '{missing[0]}', so no latency is known"
        )
    taus = ", ".join(f"`{named[each, times[query.stream_of(each)]]}`" for each in query.relations)
    file = f"({_microseconds(f'GREATEST({taus})')} - {FIRST_US}) / {slice_us}"
    return f"SELECT CAST({file} AS INT), CURRENT_ROW_TIMESTAMP() FROM `{answers}`"


def _microseconds(time: str) -> str:
    """Return a time as a number of microseconds since 1970."""
    return f"(EXTRACT(EPOCH FROM {time}) * 1000000 + EXTRACT(MICROSECOND FROM {time}))"
