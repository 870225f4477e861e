"""What a step costs (paper 003, equations 4 to 8), from what it looks up and what it finds.

A look-up costs `query_ns` · f(κ), with f of Plait's own index: a sorted run that the sorted probes gallop through, so
f(κ) = `query_base` + log₂(1 + κ). A store of several partitions is asked in each of them, unless the tuple knows which.
Every pair that the index finds costs `match_ns`, whether or not the other predicates hold; where there is no index to
ask, every stored row does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from plait.optimizer.estimate.cardinality import Cardinality, Extent
from plait.optimizer.options import ProbeCosts
from plait.optimizer.pick.best_order import StepCost
from plait.plan.conditions import Joining, key_pairs
from plait.query.predicates import Band, Residual


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """What joins a relation on the path with one that is probed, which is at `place` among those."""

    left: Extent
    right: Extent
    place: int
    on: Joining


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A step: the `rows` of what is probed, what joins the path with it, how many partitions every tuple is sent to,
    and how many tuples go on for one that comes in.
    """

    rows: float
    joins: tuple[Joined, ...]
    copies: int
    growth: float


def step_cost(probe: Probe, cardinality: Cardinality, costs: ProbeCosts) -> StepCost:
    """Return what one tuple costs on a step."""
    has_keys = any(key_pairs(joined.on) for joined in probe.joins)
    has_bands = any(isinstance(each, Band) for joined in probe.joins for each in joined.on)
    if not has_keys and not has_bands:
        return StepCost(price=probe.copies * costs.query + probe.rows * costs.match, growth=probe.growth)
    looked_at = probe.growth / max(math.prod(_passing(joined, cardinality, has_keys) for joined in probe.joins), 1e-9)
    kept = _distinct(probe, cardinality) if has_keys else probe.rows
    look_up = costs.query * (costs.query_base + math.log2(1.0 + kept))
    return StepCost(price=probe.copies * look_up + min(looked_at, probe.rows) * costs.match, growth=probe.growth)


def _passing(joined: Joined, cardinality: Cardinality, has_keys: bool) -> float:
    """Return the share of the pairs that the index finds of which the other predicates hold too."""
    if not any(isinstance(each, Band | Residual) for each in joined.on):
        return 1.0
    whole = cardinality.between(joined.left, joined.right, joined.on)
    indexed = tuple(each for each in joined.on if not isinstance(each, Residual | (Band if has_keys else Residual)))
    part = cardinality.between(joined.left, joined.right, indexed) if indexed else 1.0
    return min(whole / part, 1.0) if part > 0 else 1.0


def _distinct(probe: Probe, cardinality: Cardinality) -> float:
    """Return κ: how many of all the values there are lie in the store, of the keys it is looked up by together.

    A single key's may have been counted. Of d equally likely values n rows have d · (1 − e^(−n/d)) on average.
    """
    places = {
        (joined.place, key.name): joined.right.source for joined in probe.joins for _, key in key_pairs(joined.on)
    }
    counted = [cardinality.statistics.kept(source, key) for (_, key), source in places.items()]
    if len(counted) == 1 and counted[0]:
        return min(counted[0], max(probe.rows, 1.0))
    values = {
        (joined.place, key.name): cardinality.distinct(joined.right, key)
        for joined in probe.joins
        for _, key in key_pairs(joined.on)
    }
    return kept_values(math.prod(values.values()), probe.rows)


def kept_values(values: float, rows: float) -> float:
    """Return how many of so many values so many rows have.

    >>> round(kept_values(100.0, 1e6)), round(kept_values(1e6, 100.0)), round(kept_values(100.0, 100.0))
    (100, 100, 63)
    """
    return -values * math.expm1(-rows / values)


__all__ = ["Joined", "Probe", "kept_values", "step_cost"]
