"""What a start begins with: the plan that is wanted, or what leads there while its intermediate stores are filled."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from plait.adapt.planning import PlanRequest, probing_only
from plait.operators.traversal.slicing import lacking_rows, there
from plait.plan.coming import Way
from plait.plan.model import Plan
from plait.plan.strategy_names import StrategyName
from plait.state.model import Manifest

AT_ONCE_ROWS: Final = 50_000
"""So many stored rows are taken by the first batch of a start to fill the intermediate stores that it lacks: a tenth of
a second or two. Where there are more, the stores come while batches run.
"""

_BARE: Final[StrategyName] = "greedy"
"""A strategy without intermediate stores."""


def way_to(request: PlanRequest, goal: Plan, manifest: Manifest | None) -> Way | None:
    """Return the way to a plan that a run begins with; None if it can begin with the plan itself.

    Until the stores are there the queries are answered without any. No such plan may work on the stores of the goal;
    then the first batch fills them, however long it takes.
    """
    if manifest is None or lacking_rows(goal, manifest.buckets, manifest.fillings) <= AT_ONCE_ROWS:
        return None
    bare = replace(request, options=replace(request.options, strategy=_BARE)).plan(manifest)
    base = probing_only(goal, bare)
    if base is None:
        return None
    return Way(base=base, goal=goal, filled=there(goal, manifest.buckets, manifest.fillings))


__all__ = ["AT_ONCE_ROWS", "way_to"]
