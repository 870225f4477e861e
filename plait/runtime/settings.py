"""How batches are carried out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from plait.adapt.adapter import Habits
from plait.adapt.budget import Budget
from plait.stats.cycles import HISTORY

Routing: TypeAlias = Literal["local", "shuffle"]
"""How partial results get to the partition they probe: the task maps its buckets, or Spark carries them there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How batches are carried out. `slots`: tasks at a time; `routing`: ``local`` or ``shuffle``; `is_cluster`:
    tasks run in other processes than the driver's, perhaps on other machines; `cache_bytes`: how much local copies
    of a remote checkpoint's files may take; `budget`: what stores may keep, None for any amount; `capacity`:
    partial results held at once per step; `compaction`: whether small buckets are merged; `backfill`: whether a
    query that is new to the checkpoint also gets the results whose members had all arrived before; `habits`: how plans
    follow the data, and `history`: over how many cycles.
    """

    slots: int
    routing: Routing
    is_cluster: bool = False
    cache_bytes: int | None = None
    budget: Budget | None = None
    capacity: int = 1 << 20
    chunk_rows: int = 2_000_000
    compaction: bool = True
    backfill: bool = False
    habits: Habits = field(default_factory=Habits)
    history: int = HISTORY


__all__ = ["Routing", "Settings"]
