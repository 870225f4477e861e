"""Send a batch to a topic in a transaction, in a process of its own, which may be told to die on the way."""

from __future__ import annotations

import json
import sys

import pyarrow as pa

from plait.sinks.kind import Results
from plait.sinks.transactions import send_once


def results(batch: int, *, last: int | None = None, mark: str = "m", checkpoint: str = "c0") -> Results:
    """Return a batch of results, on a checkpoint whose last batch it is unless that is said."""
    last = batch if last is None else last
    return Results(
        query="it's", batch=batch, checkpoint=checkpoint, tasks=1, rows=None, kept={}, last=last, mark=f"{mark}{batch}"
    )


def records(batch: int, count: int = 20) -> list[pa.Table]:
    """Return the records of a batch, in two parts."""
    numbers = list(range(100 * batch, 100 * batch + count))
    keys = [None if n % 5 == 0 else str(n).encode() for n in numbers]
    table = pa.table({"key": pa.array(keys, pa.binary()), "value": [json.dumps({"id": n}).encode() for n in numbers]})
    return [table.slice(0, count // 2), table.slice(count // 2)]


if __name__ == "__main__":
    broker, topic, batch = sys.argv[1], sys.argv[2], int(sys.argv[3])
    send_once(results(batch), topic, {"bootstrap.servers": broker}, records(batch))
