"""A small workload of which much waits for the watermark, on the stand-in for Spark, with its oracle: DuckDB.

Two streams and queries of every kind that the watermark decides: rows without a partner, first partners, and groups of
windows of time and of sessions, of one stream and of a join that keeps rows without a partner. Of those that group some
keep the same in the same files.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import plait
from plait.sql import load_script
from tests.property.standin.session import Session

SECOND_US = 1_000_000
A_S, B_S = 20, 10
"""How long the windows of the streams are."""

STREAMS = f"""
    CREATE STREAM a (ts TIMESTAMP, k BIGINT, id BIGINT) USING parquet OPTIONS (path '{{0}}/a')
      TIMESTAMP BY ts WINDOW INTERVAL {A_S} SECONDS DELAY INTERVAL 1 SECOND;
    CREATE STREAM b (ts TIMESTAMP, k BIGINT, id BIGINT) USING parquet OPTIONS (path '{{0}}/b')
      TIMESTAMP BY ts WINDOW INTERVAL {B_S} SECONDS DELAY INTERVAL 1 SECOND;
"""
QUERIES = {
    "alone": "SELECT a.id AS a, b.id AS b FROM a LEFT JOIN b ON a.k = b.k",
    "both": "SELECT a.id AS a, b.id AS b FROM a FULL JOIN b ON a.k = b.k",
    "never": "SELECT a.id AS a FROM a LEFT ANTI JOIN b ON a.k = b.k",
    "once": "SELECT a.id AS a FROM a LEFT SEMI JOIN b ON a.k = b.k",
    "tally": "SELECT window.start AS begun, a.k AS k, count(*) AS n, count(b.id) AS matched, max(b.id) AS most "
    "FROM a LEFT JOIN b ON a.k = b.k GROUP BY window(a.ts, '8 seconds', '4 seconds'), a.k",
    "sums": "SELECT window.start AS begun, count(*) AS n, CAST(sum(b.id) AS BIGINT) AS total "
    "FROM b GROUP BY window(b.ts, '10 seconds')",
    "sums_long": "SELECT window.start AS begun, count(*) AS n, CAST(sum(b.id) AS BIGINT) AS total "
    "FROM b GROUP BY window(b.ts, '15 seconds')",
    "visits": "SELECT session_window.start AS begun, session_window.end AS until, b.k AS k, count(*) AS n, "
    "max(b.id) AS most FROM b GROUP BY session_window(b.ts, '2 seconds'), b.k",
    "visits_long": "SELECT session_window.start AS begun, session_window.end AS until, b.k AS k, count(*) AS n, "
    "max(b.id) AS most FROM b GROUP BY session_window(b.ts, '3 seconds'), b.k",
    "stays": "SELECT session_window.start AS begun, session_window.end AS until, a.k AS k, count(*) AS n, "
    "max(b.id) AS most FROM a LEFT JOIN b ON a.k = b.k GROUP BY session_window(a.ts, '1 second'), a.k",
}
_WITHIN = f"b.ts >= a.ts - INTERVAL {B_S} SECONDS AND b.ts <= a.ts + INTERVAL {A_S} SECONDS"


def _sessions(rows: str, gap_s: int) -> str:
    """Return the sessions of rows with `ts`, `k` and `id`, as gaps and islands."""
    marked = (
        f"SELECT *, ts - lag(ts) OVER (PARTITION BY k ORDER BY ts) <= INTERVAL {gap_s} SECONDS AS goes_on FROM {rows}"
    )
    islands = "count(*) FILTER (WHERE goes_on IS NOT TRUE) OVER (PARTITION BY k ORDER BY ts) AS island"
    return (
        f"SELECT min(ts), max(ts) + INTERVAL {gap_s} SECONDS, k, count(*), max(id) "
        f"FROM (SELECT *, {islands} FROM ({marked})) GROUP BY k, island"
    )


_WANTED = {
    "alone": f"SELECT a.id, b.id FROM a LEFT JOIN b ON a.k = b.k AND {_WITHIN}",
    "both": f"SELECT a.id, b.id FROM a FULL JOIN b ON a.k = b.k AND {_WITHIN}",
    "never": f"SELECT a.id FROM a ANTI JOIN b ON a.k = b.k AND {_WITHIN}",
    "once": f"SELECT a.id FROM a SEMI JOIN b ON a.k = b.k AND {_WITHIN}",
    "tally": "SELECT begun, k, count(*), count(other), max(other) FROM ("
    "SELECT unnest([bucket, bucket - INTERVAL 4 SECONDS]) AS begun, k, other FROM ("
    "SELECT time_bucket(INTERVAL 4 SECONDS, a.ts) AS bucket, a.k AS k, b.id AS other FROM a LEFT JOIN b "
    f"ON a.k = b.k AND {_WITHIN})) GROUP BY ALL",
    "sums": "SELECT time_bucket(INTERVAL 10 SECONDS, ts) AS begun, count(*), CAST(sum(id) AS BIGINT) "
    "FROM b GROUP BY ALL",
    "sums_long": "SELECT time_bucket(INTERVAL 15 SECONDS, ts, TIMESTAMP '1970-01-01 00:00:00') AS begun, count(*), "
    "CAST(sum(id) AS BIGINT) FROM b GROUP BY ALL",
    "visits": _sessions("b", 2),
    "visits_long": _sessions("b", 3),
    "stays": _sessions(f"(SELECT a.ts, a.k, b.id FROM a LEFT JOIN b ON a.k = b.k AND {_WITHIN})", 1),
}

Results = dict[str, Counter[tuple[Any, ...]]]


@dataclass(slots=True)
class Place:
    """A folder with both streams, a checkpoint and the sinks. `sinks`: in which format the queries write."""

    folder: Path
    rng: random.Random
    files: int = 0
    sinks: str = "parquet"

    def arrive(self, *, rows: int = 12, seconds: int = 6, keys: int = 6) -> None:
        """Let one file of each stream arrive, as many seconds later than the one before as they bring."""
        for stream in "ab":
            (self.folder / stream).mkdir(exist_ok=True)
            start = self.files * seconds
            taus = [(start + self.rng.randrange(seconds)) * SECOND_US for _ in range(rows)]
            columns = {
                "ts": pa.array(taus, pa.timestamp("us", "UTC")),
                "k": pa.array([self.rng.choice((None, *range(keys))) for _ in range(rows)], pa.int64()),
                "id": pa.array(range(self.files * rows, (self.files + 1) * rows), pa.int64()),
            }
            pq.write_table(pa.table(columns), self.folder / stream / f"{self.files:06d}.parquet")
        self.files += 1

    def engine(
        self, session: Session | None = None, queries: tuple[str, ...] = tuple(QUERIES), **options: Any
    ) -> plait.Engine:
        """Return an engine on the checkpoint with these queries; `options` are its own."""
        checkpoint = str(self.folder / "checkpoint")
        made = plait.Engine(session or Session(), checkpoint=checkpoint, **options)  # type: ignore[arg-type]
        made.load(load_script(self.script(queries)))
        return made

    def script(self, queries: tuple[str, ...] = tuple(QUERIES)) -> str:
        """Return what an engine is told."""
        into = "noop" if self.sinks == "noop" else f"{self.sinks} OPTIONS (path '{self.folder}/out/{{}}')"
        asked = (f"CREATE QUERY {name} INTO {into.format(name)} AS {QUERIES[name]};\n" for name in queries)
        return STREAMS.format(self.folder) + "".join(asked)

    def found(self) -> Results:
        """Return what lies in the sinks."""
        return {name: _rows(self.folder / "out" / name) for name in QUERIES}

    def wanted(self) -> Results:
        """Return what all files together come to once the input has ended."""
        with duckdb.connect() as connection:
            connection.sql("SET TimeZone = 'UTC'")
            for stream in "ab":
                read = f"SELECT CAST(ts AS TIMESTAMP) AS ts, k, id FROM '{self.folder}/{stream}/*.parquet'"
                connection.sql(f"CREATE TABLE {stream} AS {read}")
            return {name: Counter(connection.sql(sql).fetchall()) for name, sql in _WANTED.items()}


def _rows(folder: Path) -> Counter[tuple[Any, ...]]:
    files = sorted(folder.glob("*.parquet"))
    tables = [pq.read_table(file) for file in files]
    found: Counter[tuple[Any, ...]] = Counter()
    for table in tables:
        for number, field in enumerate(table.schema):
            if pa.types.is_timestamp(field.type):
                table = table.set_column(number, field.name, table.column(number).cast(pa.timestamp("us")))
        found.update(tuple(row.values()) for row in table.to_pylist())
    return found


__all__ = ["A_S", "B_S", "QUERIES", "Place", "Results"]
