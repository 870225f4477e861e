"""Streams of topics: what a consumer has sent is what queries see, and what cannot be read is set aside.

Two processes read the one broker: `plait run`, which has to find its connectors by itself, and a program that goes on
while topics change.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.kafka.topics import Record, Topics

pytestmark = pytest.mark.spark

HEADERS = ("checkpoint", "query", "batch", "index")
START_MS = 1767261600000
SCHEMA = {
    "type": "record",
    "name": "Click",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "page", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
SCRIPT = """
SET plait.batch_rows = 40;
CREATE STREAM orders USING kafka
  OPTIONS (kafka.bootstrap.servers '{broker}', subscribe 'orders', startingOffsets 'earliest', includeHeaders true,
    deadLetter 'letters')
  TIMESTAMP BY ts WINDOW INTERVAL 1 MINUTE DELAY INTERVAL 1 MINUTE FORMAT json (id BIGINT, city STRING, at BIGINT)
  AS SELECT id, city, timestamp_millis(at) AS ts, CAST(key AS STRING) AS k, topic, partition, offset,
    timestamp AS sent, CAST(headers[0].value AS STRING) AS header FROM source WHERE id IS NULL OR id >= 0;
CREATE STREAM items USING kafka
  OPTIONS (kafka.bootstrap.servers '{broker}', subscribePattern 'items-[ab]', startingOffsets 'earliest', sep ';')
  TIMESTAMP BY ts WINDOW INTERVAL 1 MINUTE DELAY INTERVAL 1 MINUTE FORMAT csv (order_id BIGINT, qty INT, ts TIMESTAMP);
CREATE STREAM clicks USING kafka
  OPTIONS (kafka.bootstrap.servers '{broker}', subscribe 'clicks', startingOffsets 'earliest')
  TIMESTAMP BY at WINDOW INTERVAL 1 MINUTE DELAY INTERVAL 1 MINUTE FORMAT avro ('click.avsc');
CREATE QUERY joined INTO parquet OPTIONS (path 'joined')
  AS SELECT o.id, o.city, i.qty, c.page FROM orders o, items i, clicks c WHERE o.id = i.order_id AND c.id = o.id;
CREATE QUERY told INTO parquet OPTIONS (path 'told')
  AS SELECT id, k, topic, partition, offset, sent, header FROM orders;
"""


def avro(id_: int, page: str | None, at_ms: int) -> bytes:
    """Return a click in Avro's encoding, by its specification."""
    text = b"\x00" if page is None else b"\x02" + _long(len(page.encode())) + page.encode()
    return _long(id_) + text + _long(at_ms)


def _long(value: int) -> bytes:
    rest, parts = (value << 1) ^ (value >> 63), []
    while rest > 0x7F:
        parts.append(0x80 | (rest & 0x7F))
        rest >>= 7
    return bytes([*parts, rest])


def order(number: int, **more: Any) -> str:
    return json.dumps({"id": number, "city": f"c{number}", "at": START_MS + 10 * number, **more})


@pytest.fixture(scope="module")
def topics(broker: str) -> Topics:
    return Topics(broker)


def run_script(place: Path) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "plait.cli.main", "run", str(place / "s.sql"), "--available-now", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def written(folder: Path) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in pq.read_table(folder).to_pylist())


def send_everything(topics: Topics) -> None:
    """Send 100 orders with what belongs to them, and among them what cannot be read."""
    topics.create("orders", 2)
    for topic in ("items-a", "items-b", "items-c", "clicks"):
        topics.create(topic)
    good = [
        Record(value=order(n), key=f"k{n}", partition=n % 2, at_ms=START_MS + n, headers={"trace": b"t%d" % n})
        for n in range(100)
    ]
    bad = [
        Record(value=None, key="k7", partition=1),
        Record(value='{"id": 1, "ci', partition=0),
        Record(value=b"\xff\xfe", partition=0),
        Record(value=order(-5), partition=0),
    ]
    topics.send("orders", [*good[:50], *bad, *good[50:]])
    for n in range(100):
        item = Record(value=f"{n};{n % 9};2026-01-01T10:00:{n % 60:02d}Z")
        topics.send(f"items-{'abc'[n % 3]}", [item])
        page = None if n % 5 == 0 else f"p{n}"
        topics.send("clicks", [Record(value=avro(n, page, START_MS + 10 * n))])
    topics.send("clicks", [Record(value=b"\x80")])


def test_a_script_joins_topics_of_every_format_and_sets_aside_what_it_cannot_read(
    broker: str, topics: Topics, tmp_path: Path
) -> None:
    send_everything(topics)
    (tmp_path / "s.sql").write_text(SCRIPT.format(broker=broker))
    (tmp_path / "click.avsc").write_text(json.dumps(SCHEMA))
    *events, finished = run_script(tmp_path)
    pages = {n: None if n % 5 == 0 else f"p{n}" for n in range(100)}
    assert written(tmp_path / "joined") == [(n, f"c{n}", n % 9, pages[n]) for n in range(100) if n % 3 < 2]
    told = {row[0]: row for row in written(tmp_path / "told")}
    assert set(told) == set(range(100))
    assert all((row[1], row[2], row[3], row[6]) == (f"k{n}", "orders", n % 2, f"t{n}") for n, row in told.items())
    assert all(row[5].timestamp() * 1000 == START_MS + n for n, row in told.items())
    assert [told[n][4] for n in (0, 1, 48, 49)] == [0, 0, 24, 24]
    batches = [event for event in events if event["event"] == "batch"]
    assert max(batch["rows_in"] for batch in batches) <= 44
    bad = {name: {each["reason"]: each["rows"] for each in of["bad"]} for name, of in finished["sources"].items()}
    assert bad == {"orders": {"malformed": 3}, "items": {}, "clicks": {"malformed": 1}}
    letters = [json.loads(row["row"]["_corrupt_record"]) for row in pq.read_table(tmp_path / "letters").to_pylist()]
    assert sorted(letters, key=json.dumps) == [
        {"failed": "FORMAT json", "topic": "orders", "partition": 0, "offset": 25, "value": '{"id": 1, "ci'},
        {"failed": "FORMAT json", "topic": "orders", "partition": 0, "offset": 26, "base64": "//4="},
        {"failed": "tombstone", "topic": "orders", "partition": 1, "offset": 25},
    ]


@pytest.fixture(scope="module")
def told(broker: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the program tells."""
    tmp_path = tmp_path_factory.mktemp("program")
    program = [sys.executable, "-m", "tests.kafka.program", broker, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(program, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def test_a_run_goes_on_with_new_partitions_past_records_that_are_gone_and_says_how_far_it_is(
    told: dict[str, Any],
) -> None:
    assert told["first"] == list(range(10))
    assert told["lag"] == {"grown-0": 0, "grown-1": 0, "grown-2": 0}
    assert told["results"] == list(range(40))
    assert told["gone"] == 6
    assert told["shrunk"] == [*range(100, 104), *range(110, 120)]
    assert "records of its topic are gone that were not read yet" in told["refused"]
    assert "failOnDataLoss 'false'" in told["refused"]
    assert "no Kafka broker answers" in told["nobody"]


def test_the_logs_tell_which_batch_took_a_record(told: dict[str, Any]) -> None:
    taken, later, waits, never = told["why"]
    assert taken[0].startswith("  arrived with batch 0, event time 2026-01-01 10:00:00")
    assert taken[1] == "  there is a result: it came with batch 0"
    assert re.fullmatch(r"  there is a result: it came with batch [1-9]\d*", later[1])
    unread = "but no batch that is done has read it: it waits for the next one"
    assert waits == [f"  arrived, event time 2026-01-01 10:00:00.040000, {unread}"]
    assert never[0].startswith("  not arrived: there is no row of stream grown with grown.id = 41 to read")
    assert told["lost"][-2:] == [
        "  there is a result: it came with batch 1",
        "  but of stream shrunk records are deleted that were read, and nothing is known of those: "
        "shrunk-0 before offset 10",
    ]


def test_what_is_sent_again_after_a_kill_has_the_headers_it_had(told: dict[str, Any]) -> None:
    sent = [(key, json.loads(value), headers) for key, value, headers in told["sent"]]
    assert [key for key, _, _ in sent] == [str(value["id"]) for _, value, _ in sent]
    by_header = {tuple(headers[name] for name in HEADERS): value["id"] for _, value, headers in sent}
    assert sorted(by_header.values()) == [0, 1, 2, 3, 4, 5, 5, 6, 6, 7, 7]
    assert len(sent) == 5 + 2 * 6
    assert {(query, batch) for _, query, batch, _ in by_header} == {("of_numbers", "0"), ("of_numbers", "1")}
    assert set(told["avro"]) == {(b"\x00" + _long(n)).hex() for n in range(8)}
