"""The cost model of papers 000 and 002: sizes of joins, probe tuples, stored tuples.

Two departures. Paper 002 prints 1/j with a shifted index; j is the number of relations joined so far. And of these
only streams count: the factor 1/j is the chance that the starting tuple is the last to arrive, and the tuples of a
table have all arrived before it.
"""

from __future__ import annotations

from collections.abc import Iterable

from plait.plan.model import ProbeTree


def arriving(size: float, streams: int) -> float:
    """Return the tuples of a join of this size, over so many streams, that one probe path holds: |⋈ X| / j."""
    return size / streams


def step_cost(size: float, *, streams: int, copies: int) -> float:
    """Return the probe tuples of a step from a join of this size: |⋈ X| / j · χ.

    `copies` is χ: 1 when the tuple knows the target's partition, otherwise the target's parallelism.
    """
    return arriving(size, streams) * copies


def probe_cost(trees: Iterable[ProbeTree]) -> float:
    """Return the probe tuples of all distinct steps: each step stands once in its tree, however many queries use it."""
    return sum(step.estimate.probe_tuples or 0.0 for tree in trees for _, step in tree.walk())


def storage_cost(inputs: Iterable[float], intermediates: Iterable[float] = ()) -> float:
    """Return the stored tuples: Σ |R| over input stores + Σ |⋈ X| over intermediate stores."""
    return sum(inputs) + sum(intermediates)
