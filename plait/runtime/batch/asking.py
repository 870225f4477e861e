"""What a run is asked for while it goes on, as far as it has to know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """`waits` tells whether something is asked for that has not been taken up. `take_up` lets the next batch begin with
    all of it, and tells whether the streaming query can go on for that; else it is to be started anew.

    `plan_ahead` plans for what is asked for, beside a batch that may be under way, and tells whether all has a plan
    now; `is_planned`, whether something has one. `take_planned` takes that up, and tells whether the streaming query
    can go on; with True, within a batch that has stored its rows and not probed yet: what cannot be taken up there is
    left for the next one. `take_up_last` lets the batches of the end, which read nothing, begin with all that is asked
    for; False if there has to be another start first. It is told whether there was a streaming query before. `give_up`
    is called when the run is over: none of its batches takes up what waits still.
    """

    waits: Callable[[], bool] = lambda: False
    take_up: Callable[[], bool] = lambda: False
    plan_ahead: Callable[[], bool] = lambda: False
    is_planned: Callable[[], bool] = lambda: False
    take_planned: Callable[[bool], bool] = lambda _: True
    take_up_last: Callable[[bool], bool] = lambda _: True
    give_up: Callable[[], None] = lambda: None


NOTHING_ASKED: Final = Asking()

__all__ = ["NOTHING_ASKED", "Asking"]
