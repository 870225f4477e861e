"""Let Spark compute the results of many queries in one job, whose tasks write them.

For sinks that tasks can write (`plait.sinks.delivery.Direct`, `Discarded`) nothing is left to Spark but to evaluate the
SELECT lists, and that it can do for all queries at once: a job for each would cost about 100 ms whatever is in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from plait.query.model import ColumnRef
from plait.runtime.outputs.binding import Binding, computed
from plait.runtime.outputs.spooled import joined_rows
from plait.runtime.spark.tasks import REPORT, reports, write_results
from plait.sinks.delivery import Delivery, Direct, Discarded, Projection
from plait.sinks.kinds import kind_of
from plait.sinks.staging import Publication
from plait.state.model import Backlog
from plait.state.storage import Storage


def written_by_tasks(binding: Binding, checkpoint: str) -> Delivery | None:
    """Return how tasks hand over results that Spark has computed, None if the sink takes them in another way only."""
    columns = tuple(ColumnRef(relation="", column=name) for name in binding.output.names)
    projection = Projection(
        query=binding.query.name,
        checkpoint=checkpoint,
        joined=columns,
        made=tuple(range(len(columns))),
        schema=binding.arrow_output,
    )
    found = kind_of(binding.sink.spec).delivery(binding.sink.spec, projection)
    return found if isinstance(found, Direct | Discarded) else None


def deliver_together(
    spark: SparkSession,
    storage: Storage,
    found: Sequence[tuple[Binding, Backlog, Delivery]],
    *,
    slots: int,
) -> dict[str, tuple[Publication, ...]]:
    """Deliver the results of all these queries, `slots` tasks at a time; return what is to be published, by query.

    Whatever is wrong with one of them fails all: then each has to be delivered by itself.
    """
    frames = [_written(spark, storage, binding, late, delivery) for binding, late, delivery in found]
    united = reduce(lambda left, right: left.union(right), frames)
    publications: dict[str, tuple[Publication, ...]] = {late.query: () for _, late, _ in found}
    for query, publication in reports(united.coalesce(slots).collect()):
        publications[query] += (publication,)
    return publications


def _written(spark: SparkSession, storage: Storage, binding: Binding, late: Backlog, delivery: Delivery) -> DataFrame:
    """Return the reports of the tasks that write one query's results, a file for each that is spooled."""
    joined = joined_rows(spark, storage, late.paths, binding.joined_schema)
    return computed(joined, binding.shape).mapInArrow(write_results(delivery, late.batch, storage), REPORT)


__all__ = ["deliver_together", "written_by_tasks"]
