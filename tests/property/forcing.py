"""Plans that change between any two batches, and stores that are filled row by row: what a run never does by itself so
often, on the product's own way there.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from plait.adapt.adapter import Adapter
from plait.adapt.decision import Change
from plait.adapt.planning import PlanRequest, probing_only
from plait.plan.changelog import changelog
from plait.plan.coming import Way
from plait.plan.model import Plan
from plait.runtime import batches
from plait.runtime.batch.throttle import Throttle
from plait.runtime.batches import Batches
from plait.runtime.checkpoint import heading
from plait.stats.model import Statistics
from tests.unit.optimizer.random_orders import random_plan

Begin = Callable[[Batches, Way, Change, int], None]


@dataclass(slots=True, kw_only=True)
class Forcing:
    """Changes plans at random. `share`: of the batches that begin with a change of mind; `fill_rows`: the most a batch
    takes, from which a start does not fill at once either. `stages`: how many stages there were on the way to a plan,
    by how many stores were lacking; `minds`: how often another plan was wanted, `in_between` while stores were filled.
    """

    seed: str
    share: float = 0.4
    fill_rows: int = 3
    stages: list[int] = field(default_factory=list)
    minds: int = 0
    in_between: int = 0

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Let it happen to all engines."""
        rng, fill_rows = random.Random(self.seed), self.fill_rows
        patch.setattr(heading, "AT_ONCE_ROWS", rng.choice((-1, 5, 50)))
        patch.setattr(batches, "MOST_AT_ONCE", rng.choice((0, 20, 1000)))
        patch.setattr(Throttle, "rows", lambda throttle: max(fill_rows - throttle._taken_rows, 0))
        patch.setattr(Adapter, "next_change", lambda adapter, running: self._change(adapter._request, running, rng))
        patch.setattr(Batches, "_begin", self._counted(Batches._begin))

    def _counted(self, begin: Begin) -> Begin:
        def begun(running: Batches, way: Way, change: Change, batch: int) -> None:
            self.stages.append(len(way.lacking))
            self.minds += not change.goes_on
            self.in_between += not change.goes_on and running.processor.in_force.way is not None
            begin(running, way, change, batch)

        return begun

    def _change(self, request: PlanRequest, running: Plan, rng: random.Random) -> Change | None:
        if rng.random() >= self.share or request.options.strategy == "independent":
            return None
        wanted = random_plan(request.queries, Statistics(), request.options, rng)
        fitting = probing_only(running, wanted)
        return None if fitting is None else forced(running, fitting)


def forced(running: Plan, wanted: Plan) -> Change:
    """Return a change that nobody has weighed."""
    return Change(reason="cheaper", changes=changelog(running, wanted), cost_before=None, cost_after=None)
