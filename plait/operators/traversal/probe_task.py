"""What one task starts with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from plait.state.model import Bucket

Start: TypeAlias = tuple[int, Bucket, int, int]
"""The index of a tree in the plan, a bucket of this batch, and a range of its rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeTask:
    """Starting work of one task. Of the rows it takes `every` so manieth."""

    number: int
    starts: tuple[Start, ...]
    every: int = 1


__all__ = ["ProbeTask", "Start"]
