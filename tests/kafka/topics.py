"""Topics of a broker, and records in them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic


@dataclass(frozen=True, kw_only=True)
class Record:
    """A record as it is sent; `at_ms`: Kafka's own time of it."""

    value: bytes | str | None
    key: bytes | str | None = None
    partition: int = 0
    at_ms: int = 0
    headers: Mapping[str, bytes] = field(default_factory=dict)


class Topics:
    """Speaks to a broker."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._admin = AdminClient({"bootstrap.servers": address})
        self._producer = self._new_producer()

    def create(self, topic: str, partitions: int = 1) -> None:
        """Make a topic."""
        self._admin.create_topics([NewTopic(topic, num_partitions=partitions)])[topic].result(30)

    def grow(self, topic: str, partitions: int) -> None:
        """Let a topic have so many partitions; return when the broker says so."""
        self._admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(30)
        until = time.monotonic() + 30
        while len(self._admin.list_topics(topic, timeout=30).topics[topic].partitions) < partitions:
            assert time.monotonic() < until
            time.sleep(0.05)
        self._producer = self._new_producer()  # one that has sent to the topic refuses partitions it has not heard of

    def send(self, topic: str, records: Iterable[Record]) -> None:
        """Send records; return when the broker has them."""
        for record in records:
            self._producer.produce(
                topic,
                value=record.value,
                key=record.key,
                partition=record.partition,
                timestamp=record.at_ms,
                headers=[*record.headers.items()],
            )
        assert self._producer.flush(30) == 0

    def read(self, topic: str) -> list[tuple[str | None, bytes, dict[str, str]]]:
        """Return key, value and headers of every record of a topic of one partition."""
        consumer = Consumer({"bootstrap.servers": self._address, "group.id": "reading", "enable.auto.commit": False})
        try:
            consumer.assign([TopicPartition(topic, 0, 0)])
            _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
            messages = consumer.consume(end, timeout=30)
            assert [message.error() for message in messages] == [None] * end
            return [
                (
                    message.key() and message.key().decode(),
                    message.value(),
                    {name: text.decode() for name, text in message.headers()},
                )
                for message in messages
            ]
        finally:
            consumer.close()

    def committed(self, topic: str) -> list[tuple[str | None, bytes, dict[str, str]]]:
        """Return key, value and headers of every committed record of a topic."""
        group = {"group.id": "committed", "enable.auto.commit": False, "isolation.level": "read_committed"}
        consumer = Consumer({"bootstrap.servers": self._address, "enable.partition.eof": True, **group})
        partitions = self._admin.list_topics(topic, timeout=30).topics[topic].partitions
        found = []
        try:
            consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
            left = len(partitions)
            while left:
                message = consumer.poll(30)
                assert message is not None
                if message.error() is None:
                    headers = {name: text.decode() for name, text in message.headers()}
                    found.append((message.key() and message.key().decode(), message.value(), headers))
                else:
                    assert message.error().code() == KafkaError._PARTITION_EOF
                    left -= 1
        finally:
            consumer.close()
        return found

    def expire(self, topic: str, partition: int, before: int) -> None:
        """Delete the records of a partition before an offset."""
        (done,) = self._admin.delete_records([TopicPartition(topic, partition, before)]).values()
        done.result(30)

    def _new_producer(self) -> Producer:
        return Producer({"bootstrap.servers": self._address, "linger.ms": 0})
