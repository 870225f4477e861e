"""Hold the storage budget: what a batch leaves behind never takes more, whatever was estimated.

Inputs are needed for results and kept in any case. An intermediate store only saves probing, and can be filled again
from the inputs at any batch boundary; so it may go, but only whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from plait.plan.model import Plan
from plait.plan.traversals import intermediates
from plait.state.model import Bucket


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What all stores together may keep, in rows or in bytes."""

    limit: float
    in_bytes: bool

    def size(self, buckets: Iterable[Bucket]) -> int:
        """Return what the buckets take of it."""
        return sum(bucket.bytes if self.in_bytes else bucket.rows for bucket in buckets)


def stores_to_drop(budget: Budget, plan: Plan, buckets: tuple[Bucket, ...]) -> frozenset[str]:
    """Return the intermediate stores that must go for the rest to keep the budget, all if not even that is enough.

    The smallest that is large enough goes alone; as long as none is, the largest goes first.
    """
    sizes = {
        store.id: budget.size(bucket for bucket in buckets if bucket.store == store.id)
        for store, _ in intermediates(plan)
    }
    excess = budget.size(buckets) - budget.limit
    dropped: set[str] = set()
    while excess > 0 and len(dropped) < len(sizes):
        left = {store: size for store, size in sizes.items() if store not in dropped}
        enough = [store for store, size in left.items() if size >= excess]
        chosen = (
            min(enough, key=lambda store: (left[store], store)) if enough else max(left, key=lambda s: (left[s], s))
        )
        dropped.add(chosen)
        excess -= left[chosen]
    return frozenset(dropped)


__all__ = ["Budget", "stores_to_drop"]
