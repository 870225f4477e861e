"""What the sink of Kafka's accepts."""

from __future__ import annotations

import pytest

from plait import sinks
from plait.errors import OptionError
from plait.query.model import SinkSpec
from plait.sinks.kinds import connectors_of, kind_of
from plait.sinks.storable import Array, Atomic
from plait.sql import check_script

STREAM = "CREATE STREAM s (id BIGINT, b BINARY, ts TIMESTAMP) USING mine TIMESTAMP BY ts;"
GOOD = "kafka.bootstrap.servers 'h:1', topic 't'"


@pytest.mark.parametrize(
    ("options", "select", "says"),
    [
        (GOOD, "id", None),
        (f"{GOOD}, key 'ID', format 'csv', kafka.linger.ms '5'", "id", None),
        (
            "topic 't'",
            "id",
            "kafka needs the kafka.bootstrap.servers to write to; add OPTIONS (kafka.bootstrap.servers",
        ),
        ("kafka.bootstrap.servers 'h:1'", "id", "kafka needs the topic to write to; add OPTIONS (topic 'results')"),
        (f"{GOOD}, key 'idd'", "id", "key names 'idd', which is no column of the results; did you mean 'id'"),
        (f"{GOOD}, format 'xml'", "id", "format"),
        (f"{GOOD}, path 'out'", "id", "has no option 'path'"),
        (f"{GOOD}, delivery 'Exactly Once', kafka.compression.type 'lz4'", "id", None),
        (f"{GOOD}, delivery 'twice'", "id", "delivery"),
        (f"{GOOD}, kafka.transactional.id 'mine'", "id", None),
        (f"{GOOD}, delivery 'exactly once', kafka.transactional.id 'mine'", "id", "leave it out"),
        (f"{GOOD}, format 'csv'", "b", "which a record in csv cannot hold; write base64(...) of it"),
        (GOOD, "id, id", "two output columns are called 'id'"),
    ],
)
def test_a_script_is_told_what_is_wrong(options: str, select: str, says: str | None) -> None:
    problems = check_script(f"{STREAM} CREATE QUERY q INTO kafka OPTIONS ({options}) AS SELECT {select} FROM s;")
    assert [says is not None and says in problem.message for problem in problems] == [True] * (says is not None)


def test_a_program_is_told_as_well() -> None:
    sink = sinks.kafka("h:1", "t", key="id")
    assert dict(sink.spec.options) == {"kafka.bootstrap.servers": "h:1", "topic": "t", "key": "id", "format": "json"}
    with pytest.raises(OptionError, match=r"plait\.sinks\.kafka: .*'xml'"):
        sinks.kafka("h:1", "t", format="xml")


def test_types_are_judged_by_the_format_of_the_value() -> None:
    columns = [("tags", Array(Atomic("string")))]
    csv, json = (sinks.kafka("h:1", "t", format=format_).spec for format_ in ("csv", "json"))
    assert [problem.column for problem in kind_of(csv).column_problems(csv, columns)] == [0]
    assert kind_of(json).column_problems(json, columns) == []


def test_the_connectors_of_a_sink_are_known() -> None:
    assert connectors_of(sinks.kafka("h:1", "t", format="avro").spec) == ("kafka", "avro")
    assert connectors_of(SinkSpec(format="csv")) == ("csv",)
    assert connectors_of(SinkSpec(format="jdbc")) == ("postgresql",)
