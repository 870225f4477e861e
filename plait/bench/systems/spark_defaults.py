"""Spark's own chained stream-stream joins with the settings Spark ships with: 200 shuffle partitions, adaptive
execution, batches without data. What somebody gets who installs Spark and writes the query.
"""

from __future__ import annotations

from plait.bench.systems.spark import drain
from plait.bench.systems.task import Outcome, Task


def run(task: Task) -> Outcome:
    """Drain the streams through stream-stream joins."""
    return drain(task, {})
