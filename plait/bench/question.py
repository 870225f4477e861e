"""The three-way join in the words of each system: ra = sa, sb = tb, and all three within 30 seconds of each other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from plait.bench.data import file_name

WINDOW_S = 30
QUERY = "triples"

SELECT = """
SELECT r.ts AS r_ts, r.rv AS rv, s.ts AS s_ts, s.sa AS sa, s.sb AS sb, s.sv AS sv, t.ts AS t_ts, t.tv AS tv
FROM r JOIN s ON r.ra = s.sa JOIN t ON s.sb = t.tb
""".strip()
"""What Plait is asked. That the members are near each other in time is what its windows say."""

TIMES = ("r_ts", "s_ts", "t_ts")
NUMBERS = ("rv", "sa", "sb", "sv", "tv")
SCHEMAS: Mapping[str, str] = {
    "r": "ts TIMESTAMP, ra BIGINT, rv BIGINT",
    "s": "ts TIMESTAMP, sa BIGINT, sb BIGINT, sv BIGINT",
    "t": "ts TIMESTAMP, tb BIGINT, tv BIGINT",
}


def spark_columns() -> tuple[str, ...]:
    """Return the result's columns as integers, in Spark SQL."""
    return (*(f"unix_micros({name})" for name in TIMES), *NUMBERS)


def duckdb_columns() -> tuple[str, ...]:
    """Return the result's columns as integers, in DuckDB SQL."""
    return (*(f"epoch_us({name})" for name in TIMES), *NUMBERS)


def duckdb_select(data: Path, files: int) -> str:
    """Return the join over the first `files` files of each stream as one batch query for DuckDB."""

    def source(stream: str) -> str:
        names = ", ".join("'" + str(data / stream / file_name(file)).replace("'", "''") + "'" for file in range(files))
        return f"read_parquet([{names}]) AS {stream}"

    def near(left: str, right: str) -> str:
        return f"abs(epoch_us({left}.ts) - epoch_us({right}.ts)) <= {WINDOW_S * 1_000_000}"

    conditions = ("r.ra = s.sa", "s.sb = t.tb", near("r", "s"), near("s", "t"), near("r", "t"))
    columns = SELECT.split("\n", 1)[0]
    return f"{columns} FROM {source('r')}, {source('s')}, {source('t')} WHERE {' AND '.join(conditions)}"
