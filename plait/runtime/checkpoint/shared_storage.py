"""Whether all executors see the checkpoint's directory."""

from __future__ import annotations

from pyspark.sql import SparkSession

from plait.runtime.spark.tasks import REPORT, look_at, reports
from plait.state.mark import leave_mark, not_shared
from plait.state.storage import Storage
from plait.version import __version__


def share(spark: SparkSession, storage: Storage, slots: int) -> Storage:
    """Return the storage with a mark that the executors there are now see; raise CheckpointError if one does not.

    Executors that come later are asked too: every task looks for the mark before it does anything.
    """
    marked = leave_mark(storage, __version__)
    tasks = 2 * slots
    looked = reports(spark.range(0, tasks, 1, tasks).mapInArrow(look_at(marked), REPORT).collect())
    blind = tuple(sorted({host for host, sees in looked if not sees}))
    if blind:
        raise not_shared(marked, blind)
    return marked


__all__ = ["share"]
