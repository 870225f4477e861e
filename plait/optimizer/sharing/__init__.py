"""Decide for all queries together what to probe, what to materialize and how to partition: the heart of ``ilp``."""

from plait.optimizer.sharing.decision import Decision, decide, quick_cost

__all__ = ["Decision", "decide", "quick_cost"]
