"""Write the groups of windows of event time that are over, in the phase *close*.

Which windows that are, and of which rows, `plait.operators.close.groups` says. Types and values are what Spark's batch
engine gives: it computes the groups, by the query's own expressions, unless all of them are known to come to the same
where they are made here (`plait.sql.select.finishing`), which spares a job.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from plait.errors import ComputationError, Failure
from plait.operators.close.closing import Closed
from plait.operators.close.final_groups import final_groups
from plait.operators.close.found import write_found
from plait.operators.close.groups import GroupedQuery, Over, close_windows, over_at, resting_groups
from plait.operators.close.lacking import complete_from
from plait.operators.close.levels import marks_of, watermark_of
from plait.operators.close.parting import Int64s, part_sessions, write_sessions
from plait.operators.evaluating import EvaluationError
from plait.operators.failing import computation_error
from plait.operators.probe.partials import NO_LOW
from plait.operators.traversal.filling_up import begins_with_past
from plait.runtime.batch.made_groups import written_groups
from plait.runtime.batch.record import Batch
from plait.runtime.checkpoint.epoch import Epoch
from plait.runtime.outputs.binding import Binding
from plait.runtime.outputs.deliverer import joined_rows
from plait.runtime.outputs.grouping import Grouping, codes_of, grouped
from plait.runtime.spark.headline import is_of_data
from plait.sinks.delivery import Delivery
from plait.state.gathered import read_gathered
from plait.state.model import GatheredRows, Manifest
from plait.state.storage import Storage

_JOBS: Final = 4
"""So many queries are grouped by Spark at a time."""


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
    complete_from_us = _complete_from(work)
    queries = [_grouped_query(name, how, complete_from_us.get(name)) for name, how in sorted(groupings.items())]
    codes = partial(_codes, spark, storage, work.epoch.bindings)
    name = f"{work.number}-{uuid.uuid4().hex[:12]}"
    come_to = marks_of((stream.name for stream in work.epoch.derived), closed.sources)
    marks = {query: watermark_of(work.epoch.bindings[query].query, closed.watermark_us, come_to) for query in groupings}
    joined = (*work.probed, *closed.found)
    windows = close_windows(storage, work.before, joined, queries, closed.watermark_us, name, marks)
    windows = part_sessions(storage, windows, queries, codes, name)
    over = [each for each in queries if each.query in windows.over]
    rows = _groups(spark, storage, work.epoch.bindings, over, windows.over, name)
    found = closed.found
    if any(rows.values()):
        found += (write_found(rows, deliveries(), storage, batch=work.number),)
    made = written_groups(storage, work.epoch, rows, f"{name}-made")
    return replace(closed, groups=(*windows.waiting, *resting), found=found, made=made)


def _complete_from(work: Batch) -> dict[str, int]:
    """Return from when on windows are complete of queries that have results of the past with this batch, where not all
    is stored that there was.
    """
    if work.before is None:
        return {}
    before = replace(work.before, buckets=work.epoch.seen(work.before.buckets))
    queries = (work.epoch.bindings[name].query for name in begins_with_past(before, work.number))
    found = (
        (query, complete_from(query, work.epoch.plan, before)) for query in queries if query.aggregation is not None
    )
    return {query.name: begins_us for query, begins_us in found if begins_us is not None and begins_us > NO_LOW}


def awaits_groups(before: Manifest, epoch: Epoch, watermark_us: int | None, marks: Mapping[str, int | None]) -> bool:
    """Tell whether windows would be over that have groups, if the watermark came there, and derived streams to their
    `marks`.
    """
    going_on = {each.query for each in before.filling_up if each.left}
    groupings = {name: each.grouping for name, each in epoch.bindings.items() if name not in going_on}
    for groups in before.groups:
        how = groupings.get(groups.query)
        if how is None:
            continue
        mark = watermark_of(epoch.bindings[groups.query].query, watermark_us, marks)
        if over_at(groups, how.window, mark)[1] is not None:
            return True
    return False


def _grouped_query(query: str, how: Grouping, complete_from_us: int | None) -> GroupedQuery:
    return GroupedQuery(
        query=query,
        identity=how.identity,
        window=how.window,
        time=how.time.name,
        fold=how.fold,
        complete_from_us=complete_from_us,
        keys=how.key_columns,
    )


def _groups(
    spark: SparkSession,
    storage: Storage,
    bindings: Mapping[str, Binding],
    queries: Sequence[GroupedQuery],
    over: Mapping[str, Over],
    name: str,
) -> dict[str, list[pa.RecordBatch]]:
    """Return the groups of windows that are over, as they are handed over, by query. The jobs of those that take Spark
    run beside each other: most of what one takes is waiting. Raises ComputationError, for all that cannot be computed.
    """
    made = {each.query: _made_here(storage, each, bindings[each.query], over[each.query]) for each in queries}
    left = [each for each in queries if made[each.query] is None]

    failures = list[Failure]()

    def by_spark(query: GroupedQuery) -> pa.Table | None:
        try:
            return _made_by_spark(spark, storage, query, bindings[query.query], over[query.query], name)
        except ComputationError as error:
            if not error.failures:
                raise
            failures.extend(error.failures)
            return None

    if len(left) == 1:
        made[left[0].query] = by_spark(left[0])
    elif left:
        with ThreadPoolExecutor(max_workers=_JOBS, thread_name_prefix="plait-groups") as pool:
            made |= zip((each.query for each in left), pool.map(by_spark, left), strict=True)
    if failures:
        raise computation_error(tuple(failures))
    return {query: _handed_over(table, bindings[query]) for query, table in made.items() if table is not None}


def _handed_over(groups: pa.Table, binding: Binding) -> list[pa.RecordBatch]:
    if binding.arrow_output is not None:
        groups = groups.rename_columns(binding.arrow_output.names).cast(binding.arrow_output)
    return list(groups.rename_columns([ref.name for ref in binding.joined]).to_batches())


def _made_here(storage: Storage, query: GroupedQuery, binding: Binding, over: Over) -> pa.Table | None:
    """Return the groups made in this process; None if something of them, or of one of them, takes Spark."""
    finishing = None if binding.grouping is None else binding.grouping.finishing
    if finishing is None:
        return None
    parts = list(read_gathered(storage, over.files)) if over.sessions is None else [over.sessions.rows]
    try:
        groups = final_groups(parts, query, finishing, over)
    except EvaluationError:
        return None
    return pa.Table.from_batches([groups])


def _made_by_spark(
    spark: SparkSession, storage: Storage, query: GroupedQuery, binding: Binding, over: Over, name: str
) -> pa.Table:
    how = _grouping(binding)
    files = over.files if over.sessions is None else (write_sessions(storage, query, over.sessions, name),)
    try:
        frame: DataFrame = joined_rows(spark, storage, [file.path for file in files], how.read)
        frame = grouped(spark, frame, how, after_us=over.after_us, until_us=over.until_us)
        return frame.toDF(*(f"c{number}" for number in range(len(binding.joined)))).toArrow()
    except PySparkException as error:
        raise _cannot_group(binding, error) from error


def _codes(
    spark: SparkSession,
    storage: Storage,
    bindings: Mapping[str, Binding],
    query: GroupedQuery,
    files: Sequence[GatheredRows],
) -> Int64s:
    """Return what tells the rows of a query apart whose sessions are of something that is computed."""
    binding = bindings[query.query]
    how = _grouping(binding)
    try:
        return codes_of(joined_rows(spark, storage, [file.path for file in files], how.kept), how)
    except PySparkException as error:
        raise _cannot_group(binding, error) from error


def _grouping(binding: Binding) -> Grouping:
    assert binding.grouping is not None, f"query '{binding.query.name}' does not group"
    return binding.grouping


def _cannot_group(binding: Binding, error: PySparkException) -> ComputationError:
    reason = (
        f"query '{binding.query.name}' cannot compute the groups of a window that is over: "
        f"{next(iter(str(error).splitlines()), '')} What it has gathered waits in the checkpoint: leave the query "
        "out, or write one that computes all, with try_sum say."
    )
    failure = Failure(query=binding.query.name, reason=reason)
    return ComputationError(reason, failures=(failure,) if is_of_data(str(error)) else ())


__all__ = ["awaits_groups", "close_groups"]
