"""Write the groups of windows of event time that are over, in the phase *close*.

Which windows that are, and of which rows, `plait.operators.close.groups` says. Spark computes the groups, by the
query's own expressions, so that types and values are what its batch engine gives; they are few beside the rows they
stand for.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from plait.errors import PlaitError
from plait.operators.close.closing import Closed
from plait.operators.close.found import write_found
from plait.operators.close.groups import GroupedQuery, Over, close_windows, over_at, resting_groups
from plait.runtime.batch.record import Batch
from plait.runtime.checkpoint.epoch import Epoch
from plait.runtime.outputs.binding import Binding
from plait.runtime.outputs.deliverer import joined_rows
from plait.runtime.outputs.grouping import Grouping, grouped
from plait.sinks.delivery import Delivery
from plait.state.model import Manifest
from plait.state.storage import Storage


def close_groups(
    spark: SparkSession,
    storage: Storage,
    work: Batch,
    closed: Closed,
    deliveries: Callable[[], Mapping[str, Delivery]],
) -> Closed:
    """Return what a batch has closed with the groups of windows that are over by that, and what still waits,
    also of queries that are left out.

    `deliveries`: how groups are handed over.
    """
    groupings = {name: each.grouping for name, each in work.epoch.bindings.items() if each.grouping is not None}
    resting = resting_groups(work.before, work.epoch.bindings)
    if not groupings:
        return replace(closed, groups=resting)
    queries = [
        GroupedQuery(query=name, identity=how.identity, window=how.window, time=how.time.name, fold=how.fold)
        for name, how in sorted(groupings.items())
    ]
    name = f"{work.number}-{uuid.uuid4().hex[:12]}"
    windows = close_windows(storage, work.before, (*work.probed, *closed.found), queries, closed.watermark_us, name)
    rows = {
        query: _groups(spark, storage, work.epoch.bindings[query], groupings[query], over)
        for query, over in windows.over.items()
    }
    found = closed.found
    if any(rows.values()):
        found += (write_found(rows, deliveries(), storage, batch=work.number),)
    return replace(closed, groups=(*windows.waiting, *resting), found=found)


def awaits_groups(before: Manifest, epoch: Epoch, watermark_us: int | None) -> bool:
    """Tell whether windows would be over that have groups, if the watermark came there."""
    going_on = {each.query for each in before.filling_up if each.left}
    groupings = {name: each.grouping for name, each in epoch.bindings.items() if name not in going_on}
    for groups in before.groups:
        how = groupings.get(groups.query)
        if how is not None and over_at(groups, how.window, watermark_us)[1] is not None:
            return True
    return False


def _groups(spark: SparkSession, storage: Storage, binding: Binding, how: Grouping, over: Over) -> list[pa.RecordBatch]:
    """Return the groups of windows that are over, as they are handed over."""
    paths = [file.path for file in over.files]
    try:
        frame: DataFrame = joined_rows(spark, storage, paths, how.kept)
        frame = grouped(spark, frame, how, after_us=over.after_us, until_us=over.until_us)
        table = frame.toDF(*(f"c{number}" for number in range(len(binding.joined)))).toArrow()
    except PySparkException as error:
        reason = next(iter(str(error).splitlines()), "")
        raise PlaitError(
            f"query '{binding.query.name}' cannot compute the groups of a window that is over: {reason} What it has "
            "gathered waits in the checkpoint: leave the query out, or write one that computes all, with try_sum say."
        ) from error
    if binding.arrow_output is not None:
        table = table.rename_columns(binding.arrow_output.names).cast(binding.arrow_output)
    return list(table.rename_columns([ref.name for ref in binding.joined]).to_batches())


__all__ = ["awaits_groups", "close_groups"]
