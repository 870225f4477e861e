"""`python -m benchmarks costs`: what a look-up and a match cost, which `dppick` weighs (paper 003, equations 4 and 7).

The matching kernel asks a sorted run of κ keys for as many tuples as a batch brings, none of which match, then all of
which match several rows. Processor time of one thread, the least of some runs: others on the machine only add to it.
A line through (log₂(1 + κ), time of a look-up) gives `query` and `query_base`; what matches take beyond that, with the
rows gathered, gives `match`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict

import numpy as np
import numpy.typing as npt
from rich.console import Console

from benchmarks.arguments import parser, positive
from benchmarks.figures import write_json
from benchmarks.surroundings import surroundings
from plait.kernels.matching import iter_matches
from plait.optimizer.options import PROBE_COSTS, ProbeCosts

Keys = npt.NDArray[np.int64]
_KEYS = (1_000, 10_000, 100_000, 1_000_000, 4_000_000)
_PARTNERS = 8


def main(arguments: list[str]) -> int:
    """Measure, and say what is shipped."""
    made = parser("costs", "What a look-up and a match cost: the defaults of strategy dppick.")
    made.add_argument("--repeat", type=positive, default=5, help="runs, of which the fastest counts")
    made.add_argument("--probes", type=positive, default=20_000, help="tuples that probe at once")
    options = made.parse_args(arguments)
    found = measured(options.probes, options.repeat, options.seed)
    console = Console()
    for name, costs in (("measured", found), ("shipped", PROBE_COSTS)):
        look_up = f"{costs.query:.1f} ns x ({costs.query_base:.1f} + log2(1 + keys))"
        console.print(f"{name:9} look-up {look_up}, match {costs.match:.1f} ns", highlight=False)
    if options.json is not None:
        write_json(options.json, {"benchmark": "costs", **surroundings(), "costs": asdict(found)})
    return 0


def measured(probes: int, repeat: int, seed: int) -> ProbeCosts:
    """Return the costs on this machine."""
    random = np.random.default_rng(seed)
    points = [(np.log2(1.0 + keys), _look_up_ns(random, keys, probes, repeat)) for keys in _KEYS]
    slope, base = np.polyfit([x for x, _ in points], [y for _, y in points], 1)
    query = max(float(slope), 0.1)
    return ProbeCosts(
        query=query,
        query_base=max(float(base) / query, 0.0),
        match=_match_ns(random, probes, repeat),
        keep=PROBE_COSTS.keep,
        store=PROBE_COSTS.store,
    )


def _look_up_ns(random: np.random.Generator, keys: int, probes: int, repeat: int) -> float:
    """Even keys are stored and odd ones asked for, so nothing matches."""
    stored = 2 * np.arange(keys, dtype=np.int64)
    asked = np.sort(2 * random.integers(0, keys, probes) + 1)
    return _least_ns(lambda: _matches(asked, stored), repeat) / probes


def _match_ns(random: np.random.Generator, probes: int, repeat: int) -> float:
    """Every tuple matches several rows, whose columns are gathered; less what looking them up takes."""
    stored = np.repeat(2 * np.arange(probes, dtype=np.int64), _PARTNERS)
    asked = np.sort(2 * random.integers(0, probes, probes))
    columns = [random.integers(0, 1 << 40, len(stored)) for _ in range(4)]

    def joined() -> None:
        for rows, found in iter_matches(
            probe_key=asked,
            probe_low=None,
            probe_high=None,
            index_key=stored,
            index_tau=None,
            index_row=None,
            bits=None,
            mask=0,
        ):
            for column in columns:
                column[found]
            asked[rows]

    look_ups = _look_up_ns(random, probes, probes, repeat) * probes
    return max(_least_ns(joined, repeat) - look_ups, 1.0) / (probes * _PARTNERS)


def _matches(asked: Keys, stored: Keys) -> int:
    found = iter_matches(
        probe_key=asked,
        probe_low=None,
        probe_high=None,
        index_key=stored,
        index_tau=None,
        index_row=None,
        bits=None,
        mask=0,
    )
    return sum(len(rows) for rows, _ in found)


def _least_ns(work: Callable[[], object], repeat: int) -> float:
    work()  # compiles
    taken = []
    for _ in range(repeat):
        started = time.thread_time_ns()
        work()
        taken.append(time.thread_time_ns() - started)
    return float(min(taken))


__all__ = ["main", "measured"]
