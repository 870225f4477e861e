"""A program that reads Delta tables while they change; what came of it is its last line."""

from __future__ import annotations

import json
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import plait
from plait.errors import PlaitError
from plait.runtime.spark.session import open_session
from plait.sql import load_script
from tests.delta_tables import DeltaTable

_ORDERS = {"id": "long", "city": "string", "ts": "timestamp"}
_SCRIPT = """
SET plait.batch_rows = 40;
CREATE STREAM orders USING delta OPTIONS (path '{0}/orders')
  TIMESTAMP BY ts WINDOW INTERVAL 1 HOUR DELAY INTERVAL 1 HOUR;
CREATE STREAM items USING delta OPTIONS (path '{0}/items', startingVersion '2')
  TIMESTAMP BY ts WINDOW INTERVAL 1 HOUR DELAY INTERVAL 1 HOUR;
CREATE TABLE cities USING delta OPTIONS (path '{0}/cities') REFRESH INTERVAL 1 MILLISECOND;
CREATE TABLE first USING delta OPTIONS (path '{0}/cities', versionAsOf '1');
CREATE QUERY joined INTO delta OPTIONS (path '{0}/joined', mergeSchema 'true')
  AS SELECT o.id, i.qty, c.country{1} FROM orders o JOIN items i ON o.id = i.order_id JOIN cities c ON c.name = o.city;
CREATE QUERY known INTO memory AS SELECT o.id FROM orders o JOIN first f ON f.name = o.city;
"""


def orders(ids: range, **more: Any) -> list[dict[str, Any]]:
    """Return a row for each number, of cities 0 and 1."""
    return [
        {"id": n, "city": f"c{n % 2}", "ts": datetime.fromtimestamp(1767261600 + n, timezone.utc), **more} for n in ids
    ]


def items(ids: range) -> list[dict[str, Any]]:
    """Return a row for each number."""
    return [{"order_id": n, "qty": n % 5, "ts": datetime.fromtimestamp(1767261600 + n, timezone.utc)} for n in ids]


def main(place: Path) -> None:
    """Run all of it in one session."""
    spark = open_session("local[2]", {"spark.sql.shuffle.partitions": "2"}, formats=["delta"])
    told = join(spark, place) | refuse(spark, place) | declare(spark, place)
    print(json.dumps(told))
    spark.stop()


def engine_of(spark: Any, place: Path, more: str = "") -> plait.Engine:
    """Return an engine on the script."""
    engine = plait.Engine(spark, checkpoint=str(place / "checkpoint"))
    engine.load(load_script(_SCRIPT.format(place, more)))
    return engine


def join(spark: Any, place: Path) -> dict[str, Any]:
    """Join tables that grow by rows, cities and a column, and ask about rows."""
    first, second = (
        DeltaTable(place / "orders", _ORDERS),
        DeltaTable(place / "items", {"order_id": "long", "qty": "integer", "ts": "timestamp"}),
    )
    cities = DeltaTable(place / "cities", {"name": "string", "country": "string"})
    cities.append({"name": "c0", "country": "x"})
    second.append(*items(range(1000)))  # before the version that the stream starts with
    for begin in range(0, 40, 10):
        first.append(*orders(range(begin, begin + 10)))
        second.append(*items(range(begin, begin + 10)))
    engine = engine_of(spark, place)
    batches = [engine.run_available().batches]
    cities.append({"name": "c1", "country": "y"})
    first.append(*orders(range(40, 50), note="new"), columns={**_ORDERS, "note": "string"})
    second.append(*items(range(40, 50)))
    engine = engine_of(spark, place, ", o.note")
    batches.append(engine.run_available().batches)
    asked = {row: engine.why("joined", row) for row in ("o.id = 2", "o.id = 31", "o.id = 45")}
    first.append(*orders(range(50, 51)), columns={**_ORDERS, "note": "string"})
    asked["o.id = 50"] = engine.why("joined", "o.id = 50")
    first.rewrite([], *orders(range(51, 52)), data_change=False)
    return {
        "batches": batches,
        "joined": rows_of(place / "joined"),
        "known": sorted(engine.results("known")["id"].to_pylist()),
        "why": {row: trace.as_text().splitlines()[1:] for row, trace in asked.items()},
        "untold": error_of(lambda: engine.why("joined", "o.id = 2")),
    }


def rows_of(table: Path) -> list[dict[str, Any]]:
    """Return the rows of a table to which rows have only been added, by their number."""
    found = [row for path in table.glob("*.parquet") for row in pq.read_table(path).to_pylist()]
    return sorted(found, key=lambda row: row["id"])


def refuse(spark: Any, place: Path) -> dict[str, Any]:
    """Change rows of a table, for a stream that may pass over that and for one that may not."""
    table = DeltaTable(place / "changed", _ORDERS)
    name = table.append(*orders(range(3)))

    def run(checkpoint: str, **options: str) -> list[int]:
        engine = plait.Engine(spark, checkpoint=str(place / checkpoint))
        given = {"path": str(table.folder), **options}
        engine.stream("changed", format="delta", options=given, time="ts", window="1 hour", delay="1 hour")
        engine.query("all", "SELECT id FROM changed", sink=plait.sinks.memory())
        engine.run_available()
        return sorted(engine.results("all")["id"].to_pylist())

    seen = [run("strict"), run("tolerant", skipChangeCommits="true")]
    table.rewrite([name], *orders(range(1, 3)))
    table.append(*orders(range(3, 5)))
    changed = error_of(lambda: run("strict"))
    seen.append(run("tolerant", skipChangeCommits="true"))
    table.append(*orders(range(5, 6), note="new"), columns={**_ORDERS, "note": "string"})
    seen.append(run("tolerant", skipChangeCommits="true"))
    return {
        "seen": seen,
        "changed": changed,
        "nowhere": error_of(lambda: run("nowhere", path=str(place))),
        "no version": error_of(lambda: run("no version", startingVersion="99")),
    }


def declare(spark: Any, place: Path) -> dict[str, Any]:
    """Give an engine a DataFrame of a table that the program reads by itself."""
    engine = plait.Engine(spark, checkpoint=str(place / "frames"))
    named = spark.readStream.name("given").format("delta").load(str(place / "items"))
    engine.stream("given", named, time="ts", window="1 hour", delay="1 hour")
    engine.table("cities", spark.read.format("delta").load(str(place / "cities")))
    engine.query(
        "all",
        "SELECT g.order_id, c.country FROM given g JOIN cities c ON g.qty = length(c.name)",
        sink=plait.sinks.memory(),
    )
    return {"given": engine.run_available().queries[0][1]}


def error_of(call: Any) -> str:
    """Return what a call is refused with."""
    try:
        return f"not refused: {call()}"
    except PlaitError as error:
        return str(error)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
