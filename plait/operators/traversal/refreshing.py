"""A table's rows in the place of those it had: for what arrives from the next batch on.

Correct is: a result has of a table that changes the rows of the version that was in force when the newest member of its
streams arrived. A result is found by that member, in the batch in which it arrives, so the version that is stored then
is the right one for whatever is probed. What is not right any more is the joins of older tuples with the former rows,
which intermediate stores keep: what arrives later is to be joined with the rows of today. So these are given up, and
filled again from what the stores of streams hold and the table has now, before the next batch probes them. Results that
are out, and joined rows that wait for windows of time to be over, keep the rows they were found with.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from plait.plan.coming import coming_id, settled_id
from plait.plan.model import Plan
from plait.plan.traversals import intermediates
from plait.state.model import Bucket, Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """What the next batch builds on, and the ids of the intermediate stores that were given up for it."""

    manifest: Manifest
    given_up: frozenset[str]


def refreshed(plan: Plan, manifest: Manifest, stores: Collection[str], rows: Iterable[Bucket]) -> Refreshed:
    """Return the manifest with these `rows` in the `stores` of tables, without what was joined with those before."""
    joined = (store.id for store, made in intermediates(plan) if any(part.store in stores for part in made.parts))
    gone = frozenset(name for store in joined for name in (settled_id(store), coming_id(settled_id(store))))
    kept = tuple(bucket for bucket in manifest.buckets if bucket.store not in gone.union(stores))
    fillings = tuple(filling for filling in manifest.fillings if filling.store not in gone)
    return Refreshed(manifest=replace(manifest, buckets=(*kept, *rows), fillings=fillings), given_up=gone)


__all__ = ["Refreshed", "refreshed"]
