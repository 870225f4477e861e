"""What a plan is expected to come to: of a step, of a store, and of the search that found it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Expected counts; None where nothing is known.

    `probe_tuples`: tuples sent along the edge, counted once per partition that receives them. `results`: tuples that
    match. These are per planning unit (window contents of the starting relation) and what the optimizer weighs. The
    same `per_s`: per second of event time, so that different trees can be added up and compared with what is measured.
    """

    probe_tuples: float | None = None
    results: float | None = None
    probe_tuples_per_s: float | None = None
    results_per_s: float | None = None


UNKNOWN: Final = Estimate()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEstimate:
    """What a store is expected to keep."""

    store: str
    rows: float
    bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """How good a plan found by search is known to be.

    `solver` found it: ``highs``, or ``local-search`` where that was not improved upon. `objective` is what it
    minimizes, weighted probe tuples per second of event time plus weighted rows kept in intermediate stores in that
    time; no plan of the search space has less than `bound`. `gap` is (objective − bound) / objective.
    """

    solver: str
    objective: float
    bound: float
    gap: float


__all__ = ["UNKNOWN", "Estimate", "Solution", "StoredEstimate"]
