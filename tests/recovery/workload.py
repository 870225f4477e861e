"""A small workload that uses every way results leave Plait, with its oracle: what must lie in the sinks in the end.

Three streams of one file per batch, some rows late, seven queries: Parquet straight from the probe tasks, Parquet,
Parquet in partitions, CSV and JSON through Spark, and groups of windows of time as Parquet. Runs as a program too:
``python -m tests.recovery.workload DIRECTORY``.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

BATCHES = 8
ROWS = 120
WINDOW_S, DELAY_S, BATCH_S = 20, 2, 10

SCHEMAS = {
    "r": "ts TIMESTAMP, k BIGINT, name STRING",
    "s": "ts TIMESTAMP, k BIGINT, j BIGINT",
    "t": "ts TIMESTAMP, j BIGINT, name STRING",
}
QUERIES = {
    "plain": ("parquet", "SELECT r.k, r.ts, s.j, t.name FROM r JOIN s ON r.k = s.k JOIN t ON s.j = t.j"),
    "computed": (
        "parquet",
        "SELECT upper(r.name) AS name, s.j + t.j AS total FROM r, s, t WHERE r.k = s.k AND s.j = t.j AND r.k > 3",
    ),
    "names": ("json", "SELECT r.name AS a, t.name AS b FROM r JOIN t ON lower(r.name) = lower(t.name)"),
    "parts": (
        "parquet",
        "SELECT r.k, t.j, t.name || ' / =' || CAST(t.j % 3 AS STRING) AS name FROM r JOIN t ON r.k = t.j",
    ),
    "tally": (
        "parquet",
        "SELECT unix_micros(window.start) AS at, r.k, count(*) AS n, sum(s.j) AS total FROM r JOIN s ON r.k = s.k "
        "GROUP BY window(r.ts, '8 seconds', '4 seconds'), r.k",
    ),
    "pairs": ("csv", "SELECT a.k AS k, a.j AS x, b.j AS y FROM s a JOIN s b ON a.k = b.k WHERE a.j < 5"),
    "alone": ("parquet", "SELECT r.k, r.ts, r.name, s.j FROM r LEFT JOIN s ON r.k = s.k AND s.j < 20"),
}


_TALLY = f"""
    SELECT begin, k, count(*), CAST(sum(j) AS BIGINT) FROM (
      SELECT r.k, s.j, unnest([slot * 4000000 - 400000000, slot * 4000000 - 404000000]) AS begin
      FROM (SELECT *, (epoch_us(ts) + 400000000) // 4000000 AS slot FROM r) r JOIN s ON r.k = s.k
      WHERE greatest(r.ts, s.ts) - least(r.ts, s.ts) <= INTERVAL {WINDOW_S} SECONDS
    ) WHERE begin + 8000000 + {WINDOW_S} * 1000000 <= {{watermark}} GROUP BY ALL
"""


def make_input(directory: Path, batches: int = BATCHES, seed: int = 7) -> None:
    """Write the streams' files, one a batch; about one row in twenty is late."""
    rng = np.random.default_rng(seed)
    for stream, schema in SCHEMAS.items():
        for batch in range(batches):
            start = batch * BATCH_S * 1_000_000
            tau = rng.integers(start, start + BATCH_S * 1_000_000, ROWS)
            tau[rng.random(ROWS) < 0.05] -= 3 * BATCH_S * 1_000_000
            columns: dict[str, Any] = {"ts": pa.array(tau, pa.timestamp("us", tz="UTC"))}
            for field in schema.split(", ")[1:]:
                name, kind = field.split(" ")
                numbers = rng.integers(0, 30, ROWS)
                null = rng.random(ROWS) < 0.05
                values = [f"{'Ab' if n % 2 else 'aB'}{n}" for n in numbers] if kind == "STRING" else numbers
                columns[name] = pa.array(values, pa.string() if kind == "STRING" else pa.int64(), mask=null)
            folder = directory / "in" / stream
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{batch:02d}.parquet"
            pq.write_table(pa.table(columns), path)
            os.utime(path, (1_700_000_000 + batch, 1_700_000_000 + batch))  # Spark reads the oldest file first


def expected(directory: Path) -> tuple[dict[str, Counter[tuple[Any, ...]]], Counter[tuple[str, str]]]:
    """Return per query the multiset of results, and the dead letters as (stream, reason) counts, by the rule book."""
    kept, late, watermark = _split_late(directory)
    with duckdb.connect() as connection:
        connection.sql("SET TimeZone = 'UTC'")
        for stream, table in kept.items():
            connection.register(stream, table)
        texts = {name: _with_window(sql) for name, (_, sql) in QUERIES.items()}
        texts["tally"] = _TALLY.format(watermark=watermark)
        # A row without a partner comes once the watermark has passed its window.
        texts["alone"] += f" WHERE s.j IS NOT NULL OR epoch_us(r.ts) + {WINDOW_S * 1_000_000} < {watermark}"
        return {name: Counter(connection.sql(sql).fetchall()) for name, sql in texts.items()}, late


def _split_late(directory: Path) -> tuple[dict[str, pa.Table], Counter[tuple[str, str]], int]:
    """Return the rows in time of each stream, how many are late, and the watermark in the end."""
    newest: dict[str, int] = {}
    kept: dict[str, list[pa.Table]] = {stream: [] for stream in SCHEMAS}
    late: Counter[tuple[str, str]] = Counter()
    for files in _batches(directory):
        watermark = min(newest.values()) - DELAY_S * 1_000_000 if len(newest) == len(SCHEMAS) else None
        for stream, numbers in files.items():
            table = pa.concat_tables(pq.read_table(directory / "in" / stream / f"{n:02d}.parquet") for n in numbers)
            tau = table["ts"].cast(pa.int64()).to_numpy()
            is_late = np.zeros(len(tau), bool) if watermark is None else tau < watermark
            kept[stream].append(table.filter(pa.array(~is_late)))
            if is_late.any():
                late[stream, "late"] += int(is_late.sum())
            newest[stream] = max(newest.get(stream, tau.max()), int(tau.max()))
    in_time = {stream: pa.concat_tables(tables) for stream, tables in kept.items()}
    return in_time, late, min(newest.values()) - DELAY_S * 1_000_000


def _batches(directory: Path) -> Iterator[dict[str, range]]:
    """Yield which files of each stream a batch takes: one, or what Spark has noted in its offset log.

    Killed after it has noted a file of a stream and before it has noted the batch, Spark takes another one with it.
    """
    count = len(list((directory / "in" / "r").iterdir()))
    taken = dict.fromkeys(SCHEMAS, 0)
    for batch in itertools.count():
        noted = directory / "checkpoint" / "spark" / "offsets" / str(batch)
        lines = noted.read_text().splitlines()[2:] if noted.exists() else ()
        noted_ends = (line.split(":", 1) for line in lines if not line.endswith(":-"))
        ends = {name: json.loads(offset)["logOffset"] + 1 for name, offset in noted_ends}
        until = {name: min(ends.get(name, first + 1), count) for name, first in taken.items()}
        files = {name: range(taken[name], until[name]) for name in SCHEMAS if until[name] > taken[name]}
        if not files:
            return
        yield files
        taken = until


def _with_window(sql: str) -> str:
    """Add the window condition: the oldest member lies at most the window behind the newest."""
    aliases = {"plain": "rst", "computed": "rst", "alone": "rs"}.get(
        next(n for n, (_, q) in QUERIES.items() if q == sql), ""
    )
    names = list(aliases) or (["a", "b"] if "s a" in sql else ["r", "t"])
    taus = ", ".join(f"{name}.ts" for name in names)
    window = f"greatest({taus}) - least({taus}) <= INTERVAL {WINDOW_S} SECONDS"
    return f"{sql} {'AND' if 'WHERE' in sql or 'LEFT' in sql else 'WHERE'} {window}"


def found(directory: Path) -> tuple[dict[str, Counter[tuple[Any, ...]]], Counter[tuple[str, str]]]:
    """Return what lies in the sinks now, as a reader sees it."""
    readers = {
        "parquet": "SELECT * FROM read_parquet('{}/*.parquet')",
        "parts": "SELECT * FROM read_parquet('{}/name=*/*.parquet', hive_partitioning = true, "
        "hive_types = {{name: 'VARCHAR'}})",
        "json": "SELECT a, b FROM read_json('{}/*.json', columns = {{a: 'VARCHAR', b: 'VARCHAR'}})",
        "csv": "SELECT * FROM read_csv('{}/*.csv', header = false, "
        "columns = {{k: 'BIGINT', x: 'BIGINT', y: 'BIGINT'}})",
    }
    results: dict[str, Counter[tuple[Any, ...]]] = {}
    with duckdb.connect() as connection:
        connection.sql("SET TimeZone = 'UTC'")
        for name, (kind, _) in QUERIES.items():
            folder = directory / "out" / name
            there = any(folder.glob(f"*.{kind}")) or any(folder.glob(f"name=*/*.{kind}"))
            reader = readers["parts" if name == "parts" else kind].format(folder)
            results[name] = Counter(connection.sql(reader).fetchall()) if there else Counter()
        letters: Counter[tuple[str, str]] = Counter()
        if any((directory / "dead").glob("*.parquet")):
            sql = f"SELECT stream, reason, count(*) FROM read_parquet('{directory}/dead/*.parquet') GROUP BY ALL"
            letters = Counter({(stream, reason): count for stream, reason, count in connection.sql(sql).fetchall()})
    return results, letters


def engine(directory: Path, spark: Any, **options: Any) -> Any:
    """Return the engine over the workload; `ilp` brings intermediate stores, which come and go as it learns."""
    import plait

    options.setdefault("strategy", "ilp")
    made = plait.Engine(spark, checkpoint=str(directory / "checkpoint"), **options)
    made.set_option("plait.store_weight", "30")
    for stream, schema in SCHEMAS.items():
        reader = spark.readStream.name(stream).schema(schema).option("maxFilesPerTrigger", 1)
        made.stream(
            stream,
            reader.parquet(str(directory / "in" / stream)),
            time="ts",
            window=f"{WINDOW_S} seconds",
            delay=f"{DELAY_S} seconds",
            dead_letter=str(directory / "dead"),
        )
    for name, (kind, sql) in QUERIES.items():
        options = {"partitionBy": "name"} if name == "parts" else {}
        made.query(name, sql, sink=getattr(plait.sinks, kind)(str(directory / "out" / name), **options))
    return made


def main() -> None:
    """Run what is available."""
    from plait.runtime.spark.session import open_session

    spark = open_session("local[2]")
    print("ready", flush=True)
    made = engine(Path(sys.argv[1]), spark, listener=lambda event: print("batch", event.batch, flush=True))
    summary = made.run_available()
    print("finished", summary.batches, flush=True)


if __name__ == "__main__":
    main()
