"""What a cycle's length (T) and the number of cycles kept (L) cost, as paper 003 asks; and paper 000's two turns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final

from benchmarks.simulator.experiments import Experiment, flooded_chain, turning_chain
from benchmarks.simulator.hindsight import best_by_cycle
from benchmarks.simulator.living import Lived, live
from benchmarks.simulator.measuring import FIXED, from_order
from benchmarks.simulator.recording import Recording, record
from benchmarks.simulator.replay import Policy, replay
from plait.adapt.planning import PlanRequest
from plait.adapt.reconsidering import Policy as Deciding
from plait.optimizer.options import PROBE_COSTS, PlanOptions
from plait.plan.strategy_names import StrategyName

LENGTHS: Final = (1, 2, 5, 10, 20)
"""Seconds of a cycle, a batch each."""

HISTORIES: Final = (2, 5, 10, 20, 60, 100, 200)
"""How many cycles of one second are kept."""

TURN: Final = 15
FLOOD: Final = 8
WINDOW: Final = 5
"""In cycles, as `turning_chain` and `flooded_chain` have them."""

_OF_TUPLES: Final = replace(PROBE_COSTS, store=0.0)
"""Papers count tuples, and know no batches in which an intermediate store takes something by itself."""

_PICK: Final = Policy(name="dppick", strategy="dppick")


def by_length(recording: Recording, orders: Iterable[str]) -> dict[int, float]:
    """Return what `dppick` takes against `fixed`, in query and match operations, by the length of a cycle."""
    return _against_fixed(recording, tuple(orders), {length: replace(_PICK, cycle=length) for length in LENGTHS})


def by_history(recording: Recording, orders: Iterable[str]) -> dict[int, float]:
    """Return the same by how many cycles are kept."""
    return _against_fixed(recording, tuple(orders), {kept: replace(_PICK, history=kept) for kept in HISTORIES})


def _against_fixed(recording: Recording, orders: tuple[str, ...], policies: dict[int, Policy]) -> dict[int, float]:
    asked = [from_order(recording, order) for order in orders]
    fixed = fmean(replay(each, FIXED).operations for each in asked)
    return {
        value: fmean(replay(each, policy).operations for each in asked) / fixed - 1
        for value, policy in policies.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """How a strategy came through a turn of the data. `recovered`: after how many cycles it took no more than a tenth
    above what hindsight would, for good, None if never; `after`: what it took on average from a window and two cycles
    after the turn on, and `static` what the plan of before took there.
    """

    strategy: StrategyName
    recovered: int | None
    after: float
    static: float


def turned(strategies: Iterable[StrategyName], rows_per_cycle: int) -> Iterator[Turn]:
    """Yield paper 000's first experiment."""
    experiment = turning_chain(rows_per_cycle=rows_per_cycle, cycles=TURN + 2 * WINDOW + 5, turn=TURN)
    recording = record(experiment.query, experiment.streams, experiment.batches)
    best, settled = best_by_cycle(recording), TURN + WINDOW + 2
    for strategy in strategies:
        policy = Policy(name=strategy, strategy=strategy)
        adaptive = [each.operations for each in replay(recording, policy).taken]
        static = [each.operations for each in replay(recording, replace(policy, until=TURN)).taken]
        late = [cycle for cycle, taken in enumerate(adaptive) if taken > best[cycle] * 1.1 and cycle >= TURN]
        recovered = max(late, default=TURN - 1) + 1
        yield Turn(
            strategy=strategy,
            recovered=None if recovered >= len(best) else recovered - TURN,
            after=fmean(adaptive[settled:]),
            static=fmean(static[settled:]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Flood:
    """How a strategy came through a flood. `appeared`: after how many cycles the store of the other relations was
    there; `after` and `static` as in `Turn`.
    """

    strategy: StrategyName
    appeared: int | None
    after: float
    static: float


def flooded(strategies: Iterable[StrategyName], rows_per_cycle: int) -> Iterator[Flood]:
    """Yield paper 000's second experiment."""
    experiment = flooded_chain(rows_per_cycle=rows_per_cycle, cycles=FLOOD + 2 * WINDOW + 2, flood=FLOOD)
    settled = slice(FLOOD + WINDOW + 2, None)
    for strategy in strategies:
        adaptive, static = lived(experiment, strategy), lived(experiment, strategy, until=FLOOD)
        there = [any("r1⋈r2⋈r3" in store for store in cycle.stores) for cycle in adaptive.cycles]
        yield Flood(
            strategy=strategy,
            appeared=next((cycle - FLOOD for cycle in range(FLOOD, len(there)) if all(there[cycle:])), None),
            after=fmean(cycle.operations for cycle in adaptive.cycles[settled]),
            static=fmean(cycle.operations for cycle in static.cycles[settled]),
        )


def lived(experiment: Experiment, strategy: StrategyName, until: int | None = None) -> Lived:
    """Run an experiment with intermediate stores, from the orders of `greedy` on, which has none. `until`: as in
    `live`.
    """

    def request(strategy: StrategyName) -> PlanRequest:
        options = PlanOptions(strategy=strategy, sources=experiment.streams, parallelism=1, costs=_OF_TUPLES)
        return PlanRequest(queries=(experiment.query,), options=options)

    return live(experiment, request(strategy), Deciding(), first=request("greedy").plan(None), until=until)


__all__ = [
    "FLOOD",
    "HISTORIES",
    "LENGTHS",
    "TURN",
    "WINDOW",
    "Flood",
    "Turn",
    "by_history",
    "by_length",
    "flooded",
    "lived",
    "turned",
]
