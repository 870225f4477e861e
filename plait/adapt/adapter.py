"""When the plan is reconsidered, and what comes of it: the one thing of this package that the runtime talks to."""

from __future__ import annotations

import logging
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

from plait.adapt.decision import Change, change_between, decide
from plait.adapt.forecast import forecast
from plait.adapt.planning import PlanRequest, probing_only
from plait.plan.model import Plan
from plait.state.model import Manifest
from plait.stats.model import Statistics

_LOG = logging.getLogger(__name__)

_REPLAN_AFTER = frozenset({1, 4, 16})
"""After how many batches of a run the plan is reconsidered: by then the sample of what has arrived says something
new.
"""

_HALVINGS = 8
_BARE = "greedy"
"""A strategy without intermediate stores."""


class Adapter:
    """Plans beside the stream; a change is taken at a later batch boundary.

    Ask for `next_change` before each batch, and tell `batch_done` after it. Results never depend on what it finds, so
    planning that fails is told in the log and changes nothing.
    """

    def __init__(self, request: PlanRequest) -> None:
        self._request = request
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="plait-planning")
        self._planning: Future[tuple[Plan, Statistics]] | None = None
        self._forced: Change | None = None
        self._batches = 0

    def next_change(self, running: Plan) -> Change | None:
        """Return the change that the next batch begins with; None if the plan in force stays."""
        forced, self._forced = self._forced, None
        if forced is not None:
            return forced
        if self._planning is None or not self._planning.done():
            return None
        planning, self._planning = self._planning, None
        try:
            wanted, statistics = planning.result()
        except Exception as error:  # whatever a strategy or its solver raises
            _warn_of(error)
            return None
        fitting = probing_only(running, wanted)
        return None if fitting is None else decide(running, fitting, statistics, self._request.options)

    def batch_done(self, manifest: Manifest, running: Plan, dropped: frozenset[str] = frozenset()) -> None:
        """Count a finished batch, and begin to plan if it is time to. `dropped`: intermediate stores it left behind to
        hold the storage budget, which the next plan must not want.
        """
        if dropped:
            self._forced = self._without(dropped, manifest, running)
        self._batches += 1
        if self._batches in _REPLAN_AFTER and self._planning is None:
            self._planning = self._pool.submit(self._planned, self._request, manifest)

    @staticmethod
    def _planned(request: PlanRequest, manifest: Manifest) -> tuple[Plan, Statistics]:
        return request.plan(manifest), forecast(request.options.sources, manifest)

    def _without(self, dropped: frozenset[str], manifest: Manifest, running: Plan) -> Change | None:
        """Return the change to a plan that does not want the stores that were just dropped; from now on plans take as
        little as this one. What was being planned is forgotten. None: no such plan works on the stores there are.

        Estimates were too low, so the plan is made for half of the room and half again until the stores are gone;
        whatever the estimates, a plan without any intermediate store is the last. A batch waits for this, so all of
        them share the time limit of one.
        """
        self._planning = None
        options = self._request.options
        hurried = replace(options, time_limit_s=options.time_limit_s / _HALVINGS)
        shares = (options.storage_share / 2**halving for halving in range(1, _HALVINGS))
        statistics = forecast(options.sources, manifest)
        for changed in (*({"storage_share": share} for share in shares), {"strategy": _BARE}):
            self._request = replace(self._request, options=replace(options, **changed))
            try:
                wanted = replace(self._request, options=replace(hurried, **changed)).plan(manifest)
            except Exception as error:  # as above
                _warn_of(error)
                continue
            fitting = probing_only(running, wanted)
            if fitting is not None and dropped.isdisjoint(store.id for store in fitting.stores):
                return change_between(running, fitting, statistics, options, reason="storage budget")
        return None

    def close(self, *, wait: bool = True) -> None:
        """Drop the plan being made. `wait`: until its solver, which cannot be interrupted, has come to its end."""
        self._pool.shutdown(wait=wait, cancel_futures=True)


def _warn_of(error: Exception) -> None:
    _LOG.warning(
        "the plan could not be reconsidered, so the one in force stays: %s: %s",
        type(error).__name__,
        error,
        exc_info=error,
    )


__all__ = ["Adapter"]
