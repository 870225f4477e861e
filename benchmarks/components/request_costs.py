"""`python -m benchmarks requests`: what one more query among many takes of the process that drives Spark, by pieces.

The queries of `benchmarks.workloads.ajoin_queries` run, so many at a time, on statistics as batches bring them; then
`--batch` more are asked for at once, again and again, as in ``python -m benchmarks deployment``, but without Spark and
without a row: text to bound query, types, statistics, plan and its verification, the text of the plan, its probe orders
for the history of plans, and what ingest tasks are told.

Two figures of each piece for each query that is added: the processor time of the thread, and the calls of functions,
which do not depend on the machine or on who else uses it.
"""

from __future__ import annotations

import cProfile
import gc
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Final, TypeVar

from rich.console import Console
from rich.table import Table

from benchmarks.arguments import numbers, parser, positive
from benchmarks.components.request_pieces import begun, deployed
from benchmarks.figures import write_json
from benchmarks.surroundings import surroundings
from benchmarks.workloads.ajoin_queries import AjoinWanted, draw_queries
from plait.plan.strategy_names import DEFAULT_STRATEGY, StrategyName, strategy_name

T = TypeVar("T")

PIECES: Final = ("read", "types", "statistics", "plan", "verified again", "text", "orders", "take in")
"""In the order in which a request comes by them. A plan is verified where it is made; what that takes by itself is
measured by doing it once more, and is no part of the sum.
"""
_BESIDE: Final = frozenset({"verified again"})


@dataclass(slots=True)
class Meter:
    """Adds up what pieces take: processor seconds, or with `counts` the calls of functions."""

    counts: bool = False
    taken: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def of(self, piece: str, work: Callable[[], T]) -> T:
        """Do a piece of work and add it to what it has taken so far."""
        if self.counts:
            profile = cProfile.Profile()
            done = profile.runcall(work)
            self.taken[piece] += sum(entry.callcount for entry in profile.getstats())
            return done
        began = time.thread_time()
        done = work()
        self.taken[piece] += time.thread_time() - began
        return done


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one more query takes among so many `running`, by piece: milliseconds of a processor, and calls."""

    running: int
    trees: int
    milliseconds: dict[str, float]
    calls: dict[str, float]

    @property
    def total_ms(self) -> float:
        """All of it."""
        return sum(taken for piece, taken in self.milliseconds.items() if piece not in _BESIDE)


def main(arguments: list[str]) -> int:
    """Run the benchmark with the command line's remaining arguments."""
    asked = parser("requests", "What one more query among many takes of the driver, by pieces.")
    asked.add_argument("--running", type=numbers, default="10,100,500,1000", help="queries that run")
    asked.add_argument("--batch", type=positive, default=10, help="queries asked for at a time")
    asked.add_argument("--times", type=positive, default=3, help="how often that many are asked for")
    asked.add_argument("--strategy", type=strategy_name, default=DEFAULT_STRATEGY, help="the strategy that plans")
    given = asked.parse_args(arguments)
    found = [
        measured(running, batch=given.batch, times=given.times, strategy=given.strategy, seed=given.seed)
        for running in given.running
    ]
    if given.json is not None:
        write_json(given.json, {"benchmark": "requests", **surroundings(), "figures": [asdict(each) for each in found]})
    Console().print(table(found))
    return 0


def measured(running: int, *, batch: int, times: int, strategy: StrategyName, seed: int) -> Figures:
    """Return what one more query takes where so many run, of `batch` that are asked for at once, so many `times`."""
    drawn = draw_queries(AjoinWanted(), seed)
    state = begun(tuple(islice(drawn, running)), strategy)
    deployed(state, tuple(islice(drawn, batch)), Meter())  # what is done but once is done
    taken = []
    for counts in (False, True):
        meter = Meter(counts)
        for number in range(times):
            gc.collect()
            deployed(state, tuple(islice(drawn, batch)), meter, 2 * number + counts + 2)
        taken.append({piece: meter.taken[piece] / times / batch for piece in PIECES})
    seconds, calls = taken
    return Figures(
        running=running,
        trees=len(state.former.plan.trees),
        milliseconds={piece: 1000 * each for piece, each in seconds.items()},
        calls=calls,
    )


def table(found: list[Figures]) -> Table:
    """Return a table for people: a column for each number of queries that run, milliseconds and calls side by side."""
    made = Table(title="One more query takes of the driver (ms of a processor; calls of functions)", box=None)
    made.add_column("")
    for each in found:
        made.add_column(f"{each.running} run", justify="right")
    for piece in PIECES:
        shown = (f"{each.milliseconds[piece]:.2f} {each.calls[piece]:>7,.0f}" for each in found)
        made.add_row(f"({piece})" if piece in _BESIDE else piece, *shown)
    made.add_row("all", *(f"{each.total_ms:.2f}        " for each in found))
    return made
