"""Decide for all queries together what to probe, what to materialize and how to partition: the heart of ``ilp``."""

from plait.optimizer.sharing.decision import Decision, Space, decide, explore, quick_cost, settle
from plait.optimizer.sharing.highs import Limits

__all__ = ["Decision", "Limits", "Space", "decide", "explore", "quick_cost", "settle"]
