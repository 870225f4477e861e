"""What the experiments measure: work by policy and order, regret against hindsight, and errors of forecasts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.simulator.experiments import (
    Drift,
    Experiment,
    Partners,
    chain,
    joined,
    random_drift,
    returns,
    step_at,
)
from benchmarks.simulator.hindsight import best_by_cycle, best_single, gains_of_changes, real_shifts, unavoidable
from benchmarks.simulator.recording import EdgeCounts, Recording, plan_options
from benchmarks.simulator.replay import Policy, Replayed, replay
from benchmarks.simulator.tpch import tpch_random
from benchmarks.workloads.chains import PARTNERS, WINDOWS_S
from benchmarks.workloads.tpcds_returns import ORDERS
from plait.adapt.forecast import FEWEST_PROBES, Outlook
from plait.adapt.reconsidering import Policy as Deciding
from plait.adapt.smoothing import FEWEST, Floats, Method, forecast_series
from plait.optimizer.options import PROBE_COSTS

FIXED: Final = Policy(name="fixed", strategy="fixed", adapts=False)
COMPARED: Final[tuple[Policy, ...]] = (
    FIXED,
    Policy(name="selectivity", strategy="selectivity"),
    Policy(name="greedy", strategy="greedy"),
    Policy(name="dppick", strategy="dppick"),
)
ABLATIONS: Final[tuple[Policy, ...]] = (
    Policy(name="query cost only", strategy="dppick", costs=replace(PROBE_COSTS, match=0.0)),
    Policy(name="match cost only", strategy="dppick", costs=replace(PROBE_COSTS, query=0.0)),
    Policy(name="no forecast", strategy="dppick", how=Deciding(outlook=Outlook(trends=False))),
)
"""Of `dppick`, as in paper 003."""

METHODS: Final[tuple[Method, ...]] = ("last", "linear", "damped")
_EVERY = 3
"""Forecasts are compared with every so manieth cycle."""


def from_order(recording: Recording, order: str) -> Recording:
    """Return paper 003's join as it is asked in another order of FROM, over the same counts."""
    names = [relation.replace("_", "") for relation in ORDERS[order]]
    conditions = [f"{one}.k = {other}.k" for one, other in combinations(names, 2)]
    return replace(recording, query=joined(recording.streams, conditions, names))


def by_order(
    recording: Recording, orders: Iterable[str], policies: Iterable[Policy]
) -> Iterator[tuple[str, str, Replayed]]:
    """Yield (initial order, policy, what it took)."""
    asked = tuple(policies)
    for order in orders:
        for policy in asked:
            yield order, policy.name, replay(from_order(recording, order), policy)


def behind_best(found: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return by order of FROM which share more `dppick` took than the best of `COMPARED`.

    >>> behind_best({"RST": {"fixed": 120.0, "selectivity": 110.0, "greedy": 100.0, "dppick": 101.0}})
    {'RST': 0.01}
    """
    return {
        order: round(taken["dppick"] / min(taken[each.name] for each in COMPARED) - 1, 6)
        for order, taken in found.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Regret:
    """By which share more probe tuples, samples included, a policy takes than the best orders `by_cycle` in hindsight,
    and than the best ones for all cycles (`single`; below 0 where it takes less). `unavoidable`: the part of `by_cycle`
    of cycles in which nobody could know better; `sampled`: that of samples. `changes`: how many it made, how many of
    them were in `vain`, and how many `shifts` of the data there were.
    """

    by_cycle: float
    single: float
    unavoidable: float
    sampled: float
    changes: int
    vain: int
    shifts: int


def regret(recording: Recording, policy: Policy) -> Regret:
    """Return the regret of a policy."""
    replayed = replay(recording, policy)
    best, single = sum(best_by_cycle(recording, "probes")), best_single(recording, "probes")
    return Regret(
        by_cycle=replayed.probes / best - 1,
        single=replayed.probes / single - 1,
        unavoidable=unavoidable(recording, replayed.began) / best,
        sampled=replayed.sampled / best,
        changes=len(replayed.changes),
        vain=sum(gain <= 0 for gain in gains_of_changes(recording, replayed)),
        shifts=len(real_shifts(recording)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Drifting:
    """Which workloads regret is measured on. `directory`: where TPC data is kept."""

    seeds: Sequence[int]
    rate: float
    scale: float
    directory: Path
    named: bool = True


def shifting(wanted: Drifting) -> Iterator[Experiment]:
    """Yield the workloads that regret is measured on: `drift`, `chains`, `tpch-random` and `tpcds-returns` if `named`,
    and random ones.
    """
    if wanted.named:
        yield from _named(wanted)
    for seed in wanted.seeds:
        yield random_drift(seed, rate=wanted.rate)


def _named(wanted: Drifting) -> Iterator[Experiment]:
    rate = wanted.rate
    flat: Partners = lambda _: rate  # noqa: E731
    turn = 20
    partners = (step_at(turn, 10.0, 0.1), lambda _: 1.0, step_at(turn, 0.1, 10.0))
    yield chain("drift", Drift(rates=(flat,) * 4, partners=partners, cycles=2 * turn))
    yield from tpch_random(wanted.scale, 2 * turn, wanted.directory)
    yield returns(wanted.scale, next(iter(ORDERS)), 2 * turn)
    for letters in WINDOWS_S:
        if letters != "HHHH":  # whatever the order, results are all it finds
            steady = tuple((lambda _, each=PARTNERS[letter]: each) for letter in letters)
            yield chain(f"chains {letters}", Drift(rates=(flat,) * 5, partners=steady, cycles=2 * turn))


def forecast_errors(
    recording: Recording, methods: Iterable[Method] = METHODS
) -> Mapping[tuple[str, Method], list[float]]:
    """Return by how much forecasts of γ and μ were off, as shares of what was measured in the next cycle."""
    gammas, mus = _series(recording)
    found: dict[tuple[str, Method], list[float]] = {}
    for name, series, high in (("gamma", gammas, 1.0), ("mu", mus, np.inf)):
        for method in methods:
            errors = found.setdefault((name, method), [])
            for cycle in range(FEWEST + 1, series.shape[1], _EVERY):
                ahead, seen = forecast_series(series[:, :cycle], method, high=high), series[:, cycle]
                says = ~np.isnan(ahead) & ~np.isnan(seen) & (seen > 0)
                errors += (np.abs(ahead - seen)[says] / seen[says]).tolist()
    return found


def _series(recording: Recording) -> tuple[Floats, Floats]:
    """Return γ and μ of every step of every order, by cycle; NaN where hardly any tuple took it."""
    edges = sorted(set().union(*(cycle.edges for cycle in recording.cycles)))
    counts = np.array(
        [
            [
                (each.probes, each.matched, each.matches)
                for cycle in recording.cycles
                for each in (cycle.edges.get(edge, EdgeCounts()),)
            ]
            for edge in edges
        ],
        dtype=np.float64,
    )
    probes, matched, matches = counts[:, :, 0], counts[:, :, 1], counts[:, :, 2]
    enough = probes >= FEWEST_PROBES
    gammas = np.divide(matched, probes, out=np.full_like(probes, np.nan), where=enough)
    mus = np.divide(matches, matched, out=np.full_like(probes, np.nan), where=enough & (matched > 0))
    return gammas, mus


def weighted(recording: Recording, replayed: Replayed) -> float:
    """Return the work in nanoseconds of one core: look-ups among as many keys as the streams have by then, and matches,
    at what ``python -m benchmarks costs`` measures.
    """
    work, arrived = 0.0, 0.0
    names = [stream.name for stream in plan_options(recording.streams).sources]
    for cycle, taken in zip(recording.cycles, replayed.taken, strict=True):
        arrived += sum(bucket.rows for bucket in cycle.arrived) / len(names)
        look_up = PROBE_COSTS.query * (PROBE_COSTS.query_base + np.log2(1.0 + arrived))
        work += taken.probes * look_up + taken.matches * PROBE_COSTS.match
    return work


__all__ = [
    "ABLATIONS",
    "COMPARED",
    "FIXED",
    "METHODS",
    "Drifting",
    "Regret",
    "behind_best",
    "by_order",
    "forecast_errors",
    "from_order",
    "regret",
    "shifting",
    "weighted",
]
