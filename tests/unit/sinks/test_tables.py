"""What sinks that are tables of a database, or of Delta, accept."""

from __future__ import annotations

import pytest

from plait import sinks
from plait.errors import OptionError
from plait.query.model import SinkSpec
from plait.sinks.kind import SinkName
from plait.sinks.kinds import KINDS, connectors_of
from plait.sinks.storable import Array, Atomic, SparkType, Struct
from plait.sql import check_script

STREAM = "CREATE STREAM s (id BIGINT, tags ARRAY<STRING>, ts TIMESTAMP) USING mine TIMESTAMP BY ts;"
GOOD = "url 'jdbc:postgresql://h/d', dbtable 't'"


@pytest.mark.parametrize(
    ("into", "select", "says"),
    [
        (f"jdbc OPTIONS ({GOOD}, user 'u', batchsize '500')", "id", None),
        ("jdbc OPTIONS (dbtable 't')", "id", "jdbc needs the url to write to"),
        ("jdbc OPTIONS (url 'jdbc:postgresql://h/d')", "id", "jdbc needs the dbtable to write to"),
        ("jdbc OPTIONS (url 'jdbc:mysql://h/d', dbtable 't')", "id", "this sink writes to PostgreSQL"),
        (f"jdbc OPTIONS ({GOOD}, driver 'x')", "id", "has no option 'driver'"),
        (f"jdbc OPTIONS ({GOOD}, isolationLevel 'NONE')", "id", "has no option 'isolationLevel'"),
        (f"jdbc OPTIONS ({GOOD})", "tags", "which jdbc cannot store; write to_json(...) of it"),
        (f"jdbc OPTIONS ({GOOD})", "id AS Plait_Batch", "has the name of one that a sink jdbc adds"),
        ("delta OPTIONS (path 'out', mergeSchema 'true', partitionBy 'id')", "id, tags", None),
        ("delta", "id", "delta needs the path to write to"),
        ("delta OPTIONS (path 'out', partitionBy 'no')", "id, tags", "partitionBy names 'no'"),
        ("delta OPTIONS (path 'out', txnAppId 'mine')", "id", "has no option 'txnAppId'"),
    ],
)
def test_a_script_is_told_what_is_wrong(into: str, select: str, says: str | None) -> None:
    problems = check_script(f"{STREAM} CREATE QUERY q INTO {into} AS SELECT {select} FROM s;")
    assert [says is not None and says in problem.message for problem in problems] == [True] * (says is not None)


def test_a_program_is_told_as_well() -> None:
    with pytest.raises(OptionError, match="writes to PostgreSQL"):
        sinks.jdbc("jdbc:mysql://h/d", "t")
    assert dict(sinks.jdbc("jdbc:postgresql://h/d", "t").spec.options)["dbtable"] == "t"
    assert dict(sinks.delta("/out", mergeSchema=True).spec.options) == {"path": "/out", "mergeSchema": "true"}


@pytest.mark.parametrize(
    ("sink", "type_", "says"),
    [
        ("jdbc", Atomic("decimal(10,2)"), None),
        ("jdbc", Atomic("timestamp"), None),
        ("jdbc", Atomic("interval day to second"), "cast it to a string"),
        ("jdbc", Struct((("a", Atomic("int")),)), "write to_json(...) of it"),
        ("delta", Array(Atomic("int")), None),
        ("delta", Array(Atomic("void")), "cast it: CAST(NULL AS STRING)"),
    ],
)
def test_types_that_would_not_come_back_are_refused(sink: SinkName, type_: SparkType, says: str | None) -> None:
    assert KINDS[sink].type_problem(type_) == says


def test_their_connectors_are_known() -> None:
    assert [connectors_of(SinkSpec(format=name)) for name in ("jdbc", "delta")] == [("postgresql",), ("delta",)]
