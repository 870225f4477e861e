"""Where a query's results go. Each function describes a sink; `Engine.query` takes the description.

File sinks publish a batch's files when the batch is committed, so readers see each result exactly once. ``foreach``,
``console`` and ``memory`` see a batch again if the engine died between them and the commit; the batch id tells.

**To add a sink**: one module in `plait.sinks.kinds` with a subclass of `SinkKind`, its name in `SinkName`, a line in
the table `KINDS`, and a function here. The class says

- what it accepts: options that are required, whether columns are stored by name;
- `delivery`: how probe tasks hand over results. Spooled, unless tasks can write what the sink holds (`Direct`), or
  nothing need be written (`Discarded`);
- `deliver`: what is done with a batch's spooled results before the commit. It may be called twice for the same query
  and batch, so it replaces what it did before (files are named after both), hands both to a store that remembers them
  (Delta's ``txnAppId`` and ``txnVersion``), or puts both into the rows so that readers can drop repeats (Kafka);
- what to publish: files that `deliver` or a task returns as `Publication` are renamed into sight after the commit;
- `recover`: what is cleared away before a run.

Nothing here imports pyspark: a sink gets a DataFrame and calls its methods. So the front end can ask the same table
what a script may say.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from plait.query.model import SinkSpec
from plait.sinks.kind import Sink


def _sink(format: str, options: dict[str, object]) -> Sink:
    path = options.get("path")
    if isinstance(path, str) and "://" not in path and not path.startswith("file:"):
        options = {**options, "path": os.path.abspath(path)}  # tasks run in other directories
    return Sink(spec=SinkSpec(format=format, options=tuple((name, str(value)) for name, value in options.items())))


def parquet(path: str, **options: object) -> Sink:
    """Write Parquet files into directory `path`."""
    return _sink("parquet", {"path": path, **options})


def csv(path: str, **options: object) -> Sink:
    """Write CSV files into directory `path`; options as for Spark's CSV writer (header, sep, ...)."""
    return _sink("csv", {"path": path, **options})


def json(path: str, **options: object) -> Sink:
    """Write JSON lines into directory `path`; options as for Spark's JSON writer."""
    return _sink("json", {"path": path, **options})


def console(rows: int = 20) -> Sink:
    """Print up to `rows` results of every batch."""
    return _sink("console", {"rows": rows})


def memory() -> Sink:
    """Keep all results in this process; read them with ``query.results()``."""
    return _sink("memory", {})


def noop() -> Sink:
    """Compute the results and discard them: for measurements."""
    return _sink("noop", {})


def foreach(function: Callable[[Any, int], None]) -> Sink:
    """Call ``function(dataframe, batch_id)`` with the results of every batch that has some."""
    return Sink(spec=SinkSpec(format="foreach"), function=function)


__all__ = ["Sink", "console", "csv", "foreach", "json", "memory", "noop", "parquet"]
