"""How spooled rows become results, in a form that outlives the query they were found for.

Results that a sink has not taken wait in the checkpoint as joined rows. By the time it takes them the query may have
another SELECT list: what the rows mean is then what it said when they were found. What it said of its sink is kept
with that.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from pyspark.sql.types import StructType

from plait.query.model import SinkSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """`joined`: the schema of the joined rows; `sql`: an expression over them for each field of `output`."""

    joined: StructType
    sql: tuple[str, ...]
    output: StructType

    def encoded(self) -> str:
        """Return it as a text; equal shapes give equal texts."""
        document = {"joined": self.joined.jsonValue(), "sql": list(self.sql), "output": self.output.jsonValue()}
        return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def encoded_sink(sink: SinkSpec) -> str:
    """Return as a text where results were to go."""
    return json.dumps([sink.format, *sink.options], separators=(",", ":"), ensure_ascii=False)


def decoded_sink(text: str) -> SinkSpec:
    """Return the sink that was encoded as this text."""
    kind, *options = json.loads(text)
    return SinkSpec(format=kind, options=tuple((name, value) for name, value in options))


def decoded(text: str) -> Shape:
    """Return the shape that was encoded as this text."""
    document = json.loads(text)
    return Shape(
        joined=StructType.fromJson(document["joined"]),
        sql=tuple(document["sql"]),
        output=StructType.fromJson(document["output"]),
    )
