"""Where a query's results go. Each function describes a sink; `Engine.query` takes the description.

File sinks publish a batch's files when the batch is committed, and ``jdbc`` and ``kafka`` with ``delivery="exactly
once"`` get it in one transaction then, so readers see each result exactly once. ``foreach``, ``console``, ``memory``
and other ``kafka`` sinks see a batch again if the engine died between them and the commit; the batch id tells, in
records of Kafka their headers.

**To add a sink**: one module in `plait.sinks.kinds` with a subclass of `SinkKind`, its name in `SinkName`, a line in
the table `KINDS`, and a function here. The class says

- what it accepts: its options and their values, those that are required, the types of columns it can give back as they
  were, whether columns are stored by name. Scripts, `plait check` and Python refuse the rest;
- `delivery`: how probe tasks hand over results. Spooled, unless tasks can write what the sink holds (`Direct`), or
  nothing need be written (`Discarded`);
- `deliver`: what is done with a batch's spooled results before the commit. It may be called twice for the same query
  and batch, so it replaces what it did before (files are named after both), or puts both into the rows so that readers
  can drop repeats (Kafka);
- `remembers`: that it writes to something that notes, together with the results, which batches of a query it has
  (Kafka's transactions, a table with a unique index, Delta's ``txnAppId`` and ``txnVersion``). Then `deliver` is called
  after the commit: what a batch has come to is settled, and no other attempt of it is to come. A batch done twice need
  not come to the same, so before the commit the note would tell nothing;
- what to publish: files that `deliver` or a task returns as `Publication` are renamed into sight after the commit;
- `claimed`: the place results go to, as a `ClaimedPlace`, which knows whether results of others are in the way
  (`refuse`), how it is noted whose they are (`take`), and what is cleared away before a run, among it results of
  batches that a restored checkpoint has not done (`recover`).

Nothing here imports pyspark: a sink gets a DataFrame and calls its methods. So the front end can ask the same table
what a script may say.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from plait import arguments
from plait.errors import OptionError
from plait.query.model import SinkSpec
from plait.sinks.kind import Sink
from plait.sinks.kinds import kind_of
from plait.sinks.kinds.kafka import SERVERS
from plait.spelling import backquoted

if TYPE_CHECKING:
    import pyarrow as pa


def _sink(format: str, options: dict[str, object]) -> Sink:
    owner = f"plait.sinks.{format}"
    texts = {name: _text(owner, name, value) for name, value in options.items() if value is not None or name == "path"}
    spec = SinkSpec(format=format, options=tuple(texts.items()))
    for problem in kind_of(spec).problems(spec):
        raise OptionError(f"{owner}: {problem.message}")
    return Sink(spec=spec)


def _text(owner: str, name: str, value: object) -> str:
    """Return an option's value as a script would say it: several names with commas between, a path made absolute,
    because tasks run in other directories.
    """
    if name == "path" and value != "":  # of an empty one the kind of sink says that it needs it
        return arguments.path(owner, name, value)
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        return ", ".join(backquoted(part) for part in value)
    return arguments.option_text(owner, name, value)


def parquet(path: str | os.PathLike[str], **options: object) -> Sink:
    """Write Parquet files into directory `path`.

    Options as for Spark's Parquet writer. All file sinks take ``partitionBy`` (columns whose values become
    directories: ``["a", "b"]``) and ``existing``, ``"append"`` or ``"overwrite"``: what to do with results that are
    there already and of which this checkpoint knows nothing, which is refused otherwise.
    """
    return _sink("parquet", {"path": path, **options})


def csv(path: str | os.PathLike[str], **options: object) -> Sink:
    """Write CSV files into directory `path`; options as for Spark's CSV writer (header, sep, ...)."""
    return _sink("csv", {"path": path, **options})


def json(path: str | os.PathLike[str], **options: object) -> Sink:
    """Write JSON lines into directory `path`; options as for Spark's JSON writer."""
    return _sink("json", {"path": path, **options})


def console(rows: int = 20) -> Sink:
    """Print up to `rows` results of every batch."""
    return _sink("console", {"rows": rows})


def delta(path: str | os.PathLike[str], **options: object) -> Sink:
    """Add rows to a Delta table, each exactly once (`plait.sinks.kinds.delta`).

    Options: ``partitionBy``, ``mergeSchema``, ``compression``. The session needs the connector
    (`plait.runtime.spark.session.open_session(formats=["delta"])`).
    """
    return _sink("delta", {"path": path, **options})


def jdbc(url: str, dbtable: str, **options: object) -> Sink:
    """Write rows into a table of a PostgreSQL database, each exactly once (`plait.sinks.kinds.jdbc`).

    Options: ``user``, ``password``, ``batchsize``, ``queryTimeout``. The session needs the driver
    (`plait.runtime.spark.session.open_session(formats=["postgresql"])`).
    """
    return _sink("jdbc", {"url": url, "dbtable": dbtable, **options})


def kafka(servers: str, topic: str, *, key: str | None = None, format: str = "json", **options: object) -> Sink:
    """Send results to a topic, each at least once: headers tell repeats (`plait.sinks.kinds.kafka`); or each exactly
    once, with ``delivery="exactly once"``, to consumers of committed records.

    `key`: the column that is the record's key; `format` of its value: ``json``, ``csv`` or ``avro``. Options are those
    of Kafka's producer, with ``kafka.`` before them. The session needs the connector
    (`plait.runtime.spark.session.open_session(formats=["kafka"])`).
    """
    return _sink("kafka", {SERVERS: servers, "topic": topic, "key": key, "format": format, **options})


def memory() -> Sink:
    """Keep all results in this process; read them with ``query.results()``."""
    return _sink("memory", {})


def noop() -> Sink:
    """Compute the results and discard them: for measurements."""
    return _sink("noop", {})


def foreach(function: Callable[[Any, int], None]) -> Sink:
    """Call ``function(dataframe, batch_id)`` with the results of every batch that has some."""
    if not callable(function):
        raise OptionError(
            f"plait.sinks.foreach: expected a function of a DataFrame and the batch's number, found "
            f"{arguments.shown(function)}"
        )
    return Sink(spec=SinkSpec(format="foreach"), function=function)


def foreach_arrow(function: Callable[[pa.Table, int], None]) -> Sink:
    """Call ``function(table, batch_id)`` with the results of every batch that has some, as an Arrow table.

    For few rows at a time this is the quickest way out: what is done with a DataFrame takes a Spark job, about 0.1 s.
    All results of a batch must fit into the memory of this process.
    """
    return Sink(spec=SinkSpec(format="foreach_arrow"), function=function)


__all__ = [
    "Sink",
    "console",
    "csv",
    "delta",
    "foreach",
    "foreach_arrow",
    "jdbc",
    "json",
    "kafka",
    "memory",
    "noop",
    "parquet",
]
