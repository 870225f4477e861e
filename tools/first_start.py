"""Run a small script once, so that what a first start makes is there for all later ones: compiled kernels beside the
package, and the class-data archive of Spark's JVM in the user's cache (`plait.runtime.spark.archive`).

The script takes every way through Spark that usual ones take, since the archive holds the classes this run loads.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from plait.runtime.spark.archive import find_archive

_PATIENCE_S = 300
_SCRIPT = """
CREATE STREAM orders USING parquet OPTIONS (path 'orders', maxFilesPerTrigger '1')
  TIMESTAMP BY ts WINDOW INTERVAL 1 MINUTE DELAY INTERVAL 1 SECOND;
CREATE STREAM items (id BIGINT, k BIGINT, name STRING, amount DOUBLE, ts TIMESTAMP)
  USING csv OPTIONS (path 'items', header 'true', maxFilesPerTrigger '1') TIMESTAMP BY ts WINDOW INTERVAL 1 MINUTE;
CREATE STREAM clicks (id BIGINT, k BIGINT, name STRING, amount DOUBLE, ts TIMESTAMP)
  USING json OPTIONS (path 'clicks', maxFilesPerTrigger '1') TIMESTAMP BY ts WINDOW INTERVAL 1 MINUTE;
CREATE TABLE names USING parquet OPTIONS (path 'names.parquet');
CREATE QUERY joined INTO parquet OPTIONS (path 'out/joined')
  AS SELECT o.id, i.id AS item, c.id AS click FROM orders o, items i, clicks c WHERE o.k = i.k AND i.k = c.k;
CREATE QUERY computed INTO csv OPTIONS (path 'out/computed', header 'true')
  AS SELECT upper(o.name) AS name, round(o.amount * n.amount, 2) AS amount FROM orders o, items i, names n
  WHERE o.k = i.k AND o.id = n.id AND o.amount + i.amount > 3 AND substr(i.name, 1, 1) = 'n';
CREATE QUERY near INTO json OPTIONS (path 'out/near')
  AS SELECT o.id, c.id AS click FROM orders o, clicks c WHERE o.amount BETWEEN c.amount - 1 AND c.amount AND o.k = c.k;
"""
_BATCHES, _ROWS = 4, 200


def main() -> int:
    """Run the script and wait for what it leaves; return the exit status."""
    with tempfile.TemporaryDirectory(prefix="plait-first-start-") as place:
        directory = Path(place)
        _write(directory)
        command = [
            sys.executable,
            "-m",
            "plait.cli.main",
            "run",
            str(directory / "first.sql"),
            "--available-now",
            "--json",
        ]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            print(done.stdout, file=sys.stderr)
            return done.returncode
        archive = find_archive()
        if archive is not None and not archive.wait(_PATIENCE_S):
            print("Spark left no class-data archive; starts will take longer, and nothing else", file=sys.stderr)
    return 0


def _write(directory: Path) -> None:
    (directory / "first.sql").write_text(_SCRIPT)
    for stream in ("orders", "items", "clicks"):
        (directory / stream).mkdir()
    pq.write_table(_rows(0), directory / "names.parquet")
    for batch in range(_BATCHES):
        rows = _rows(batch)
        pq.write_table(rows, directory / "orders" / f"{batch}.parquet")
        pacsv.write_csv(rows.set_column(4, "ts", _texts(rows)), directory / "items" / f"{batch}.csv")
        lines = rows.set_column(4, "ts", _texts(rows)).to_pandas().to_json(orient="records", lines=True)
        (directory / "clicks" / f"{batch}.json").write_text(lines)


def _rows(batch: int) -> pa.Table:
    ids = range(batch * _ROWS, (batch + 1) * _ROWS)
    start = datetime(2020, 1, 1, tzinfo=timezone.utc)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "k": pa.array([number % 20 for number in ids], pa.int64()),
            "name": pa.array([f"n{number}" for number in ids], pa.string()),
            "amount": pa.array([number % 7 for number in ids], pa.float64()),
            "ts": pa.array([start + timedelta(milliseconds=100 * number) for number in ids], pa.timestamp("us", "UTC")),
        }
    )


def _texts(rows: pa.Table) -> pa.Array:
    return pa.array([moment.isoformat() for moment in rows["ts"].to_pylist()], pa.string())


if __name__ == "__main__":
    sys.exit(main())
