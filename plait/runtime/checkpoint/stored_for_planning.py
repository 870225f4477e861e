"""What a checkpoint has to say to planning: what is stored there, and how."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from plait.adapt.planning import PlanRequest
from plait.errors import CheckpointError
from plait.operators.close.query_sets import sampled_query_sets
from plait.plan.model import Plan
from plait.state.model import Bucket
from plait.state.storage import Storage


def sampling(request: PlanRequest, storage: Storage) -> PlanRequest:
    """Return the request with what planning may look at in this checkpoint."""
    return replace(request, sampled=partial(sampled_query_sets, storage))


def refuse_other_sharing(buckets: tuple[Bucket, ...], plan: Plan) -> None:
    """Refuse a plan that shares stores where the checkpoint has one per query, or the reverse.

    Tuples kept once a query cannot be told apart when they are merged, and leaving them behind would lose results.
    """
    planned = {store.source: store.id for store in plan.stores if store.source is not None}
    for kept in sorted({bucket.store for bucket in buckets}):
        wanted = planned.get(kept.rpartition("/")[2])
        if wanted is not None and ("/" in kept) != ("/" in wanted):
            raise CheckpointError(
                f"the checkpoint keeps '{kept}', strategy '{plan.strategy}' wants '{wanted}': "
                "strategy 'independent' has a store for each query, the others share theirs. "
                "Use the kind of strategy this checkpoint was begun with, or another checkpoint."
            )


__all__ = ["refuse_other_sharing", "sampling"]
