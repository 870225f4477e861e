"""The names of the strategies; what each does is in `plait.optimizer.strategies`, which takes longer to load."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

from plait.errors import OptionError

StrategyName: TypeAlias = Literal[
    "fixed",
    "selectivity",
    "greedy",
    "dppick",
    "ilp",
    "adhoc",
    "flat",
    "left-deep",
    "chain",
    "bushy",
    "independent",
    "shared",
]

STRATEGY_NAMES: Final[tuple[StrategyName, ...]] = get_args(StrategyName)

DEFAULT_STRATEGY: Final[StrategyName] = "dppick"


def strategy_name(text: str) -> StrategyName:
    """Return the strategy of this name. Raises OptionError if there is none."""
    for name in STRATEGY_NAMES:
        if name == text:
            return name
    raise OptionError(f"unknown strategy '{text}'; expected one of {', '.join(sorted(STRATEGY_NAMES))}")
