"""Plan options from what a script sets, as far as that can be told without Spark."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from plait.optimizer import PlanOptions
from plait.plan.strategy_names import DEFAULT_STRATEGY, strategy_name
from plait.query.model import Source
from plait.runtime.planning_options import PLANNING, PLANNING_DEFAULTS, planning_option

_PER_SOURCE = "plait.parallelism."


def plan_options(
    said: Mapping[str, str], sources: tuple[Source, ...], strategy: str | None, parallelism: int | None
) -> PlanOptions:
    """Return the options for a script's settings (`said`), over which the command line's strategy and parallelism win.

    Partitions per store are this machine's cores where nobody says otherwise.
    """
    planning: dict[str, Any] = dict(PLANNING_DEFAULTS)
    for option in PLANNING:
        if f"plait.{option}" in said:
            planning |= planning_option(option, said[f"plait.{option}"])
    return PlanOptions(
        strategy=strategy_name(strategy or said.get("plait.strategy", DEFAULT_STRATEGY)),
        sources=sources,
        parallelism=parallelism or int(said.get("plait.parallelism", os.cpu_count() or 1)),
        parallelism_by_source=tuple(
            (name.removeprefix(_PER_SOURCE), int(count)) for name, count in said.items() if name.startswith(_PER_SOURCE)
        ),
        **planning,
    )
