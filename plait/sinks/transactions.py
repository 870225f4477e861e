"""Batches of results as Kafka transactions: each is in its topic once, whatever dies at whichever moment.

Correct is: a consumer of committed records sees every result of a query once. Two durable facts decide it. **That a
batch has results** the manifest says: they are sent after it is committed, from files that do not change any more.
**That the topic has them** the broker says: in the transaction of its records a batch is noted as the offset that a
consumer group of the query's own has come to. So records and note are there together or not at all.

The tempting wrong ways: to send before the commit and to take the note for the batch having happened, since a batch
done twice need not come to the same (a slice of the past is as long as there was time for, windows are closed by a
clock), so that something would be lost or there twice; and to remember here what was sent, which a process that is
killed after the broker's answer never writes down.

Order settles the rest. `init_transactions` comes first, under a name that is the query's on this checkpoint: what a
process of before has begun is committed or aborted then, and it can commit nothing any more. Then the note is read, and
only then is anything sent. Whatever fails is treated as a death: the producer is thrown away, and the next attempt
begins with another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from plait.errors import SinkError
from plait.faults import reach
from plait.sinks.kind import Note, Results

if TYPE_CHECKING:
    import pyarrow as pa

_PATIENCE_S: Final = 30.0
_SLICE_ROWS: Final = 10_000
_CRITICAL: Final = 2
"""What Kafka's client may write to stderr of itself; errors are raised."""

OWN: Final = ("transactional.id", "enable.idempotence", "group.id", "isolation.level", "enable.auto.commit")
"""Options of Kafka's client that are not the user's to set."""


def send_once(results: Results, topic: str, settings: Mapping[str, str], parts: Iterable[pa.Table]) -> None:
    """Send a batch's records, the columns ``key`` and ``value`` of its `parts`, unless the topic has them. `settings`:
    of Kafka's client. Raises SinkError; then it is not known whether the topic has them, and the next call asks.
    """
    with _writer(results, topic, settings) as writer:
        if not is_there(writer.last, results, topic):
            writer.send(parts, results)


def was_sent(results: Results, topic: str, settings: Mapping[str, str]) -> bool:
    """Tell whether a topic has a batch, once what may be under way to it is settled. Raises SinkError."""
    with _writer(results, topic, settings) as writer:
        return results.are_in(writer.last)


@contextmanager
def _writer(results: Results, topic: str, settings: Mapping[str, str]) -> Iterator[TopicWriter]:
    """Open the query's producer, or go on with it; whatever fails is its end. Raises SinkError for what Kafka says."""
    try:
        from confluent_kafka import KafkaException
    except ImportError as error:
        raise SinkError(
            f"query '{results.query}': delivery 'exactly once' takes Kafka's Python client, which is not installed: "
            "pip install 'plait[kafka]', or leave the option out and let consumers drop repeats by their headers"
        ) from error
    connection = "\n".join((results.query, topic, *(f"{name}={value}" for name, value in sorted(settings.items()))))
    try:
        writer = results.connections.get(connection)
        if not isinstance(writer, TopicWriter):
            name = f"plait-{results.checkpoint}-{quote(results.query, safe='')}"
            writer = results.connections[connection] = TopicWriter(name, topic, settings)
        yield writer
    except BaseException as error:
        failed = results.connections.pop(connection, None)
        if isinstance(failed, TopicWriter):
            failed.abandon()
        if not isinstance(error, KafkaException):
            raise
        raise SinkError(
            f"query '{results.query}': topic '{topic}' takes no transaction: {error.args[0].str()}. With delivery "
            "'exactly once' the options kafka.* are those of Kafka's C client (librdkafka), and the broker must let it "
            "write and read what begins with 'plait-': transactional ids and consumer groups"
        ) from error


def is_there(last: Note | None, results: Results, topic: str) -> bool:
    """Tell whether a topic has a batch, by the `last` note of its query. Raises SinkError if it has more than the
    checkpoint knows of.
    """
    advice = (
        "Records cannot be taken back. Go on with the checkpoint that has sent them; or name another topic, which then "
        "has all results from this backup on"
    )
    results.require_known(last, f"topic '{topic}'", advice)
    return results.are_in(last)


class TopicWriter:
    """A producer that is the only one of its `name`. `last`: what the broker has noted. Raises KafkaException."""

    def __init__(self, name: str, topic: str, settings: Mapping[str, str]) -> None:
        from confluent_kafka import Consumer, Producer

        common = {"log_level": _CRITICAL, "partitioner": "murmur2_random", **settings}
        self._topic = topic
        self._producer = Producer({**common, "transactional.id": name})
        self._producer.init_transactions(_PATIENCE_S)
        own = {"group.id": name, "isolation.level": "read_committed", "enable.auto.commit": False}
        consumer = Consumer({**common, **own})
        try:
            self.last = self._read(consumer)
            self._group = consumer.consumer_group_metadata()
        finally:
            consumer.close()

    def send(self, parts: Iterable[pa.Table], results: Results) -> None:
        """Send records and note the batch, all or nothing."""
        from confluent_kafka import TopicPartition

        headers = {"checkpoint": results.checkpoint, "query": results.query, "batch": str(results.batch)}
        self._producer.begin_transaction()
        self._produce(parts, [(name, text.encode()) for name, text in headers.items()])
        reach("sent")
        noted = TopicPartition(self._topic, 0, results.batch + 1, results.mark)
        self._producer.send_offsets_to_transaction([noted], self._group, _PATIENCE_S)
        reach("noted")
        self._producer.commit_transaction(_PATIENCE_S)
        reach("transacted")
        self.last = Note(batch=results.batch, mark=results.mark)

    def close(self) -> None:
        """Let go of it; nothing is under way."""
        self._producer.close()

    def abandon(self) -> None:
        """Let go of it, whatever is under way."""
        with suppress(Exception):  # it has failed already, and what it leaves behind the next one settles
            self._producer.purge()
            self._producer.abort_transaction(1.0)

    def _read(self, consumer: Any) -> Note | None:
        from confluent_kafka import KafkaException, TopicPartition

        (found,) = consumer.committed([TopicPartition(self._topic, 0)], _PATIENCE_S)
        if found.error is not None:
            raise KafkaException(found.error)
        return Note(batch=found.offset - 1, mark=found.metadata or "") if found.offset > 0 else None

    def _produce(self, parts: Iterable[pa.Table], headers: list[tuple[str, bytes]]) -> None:
        index = 0
        for part in parts:
            for rows in part.to_batches(max_chunksize=_SLICE_ROWS):
                for key, value in zip(rows.column(0).to_pylist(), rows.column(1).to_pylist(), strict=True):
                    self._put(key, value, [*headers, ("index", str(index).encode())])
                    index += 1
                self._producer.poll(0)

    def _put(self, key: bytes | None, value: bytes, headers: list[tuple[str, bytes]]) -> None:
        while True:
            try:
                self._producer.produce(self._topic, value=value, key=key, headers=headers)
                return
            except BufferError:  # the client's own queue is full
                self._producer.poll(0.1)


__all__ = ["OWN", "TopicWriter", "is_there", "send_once", "was_sent"]
