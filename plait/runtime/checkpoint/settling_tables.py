"""Which tables arriving rows are sent by from the next batch on."""

from __future__ import annotations

from plait.optimizer.partitioning.first_tables import first_tables
from plait.plan.accesses import accesses_of
from plait.plan.key_groups import Generation
from plait.plan.model import Plan
from plait.runtime.checkpoint.asked import Asked
from plait.state.model import Manifest


def settled_tables(asked: Asked, plan: Plan, manifest: Manifest | None, next_batch: int) -> Generation | None:
    """Return the tables for a plan, None where every task reaches all rows. Those in force stay if they are for the
    same accesses and partitions.
    """
    if asked.settings.routing == "local":
        return None
    together = accesses_of(plan, [stream.name for stream in asked.streams_of(plan) if stream not in asked.derived])
    if not together:
        return None
    partitions = max(store.parallelism for store in plan.stores)
    last = manifest.generations[-1] if manifest is not None and manifest.generations else None
    generation = Generation(
        first_batch=next_batch,
        tables=first_tables(together, partitions, () if last is None else last.tables),
        accesses=tuple(sorted((access for of_table in together for access in of_table), key=lambda each: each.name)),
        partitions=partitions,
    )
    return last if last is not None and last.says_the_same(generation) else generation


__all__ = ["settled_tables"]
