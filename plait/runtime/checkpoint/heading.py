"""What a start begins with: the plan that is wanted, or what leads there while its intermediate stores are filled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from plait.adapt.forecast import NEXT_CYCLE
from plait.adapt.planning import PlanRequest, probing_only
from plait.operators.close.lacking import complete_from
from plait.operators.ingest.derivable import reading_of
from plait.operators.ingest.readings import Reading, Readings
from plait.operators.traversal.filling_up import PastPlan, has_known_past, wanting
from plait.operators.traversal.slicing import lacking_rows, there
from plait.optimizer.incremental.former import Former
from plait.optimizer.planner import plan as planned
from plait.plan.coming import Way
from plait.plan.model import Plan
from plait.plan.strategy_names import StrategyName
from plait.plan.traversals import intermediates
from plait.query.model import Query, Stream
from plait.runtime.checkpoint.asked import Asked
from plait.state.model import Manifest

AT_ONCE_ROWS: Final = 50_000
"""So many stored rows are taken by the first batch of a start to fill the intermediate stores that it lacks: a tenth of
a second or two. Where there are more, the stores come while batches run.
"""

_BARE: Final[StrategyName] = "greedy"
"""A strategy without intermediate stores."""


def way_to(request: PlanRequest, goal: Plan, manifest: Manifest | None, running: Former | None = None) -> Way | None:
    """Return the way to a plan that a run begins with; None if it can begin with the plan itself. `running`: what has
    answered queries up to now, where that is known.

    Until the stores are there the queries are answered as they were, those that come beside them, or else without any
    intermediate store. No such plan may work on the stores of the goal; then the first batch fills them, however long
    it takes.
    """
    if manifest is None or lacking_rows(goal, manifest.buckets, manifest.fillings) <= AT_ONCE_ROWS:
        return None
    for base in _bases(request, manifest, running):
        fitting = probing_only(goal, base)
        if fitting is not None and _is_there(fitting, manifest):
            return Way(base=fitting, goal=goal, filled=there(goal, manifest.buckets, manifest.fillings))
    return None


def past_plans(
    asked: Asked, plan: Plan, manifest: Manifest | None, known: Iterable[PastPlan] = ()
) -> tuple[PastPlan, ...]:
    """Return how queries get the results of before they came that want them, those as `known` that are. The buckets of
    the manifest are as they are read.
    """
    asking = (binding.query for binding in asked.bindings.values())
    wanted = wanting(asking, manifest, backfill=asked.settings.backfill)
    decided = decided_from(wanted, plan, manifest)
    queries = tuple(query for query in wanted if decided.get(query.name, 0) is not None)
    made = {each.query.name: each for each in known}
    lacking = tuple(query for query in queries if query.name not in made or made[query.name].query is not query)
    if lacking:
        is_shared = all(store.id == store.source for store in plan.stores if store.source is not None)
        options = replace(asked.request.options, strategy=_BARE if is_shared else "independent")
        statistics = replace(asked.request, options=options).statistics(manifest)
        for query in lacking:
            alone = planned((query,), statistics, options)
            made[query.name] = PastPlan(query=query, plan=alone, readings=_readings(asked, alone))
    return tuple(made[query.name] for query in queries)


def decided_from(queries: Iterable[Query], plan: Plan, manifest: Manifest | None) -> dict[str, int | None]:
    """Return from which event time on queries can have of the past what the watermark decided: which rows had no
    partner, and what was in windows of time. Of those that are new and have such; None: of no time, as of those that
    read a table of which nobody knows what was in it. The buckets of the manifest are as they are read.
    """
    if manifest is None:
        return {}
    known = {each.query for each in manifest.queries} | {each.query for each in manifest.filling_up}
    new = [query for query in queries if query.name not in known]
    decides = (query for query in new if query.joins or query.aggregation is not None)
    found: dict[str, int | None] = {query.name: complete_from(query, plan, manifest) for query in decides}
    return found | {query.name: None for query in new if not has_known_past(query)}


def _readings(asked: Asked, plan: Plan) -> Readings:
    readings: dict[str, Reading] = {}
    for store in plan.stores:
        source = None if store.source is None else asked.sources[store.source].source
        reading = reading_of(store, source) if isinstance(source, Stream) else None
        if reading is not None:
            readings[store.id] = reading
    return readings


def _bases(request: PlanRequest, manifest: Manifest, running: Former | None) -> Iterator[Plan]:
    """Yield plans that may answer the queries until then, the better one first."""
    bare = replace(request, options=replace(request.options, strategy=_BARE))
    if running is not None:  # whichever strategy made it, nothing that comes beside it brings another store
        yield bare.plan(manifest, NEXT_CYCLE, replace(running, plan=replace(running.plan, strategy=_BARE)))
    yield bare.plan(manifest)


def _is_there(base: Plan, manifest: Manifest) -> bool:
    """Tell whether all intermediate stores are complete that a plan reads."""
    needed = {store.id for store, _ in intermediates(base)}
    return needed <= there(base, manifest.buckets, manifest.fillings)


__all__ = ["AT_ONCE_ROWS", "decided_from", "past_plans", "way_to"]
