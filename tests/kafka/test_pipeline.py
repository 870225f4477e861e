"""From Kafka through three queries into Kafka, a Delta table and a database, with kills, a broker that restarts and
topics that grow: who reads what is committed has each result once.

`PLAIT_PIPELINE_KILLS=20` for more of them than a run of all tests can wait for: each takes a start of Spark.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pytest

from tests.kafka.broker import Broker
from tests.kafka.database import Database
from tests.kafka.topics import Record, Topics

pytestmark = pytest.mark.spark

KILLS: Final = int(os.environ.get("PLAIT_PIPELINE_KILLS", "1"))
CHUNK: Final = 25
CHUNKS: Final = 5
START_MS: Final = 1767261600000
POINTS: Final = ("sent", "noted", "transacted", "written", "settle", "committed", "delivered", "published", "stored")
PATIENCE_S: Final = 240
SCRIPT = """
SET plait.batch_rows = 40;
CREATE STREAM orders USING kafka
  OPTIONS (kafka.bootstrap.servers '{broker}', subscribe 'p-orders', startingOffsets 'earliest',
    kafka.metadata.max.age.ms '500')
  TIMESTAMP BY timestamp WINDOW INTERVAL 1 HOUR DELAY INTERVAL 1 HOUR
  FORMAT json (id BIGINT, city STRING) AS SELECT id, city, timestamp FROM source;
CREATE STREAM items USING kafka
  OPTIONS (kafka.bootstrap.servers '{broker}', subscribe 'p-items', startingOffsets 'earliest',
    kafka.metadata.max.age.ms '500')
  TIMESTAMP BY timestamp WINDOW INTERVAL 1 HOUR DELAY INTERVAL 1 HOUR
  FORMAT json (order_id BIGINT, qty INT) AS SELECT order_id, qty, timestamp FROM source;
CREATE QUERY joined INTO kafka
  OPTIONS (kafka.bootstrap.servers '{broker}', topic 'p-joined', key 'id', delivery 'exactly once')
  AS SELECT o.id, i.qty FROM orders o JOIN items i ON o.id = i.order_id;
CREATE QUERY many INTO delta OPTIONS (path 'many')
  AS SELECT o.id, i.qty FROM orders o JOIN items i ON o.id = i.order_id WHERE i.qty > 5;
CREATE QUERY cities INTO jdbc OPTIONS (url '{url}', dbtable 'cities', user 'plait')
  AS SELECT o.id, o.city, i.qty FROM orders o JOIN items i ON o.id = i.order_id WHERE o.city <> 'c0';
"""


class Rows:
    """Records of both topics, and what a query over all of them has for results."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._orders: list[tuple[int, str]] = []
        self._items: list[tuple[int, int]] = []

    def more(self, topics: Topics, partitions: int) -> None:
        """Send a chunk to each topic."""
        for _ in range(CHUNK):
            self._orders.append((self._random.randrange(60), f"c{self._random.randrange(4)}"))
            self._items.append((self._random.randrange(60), self._random.randrange(10)))
        orders = [{"id": id_, "city": city} for id_, city in self._orders[-CHUNK:]]
        items = [{"order_id": id_, "qty": qty} for id_, qty in self._items[-CHUNK:]]
        topics.send("p-orders", self._records(orders, 1))
        topics.send("p-items", self._records(items, partitions))

    def _records(self, values: Iterable[dict[str, Any]], partitions: int) -> Iterator[Record]:
        for value in values:
            at_ms = START_MS + self._random.randrange(60_000)
            yield Record(value=json.dumps(value), partition=self._random.randrange(partitions), at_ms=at_ms)

    def joined(self) -> list[tuple[int, str, int]]:
        """Return the join of all rows."""
        return [(id_, city, qty) for id_, city in self._orders for order_id, qty in self._items if id_ == order_id]


class Life:
    """Runs of one script on one checkpoint."""

    def __init__(self, place: Path, log: Path) -> None:
        self._place, self._log = place, log

    def command(self, *more: str) -> list[str]:
        checkpoint = ["--checkpoint", str(self._place / "checkpoint")]
        return [sys.executable, "-m", "plait.cli.main", "run", str(self._place / "s.sql"), "--json", *checkpoint, *more]

    def start(self, fault: str | None) -> subprocess.Popen[bytes]:
        """Start a run that goes on, and that dies at a point if one is given."""
        environment = {**os.environ, **({} if fault is None else {"PLAIT_FAULT": fault})}
        with self._log.open("ab") as log:
            return subprocess.Popen(
                self.command(), stdout=log, stderr=subprocess.STDOUT, env=environment, start_new_session=True
            )

    def finish(self) -> None:
        """Take in what there is, in large batches."""
        script = self._place / "s.sql"
        script.write_text(script.read_text().replace("batch_rows = 40", "batch_rows = 4000"))
        done = subprocess.run(
            self.command("--available-now"), capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:] + self._log.read_text()[-3000:]


def delta_rows(table: Path) -> list[dict[str, Any]]:
    """Return the rows of a Delta table to which rows have only been added."""
    commits = [path.read_text().splitlines() for path in sorted((table / "_delta_log").glob("*.json"))]
    added = [action["add"]["path"] for commit in commits for action in map(json.loads, commit) if "add" in action]
    return [row for path in added for row in pq.read_table(table / path).to_pylist()]


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and all it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_what_is_committed_is_what_a_batch_engine_finds(
    running: Broker, broker: str, database: Database, tmp_path: Path
) -> None:
    chance, topics = random.Random(int(os.environ.get("PLAIT_SEED", "1"))), Topics(broker)
    for topic, partitions in (("p-orders", 1), ("p-items", 2), ("p-joined", 2)):
        topics.create(topic, partitions)
    (tmp_path / "s.sql").write_text(SCRIPT.format(broker=broker, url=database.url))
    rows, partitions = Rows(chance.randrange(60)), 2
    life = Life(tmp_path, tmp_path / "log")
    died = Counter[str]()
    for number in range(KILLS):
        point = ("transacted", "written")[number] if number < 2 else chance.choice((*POINTS, "", "", ""))
        rows.more(topics, partitions)
        process = life.start(f"{point}:{chance.randrange(1, 4)}" if point else None)
        until = time.monotonic() + (PATIENCE_S if point else chance.uniform(5, 12))
        sent = 0
        while process.poll() is None and time.monotonic() < until:
            if sent < CHUNKS:
                rows.more(topics, partitions)
                sent += 1
            time.sleep(0.5)
            if number == KILLS // 2 and partitions == 2:
                running.restart()
                topics.grow("p-items", 3)
                partitions = 3
        died[point or "any"] += process.poll() is not None
        kill(process)
    life.finish()
    expected = rows.joined()
    sent = [json.loads(value) for _, value, _ in topics.committed("p-joined")]
    assert Counter((row["id"], row["qty"]) for row in sent) == Counter((id_, qty) for id_, _, qty in expected)
    many = Counter((row["id"], row["qty"]) for row in delta_rows(tmp_path / "many"))
    assert many == Counter((id_, qty) for id_, _, qty in expected if qty > 5)
    found = Counter(database.ask("SELECT id, city, qty FROM cities"))
    assert found == Counter((str(id_), city, str(qty)) for id_, city, qty in expected if city != "c0")
    assert set(("transacted", "written")[:KILLS]) <= set(died.elements())
