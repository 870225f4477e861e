"""Random queries over the groups of other queries, up to three levels of them, on the stand-in for Spark.

Two streams arrive. Queries group them, or a join of them; others select from these groups, join them with streams, with
other groups or with themselves, and group them again; and so on. What must come out DuckDB says, which computes each
query as a table out of those that it reads: its groups with the end of their window as event time, and what the windows
of a join ask for written into ON.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import plait
from plait.sql import load_script
from tests.property.standin.session import Session

SECOND_US = 1_000_000
WINDOWS_S = {"a": 20, "b": 10}
"""How long the windows of the streams are."""

TABLE = {"k": [0, 1, 1, None], "label": ["none", "one", "two", "null"]}
STREAMS = "CREATE TABLE t (k BIGINT, label STRING) USING parquet OPTIONS (path '{0}/t');\n" + "".join(
    f"CREATE STREAM {name} (ts TIMESTAMP, k BIGINT, id BIGINT) USING parquet OPTIONS (path '{{0}}/{name}', "
    "maxFilesPerTrigger '1')\n"
    f"  TIMESTAMP BY ts WINDOW INTERVAL {window_s} SECONDS DELAY INTERVAL 1 SECOND;\n"
    for name, window_s in WINDOWS_S.items()
)
Results = dict[str, Counter[tuple[Any, ...]]]
_KINDS = {"INNER JOIN": 3, "LEFT JOIN": 3, "RIGHT JOIN": 1, "FULL JOIN": 2, "LEFT SEMI JOIN": 2, "LEFT ANTI JOIN": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What queries can read: its event time, a column to join by and one to count with; the window, in seconds, that
    it has by itself, None for none.
    """

    name: str
    time: str
    key: str
    value: str
    window_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A query: its text, the windows of its relations, and the same over tables, times being microseconds. `read`: as
    what other queries read it, if they can. `kind`: what it is, for counting. `needs`: what it reads.
    """

    name: str
    text: str
    oracle: str
    kind: str
    needs: tuple[str, ...]
    windows: tuple[tuple[str, int], ...] = ()
    read: Read | None = None


_STREAMS = tuple(Read(name=name, time="ts", key="k", value="id", window_s=each) for name, each in WINDOWS_S.items())


def random_queries(rng: random.Random) -> tuple[Made, ...]:
    """Return queries of up to three levels, each over what comes before it."""
    made = list[Made]()
    below: list[Read] = [*_STREAMS]
    for level in range(rng.choice((2, 3, 3))):
        above = list[Read]()
        for number in range(rng.choice((1, 2) if level else (1, 1, 2))):
            name = f"q{level}{number}"
            last = above or below
            query = _random_query(rng, name, level, [*_STREAMS, *(each.read for each in made if each.read)], last)
            made.append(query)
            above += [] if query.read is None else [query.read]
        below = above or below
    top = [each.read for each in made if each.read is not None][-1]
    made.append(_joined(rng, "top", [top, rng.choice([*_STREAMS, top])]))
    return tuple(made)


def _random_query(rng: random.Random, name: str, level: int, known: list[Read], below: list[Read]) -> Made:
    first = rng.choice(below)
    if level == 0 or rng.random() < 0.5:
        is_joined = rng.random() < 0.4
        return _grouped(rng, name, [first, *([rng.choice(known)] if is_joined else [])])
    if rng.random() < 0.4:
        return (_selected if rng.random() < 0.7 else _labelled)(rng, name, first)
    return _joined(rng, name, [first, rng.choice(known)])


def _selected(rng: random.Random, name: str, read: Read) -> Made:
    least = rng.randrange(3)
    columns = ", ".join(f"p.{column} AS c{place}" for place, column in enumerate((read.time, read.key, read.value)))
    text = f"SELECT {columns} FROM {read.name} p WHERE p.{read.value} > {least} OR p.{read.key} IS NULL"
    return Made(name=name, text=text, oracle=text, kind="selected", needs=(read.name,))


def _labelled(rng: random.Random, name: str, read: Read) -> Made:
    kind = rng.choice(("JOIN", "LEFT JOIN"))
    columns = f"p.{read.time} AS at, p.{read.value} AS n, t.label AS label"
    text = f"SELECT {columns} FROM {read.name} p {kind} t ON p.{read.key} = t.k"
    return Made(name=name, text=text, oracle=text, kind="labelled", needs=(read.name,))


def _from(rng: random.Random, reads: list[Read], kinds: tuple[str, ...]) -> tuple[str, str, str, dict[str, int]]:
    """Return FROM as queries say it, the same over tables, the kind of join, and the windows of the relations."""
    if len(reads) == 1:
        tail = f"FROM {reads[0].name} p"
        return tail, tail, "", {}
    kind = rng.choices(kinds, [_KINDS[each] for each in kinds])[0]
    windows = {alias: rng.choice((5, 12, 30)) for alias in "pq"}
    tail = f"FROM {reads[0].name} p {kind} {reads[1].name} q ON p.{reads[0].key} = q.{reads[1].key}"
    if rng.random() < 0.3:
        tail += f" AND p.{reads[0].value} <> q.{reads[1].value}"
    taus = f"p.{reads[0].time}", f"q.{reads[1].time}"
    within = (
        f"{taus[1]} - {taus[0]} <= {windows['p'] * SECOND_US} AND {taus[0]} - {taus[1]} <= {windows['q'] * SECOND_US}"
    )
    return tail, f"{tail} AND {within}".replace("LEFT SEMI", "SEMI").replace("LEFT ANTI", "ANTI"), kind, windows


def _joined(rng: random.Random, name: str, reads: list[Read]) -> Made:
    tail, oracle, kind, windows = _from(rng, reads, tuple(_KINDS))
    shown = ["p"] if "SEMI" in kind or "ANTI" in kind else ["p", "q"]
    columns = [
        f"{alias}.{column}" for alias, read in zip(shown, reads, strict=False) for column in (read.time, read.value)
    ]
    select = "SELECT " + ", ".join(f"{column} AS c{place}" for place, column in enumerate(columns))
    return Made(
        name=name,
        text=f"{select} {tail}",
        oracle=f"{select} {oracle}",
        kind=kind.lower(),
        needs=tuple(read.name for read in reads),
        windows=tuple(windows.items()),
    )


def _grouped(rng: random.Random, name: str, reads: list[Read]) -> Made:
    tail, oracle, kind, windows = _from(rng, reads, ("INNER JOIN", "LEFT JOIN"))
    size_s, slides = rng.choice(((5, (5,)), (8, (8, 4, 3)), (10, (10, 5)), (13, (13,))))
    slide_s, having = rng.choice(slides), rng.choice((0, 0, 2))
    time, key, value = f"p.{reads[0].time}", f"p.{reads[0].key}", f"p.{reads[0].value}"
    counted = f"q.{reads[1].value}" if len(reads) > 1 else value
    by_key = rng.random() < 0.7
    aggregates = f"count({counted}) AS n, CAST(sum({value}) AS BIGINT) AS total"
    shown = f"{key if by_key else f'min({key})'} AS k, {aggregates}"
    size, slide = size_s * SECOND_US, slide_s * SECOND_US
    more = f" HAVING count(*) >= {having}" if having else ""
    window = f"window({time}, '{size_s} seconds', '{slide_s} seconds')"
    begun = f"{time} // {slide} * {slide} - back * {slide}"
    if rng.random() < 0.25:
        gap_s = rng.choice((1, 2, 4))
        by = [key] if by_key else []
        window = f"session_window({time}, '{gap_s} seconds')"
        return Made(
            name=name,
            text=f"SELECT session_window.start AS begun, session_window.end AS until, {shown} {tail} "
            f"GROUP BY {', '.join([window, *by])}{more}",
            oracle=_sessions(oracle, time, by, gap_s * SECOND_US, shown, more),
            kind=f"sessions {kind.lower()}".strip(),
            needs=tuple(read.name for read in reads),
            windows=tuple(windows.items()),
            read=Read(name=name, time="until", key="k", value="n"),
        )
    return Made(
        name=name,
        text=f"SELECT window.start AS begun, window.end AS until, {shown} {tail} "
        f"GROUP BY {window}{f', {key}' if by_key else ''}{more}",
        oracle=f"SELECT {begun} AS begun, {begun} + {size} AS until, {shown} {oracle} "
        f"CROSS JOIN range({-(-size // slide)}) AS backs(back) WHERE {begun} + {size} > {time} "
        f"GROUP BY {begun}{f', {key}' if by_key else ''}{more}",
        kind=f"grouped {kind.lower()}".strip(),
        needs=tuple(read.name for read in reads),
        windows=tuple(windows.items()),
        read=Read(name=name, time="until", key="k", value="n"),
    )


def _sessions(tail: str, time: str, by: list[str], gap: int, shown: str, more: str) -> str:
    """Return what DuckDB is asked for sessions: one begins where the row before is further away than the gap."""
    keys = "".join(f", {key}" for key in by)
    among = f"PARTITION BY {by[0]}" if by else ""
    order = f"OVER ({among} ORDER BY {time})"
    number = f"sum(is_first) OVER ({among.replace('p.', 'p_')} ORDER BY tau RANGE UNBOUNDED PRECEDING)"
    aliased = {f"{alias}.{column}": f"{alias}_{column}" for alias in "pq" for column in ("ts", "until", "k", "id", "n")}
    renamed, used = f"{shown}{keys}{more}", []
    for written, plain in aliased.items():
        if re.search(rf"\b{re.escape(written)}\b", f"{shown}{keys}"):
            used.append(f"{written} AS {plain}")
            renamed = re.sub(rf"\b{re.escape(written)}\b", plain, renamed)
    aggregates, grouped = renamed[: len(renamed) - len(more)] if more else renamed, ""
    if by:
        aggregates, _, grouped = aggregates.rpartition(", ")
        grouped = f", {grouped}"
    is_first = f"CAST({time} - lag({time}) {order} <= {gap} AS INT) IS DISTINCT FROM 1"
    inner = f"SELECT {', '.join([*used, f'{time} AS tau', f'({is_first})::INT AS is_first'])} {tail}"
    return (
        f"SELECT min(tau) AS begun, max(tau) + {gap} AS until, {aggregates} "
        f"FROM (SELECT *, {number} AS number FROM ({inner})) GROUP BY number{grouped}{more}"
    )


@dataclass(slots=True)
class Place:
    """A folder with both streams, a checkpoint and the sinks of these queries."""

    folder: Path
    rng: random.Random
    queries: tuple[Made, ...]
    files: int = 0
    seconds: int = 0

    def arrive(self, *, rows: int = 12, seconds: int = 6, keys: int = 4, streams: str = "ab") -> None:
        """Let one file of these streams arrive, of the seconds that follow those that have arrived."""
        for stream in streams:
            (self.folder / stream).mkdir(exist_ok=True)
            taus = [(self.seconds + self.rng.randrange(seconds)) * SECOND_US for _ in range(rows)]
            columns = {
                "ts": pa.array(taus, pa.timestamp("us", "UTC")),
                "k": pa.array([self.rng.choice((None, *range(keys))) for _ in range(rows)], pa.int64()),
                "id": pa.array([self.rng.randrange(9) for _ in range(rows)], pa.int64()),
            }
            pq.write_table(pa.table(columns), self.folder / stream / f"{self.files:06d}.parquet")
        self.files, self.seconds = self.files + 1, self.seconds + seconds

    def arrive_somehow(self) -> None:
        """Let one file of each stream arrive, or of one alone; of the first time of both."""
        streams = self.rng.choice(("ab", "ab", "a", "b")) if self.files else "ab"
        self.arrive(rows=self.rng.choice((1, 12, 12)), seconds=self.rng.choice((2, 6, 15)), streams=streams)

    def engine(self, session: Session | None = None, **options: Any) -> plait.Engine:
        """Return an engine on the checkpoint with the queries; `options` are its own."""
        checkpoint = str(self.folder / "checkpoint")
        made = plait.Engine(session or Session(), checkpoint=checkpoint, **options)  # type: ignore[arg-type]
        made.load(load_script(self.script()))
        return made

    def script(self) -> str:
        """Return what an engine is told."""
        return STREAMS.format(self.folder) + "".join(map(self.statement, self.queries))

    def statement(self, query: Made) -> str:
        """Return the statement that creates a query."""
        windows = ", ".join(f"{alias} INTERVAL {seconds} SECONDS" for alias, seconds in query.windows)
        clause = f" WINDOW ({windows})" if windows else ""
        path = self.folder / "out" / query.name
        return f"CREATE QUERY {query.name} INTO parquet OPTIONS (path '{path}'){clause} AS {query.text};\n"

    def found(self) -> Results:
        """Return what lies in the sinks, times as microseconds."""
        return {query.name: rows_in(self.folder / "out" / query.name) for query in self.queries}

    def wanted(self) -> Results:
        """Return what all files together come to once the input has ended."""
        with duckdb.connect() as connection:
            connection.sql("SET TimeZone = 'UTC'")
            for stream in "ab":
                read = f"SELECT epoch_us(ts) AS ts, k, id FROM '{self.folder}/{stream}/*.parquet'"
                connection.sql(f"CREATE TABLE {stream} AS {read}")
            connection.register("t", pa.table(TABLE))
            for query in self.queries:
                connection.sql(f"CREATE TABLE {query.name} AS {query.oracle}")
            return {each.name: Counter(connection.sql(f"FROM {each.name}").fetchall()) for each in self.queries}


def rows_in(folder: Path) -> Counter[tuple[Any, ...]]:
    """Return the rows of the files in a sink's folder."""
    found: Counter[tuple[Any, ...]] = Counter()
    for file in sorted(folder.glob("*.parquet")):
        table = pq.read_table(file)
        for number, each in enumerate(table.schema):
            if pa.types.is_timestamp(each.type):
                micros = table.column(number).cast(pa.timestamp("us")).cast(pa.int64())
                table = table.set_column(number, each.name, micros)
        found.update(tuple(row.values()) for row in table.to_pylist())
    return found


def random_place(folder: Path, seed: int) -> Place:
    """Return a place with random queries, and nothing arrived yet."""
    rng = random.Random(f"derived {seed}")
    (folder / "t").mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(TABLE), folder / "t" / "0.parquet")
    return Place(folder, rng, random_queries(rng))


def only(place: Place, names: set[str]) -> Place:
    """Return the place with these of its queries."""
    return replace(place, queries=tuple(query for query in place.queries if query.name in names))


__all__ = ["STREAMS", "Made", "Place", "Read", "Results", "only", "random_place", "rows_in"]
