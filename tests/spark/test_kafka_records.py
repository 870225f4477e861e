"""Records of results: whenever and in whatever order a batch is sent, each has the headers it had before."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plait import sinks
from plait.sinks.kind import Results
from plait.sinks.kinds.kafka import records_of

pytestmark = pytest.mark.spark

ROWS = [(n % 7, None if n % 5 == 0 else f"x{n % 3}") for n in range(60)]


def sent(
    spark: Any, rows: list[tuple[Any, ...]], tasks: int
) -> list[tuple[str | None, dict[str, Any], dict[str, str]]]:
    """Return key, value and headers of each record."""
    frame = spark.createDataFrame(rows, "id BIGINT, name STRING").repartition(tasks)
    results = Results(query="it's", batch=3, checkpoint="c0", tasks=tasks, rows=frame, kept={})
    records = records_of(sinks.kafka("h:1", "t", key="name").spec, results).collect()
    return [
        (
            row["key"] and row["key"].decode(),
            json.loads(row["value"]),
            {header["key"]: header["value"].decode() for header in row["headers"]},
        )
        for row in records
    ]


def test_a_record_is_known_by_its_headers_however_it_is_sent(spark: Any) -> None:
    first, again = sent(spark, ROWS, 1), sent(spark, ROWS[::-1], 3)
    by_index = {headers["index"]: (key, value) for key, value, headers in first}
    assert len(by_index) == len(ROWS)
    assert by_index == {headers["index"]: (key, value) for key, value, headers in again}
    assert {(h["checkpoint"], h["query"], h["batch"]) for _, _, h in first} == {("c0", "it's", "3")}
    wanted = [(name, {"id": id_} if name is None else {"id": id_, "name": name}) for id_, name in ROWS]
    assert sorted(by_index.values(), key=str) == sorted(wanted, key=str)
