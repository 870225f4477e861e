"""Batches sent in transactions: there once, whatever dies when."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from plait.errors import SinkError
from plait.sinks.kind import Note
from plait.sinks.transactions import TopicWriter, send_once, was_sent
from tests.kafka.sending import records, results
from tests.kafka.topics import Topics

pytestmark = pytest.mark.spark

ALL = [{"id": 100 * batch + n} for batch in range(4) for n in range(20)]


@pytest.fixture(scope="module")
def topics(broker: str) -> Topics:
    return Topics(broker)


def sent(topics: Topics, topic: str) -> list[dict[str, int]]:
    return sorted((json.loads(value) for _, value, _ in topics.committed(topic)), key=lambda row: row["id"])


def test_a_batch_is_there_once_whenever_its_process_dies(broker: str, topics: Topics) -> None:
    topics.create("once", 2)
    for batch, point in enumerate(("sent", "noted", "transacted")):
        command = [sys.executable, "-m", "tests.kafka.sending", broker, "once", str(batch)]
        environment = {**os.environ, "PLAIT_FAULT": point, "PYTHONPATH": str(Path(__file__).parents[2])}
        died = subprocess.run(command, timeout=120, check=False, env=environment)
        assert died.returncode == -signal.SIGKILL
        assert was_sent(results(batch), "once", {"bootstrap.servers": broker}) == (point == "transacted")
        for _ in range(2):  # each as a new process would, which has nothing open
            send_once(results(batch), "once", {"bootstrap.servers": broker}, records(batch))
    last = results(3)
    send_once(last, "once", {"bootstrap.servers": broker}, records(3))
    assert sent(topics, "once") == ALL
    keys = {key for key, _, _ in topics.committed("once")}
    assert keys == {None} | {str(row["id"]) for row in ALL if row["id"] % 5}
    headers = [headers for _, _, headers in topics.committed("once") if headers["batch"] == "2"]
    assert sorted(int(each["index"]) for each in headers) == list(range(20))
    assert {(each["checkpoint"], each["query"]) for each in headers} == {("c0", "it's")}


def test_who_was_given_up_for_dead_can_commit_nothing(broker: str, topics: Topics) -> None:
    topics.create("fenced")
    settings = {"bootstrap.servers": broker}
    asleep, after = results(0), results(0)

    def fall_asleep() -> Iterable[pa.Table]:
        yield from records(0)
        send_once(after, "fenced", settings, records(0))

    with pytest.raises(SinkError, match="takes no transaction"):
        send_once(asleep, "fenced", settings, fall_asleep())
    assert sent(topics, "fenced") == ALL[:20]
    assert not asleep.connections


def test_what_cannot_be_sent_is_not_there_in_part(broker: str, topics: Topics) -> None:
    topics.create("whole")
    settings = {"bootstrap.servers": broker}
    batch = results(0)

    def broken() -> Iterable[pa.Table]:
        yield from records(0)
        raise OSError("a file is gone")

    with pytest.raises(OSError, match="a file is gone"):
        send_once(batch, "whole", settings, broken())
    assert sent(topics, "whole") == []
    send_once(batch, "whole", settings, records(0))
    assert sent(topics, "whole") == ALL[:20]
    with pytest.raises(SinkError, match=r"batch 0 of this checkpoint.*restored from a backup, or a copy"):
        send_once(results(0, mark="other"), "whole", settings, records(0))


def test_the_broker_remembers_a_query_by_topic_and_checkpoint(broker: str, topics: Topics) -> None:
    for topic in ("one", "two"):
        topics.create(topic)
    settings = {"bootstrap.servers": broker}
    send_once(results(7), "one", settings, records(0))
    writer = TopicWriter("plait-c0-it%27s", "one", settings)
    assert writer.last == Note(batch=7, mark="m7")
    writer.close()
    asked = [results(6), results(7), results(7, mark="other"), results(7, checkpoint="c1"), results(8)]
    assert [was_sent(each, "one", settings) for each in asked] == [False, True, False, False, False]
    assert not was_sent(results(7), "two", settings)
    send_once(results(7), "two", settings, records(0))
    send_once(results(7, checkpoint="c1"), "one", settings, records(1))
    assert sent(topics, "one") == ALL[:40]
    assert sent(topics, "two") == ALL[:20]


def test_an_option_that_is_none_is_named(broker: str) -> None:
    for options, says in (
        ({"bootstrap.servers": broker, "sasl.jaas.config": "x"}, "JAAS"),
        ({"bootstrap.servers": broker, "linger": "5"}, "linger"),
    ):
        with pytest.raises(SinkError, match=f"topic 't' takes no transaction.*{says}.*librdkafka"):
            send_once(results(0), "t", options, records(0))
