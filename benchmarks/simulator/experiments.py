"""The experiments: TPC-DS returns (paper 003), the chain that turns (paper 000), and random data that drifts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.simulator.recording import Batch
from benchmarks.workloads.stored import generator
from benchmarks.workloads.tpcds_returns import ADDRESSES, ORDERS, ReturnsInput, make_streams, time_column
from plait.query.model import Column, Query, SinkSpec, Stream
from plait.query.types import resolve_types
from plait.sql.select.binder import bind_query

Ints = NDArray[np.int64]
_SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A query over streams, and what arrives, one batch a cycle."""

    name: str
    query: Query
    streams: tuple[Stream, ...]
    batches: Sequence[Batch]


def joined(streams: Sequence[Stream], conditions: Sequence[str], order: Sequence[str]) -> Query:
    """Return the query that joins streams in this order of FROM."""
    select = ", ".join(f"{name}.ts AS {name}_ts" for name in order)
    text = f"SELECT {select} FROM {', '.join(order)} WHERE {' AND '.join(conditions)}"
    query = bind_query(
        name="q", select=text, sink=SinkSpec(format="noop"), sources={stream.name: stream for stream in streams}
    )
    return resolve_types(query, lambda _: "bigint")


def stream(name: str, keys: Sequence[str], window_s: float | None) -> Stream:
    """Return a stream of event time and bigint keys."""
    columns = (Column(name="ts", type="timestamp"), *(Column(name=key, type="bigint") for key in keys))
    window_us = None if window_s is None else round(window_s * _SECOND_US)
    return Stream(name=name, time="ts", schema=columns, window_us=window_us)


def rows(taus: Ints, keys: Mapping[str, Ints]) -> pa.Table:
    """Return rows with event times in microseconds."""
    return pa.table(
        {"ts": pa.array(taus, pa.timestamp("us", "UTC")), **{name: pa.array(key) for name, key in keys.items()}}
    )


def returns(scale: float, order: str, cycles: int, seed: int = 7) -> Experiment:
    """Return paper 003's join from one of its 24 initial orders, over the full history.

    All four have the address in common, so that any may be probed next; the paper writes three of the six equalities.
    """
    names = {relation: relation.replace("_", "") for relation in ADDRESSES}
    streams = tuple(stream(names[relation], ["k"], None) for relation in ADDRESSES)
    tables = {}
    for made, table in make_streams(ReturnsInput(scale=scale, seed=seed)):
        key = table[ADDRESSES[made.name]].cast(pa.int64())
        tables[names[made.name]] = pa.table({"ts": table[time_column(made.name)], "k": key})
    chosen = [names[relation] for relation in ORDERS[order]]
    conditions = [f"{one}.k = {other}.k" for one, other in combinations(chosen, 2)]
    batches = [
        {
            name: table.slice(
                table.num_rows * number // cycles,
                table.num_rows * (number + 1) // cycles - table.num_rows * number // cycles,
            )
            for name, table in tables.items()
        }
        for number in range(cycles)
    ]
    return Experiment(
        name=f"returns {order}", query=joined(streams, conditions, chosen), streams=streams, batches=batches
    )


Partners = Callable[[int], float]
"""Partners that a row has within the window, by cycle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A chain of streams: by cycle the rows of each, and the partners on each key between neighbours. `share`: how many
    of the rows have any; skewed keys have more partners for some.
    """

    rates: tuple[Partners, ...]
    partners: tuple[Partners, ...]
    cycles: int
    window_cycles: float = 2.0
    skew: float = 0.0
    seed: int = 7


def chain(name: str, drift: Drift) -> Experiment:
    """Return a chain of streams that drifts, a second of event time a cycle."""
    names = [f"r{number}" for number in range(len(drift.rates))]
    keys = [f"k{number}" for number in range(len(drift.partners))]
    own = [[key for place, key in enumerate(keys) if place in (number - 1, number)] for number in range(len(names))]
    streams = tuple(stream(each, columns, drift.window_cycles) for each, columns in zip(names, own, strict=True))
    conditions = [f"{one}.{key} = {other}.{key}" for one, other, key in zip(names, names[1:], keys, strict=False)]
    return Experiment(
        name=name,
        query=joined(streams, conditions, names),
        streams=streams,
        batches=list(_drifting(drift, names, keys, own)),
    )


def _drifting(drift: Drift, names: list[str], keys: list[str], own: list[list[str]]) -> Iterator[Batch]:
    random = generator(drift.seed, *names)
    for cycle in range(drift.cycles):
        counts = [max(round(rate(cycle)), 1) for rate in drift.rates]
        values = {}
        for place, key in enumerate(keys):
            held = max(counts[place], counts[place + 1]) * drift.window_cycles
            values[key] = max(round(held / max(drift.partners[place](cycle), 1e-3)), 1)
        batch = {}
        for name, count, columns in zip(names, counts, own, strict=True):
            taus = cycle * _SECOND_US + np.sort(random.integers(0, _SECOND_US, count))
            batch[name] = rows(taus, {key: _keys(random, values[key], count, drift.skew) for key in columns})
        yield batch


def _keys(random: np.random.Generator, values: int, count: int, skew: float) -> Ints:
    drawn = random.random(count) ** (1.0 + skew)
    return (drawn * values).astype(np.int64)


def step_at(cycle: int, before: float, after: float) -> Partners:
    """Return a number that changes once."""
    return lambda now: before if now < cycle else after


def ramp(first: float, last: float, cycles: int) -> Partners:
    """Return a number that goes from one value to the other, by equal factors."""
    return lambda now: first * (last / first) ** min(now / max(cycles - 1, 1), 1.0)


def swing(low: float, high: float, period: int) -> Partners:
    """Return a number that goes up and down."""
    return lambda now: high if (now // max(period // 2, 1)) % 2 else low


def turning_chain(rows_per_cycle: int = 2_000, cycles: int = 40, turn: int = 15) -> Experiment:
    """Return paper 000's first experiment: every S suddenly finds a hundred partners in R and hardly any in T."""
    rate = [lambda _: float(rows_per_cycle)] * 4
    return chain(
        "turning chain",
        Drift(
            rates=tuple(rate),
            partners=(step_at(turn, 0.5, 100.0), step_at(turn, 1.0, 0.01), lambda _: 0.5),
            cycles=cycles,
            window_cycles=5.0,
        ),
    )


def flooded_chain(rows_per_cycle: int = 10, cycles: int = 24, flood: int = 8) -> Experiment:
    """Return paper 000's second experiment: R comes to arrive at a thousand times the rate of the others, of which
    hardly any join each other any more, while each of R finds two in S.
    """
    others = [lambda _: float(rows_per_cycle)] * 3
    return chain(
        "flooded chain",
        Drift(
            rates=(step_at(flood, float(rows_per_cycle), 1_000.0 * rows_per_cycle), *others),
            partners=(step_at(flood, 2.0, 2_000.0), step_at(flood, 8.0, 0.3), step_at(flood, 8.0, 0.3)),
            cycles=cycles,
            window_cycles=5.0,
        ),
    )


def random_drift(seed: int, cycles: int = 40, rate: float = 1_000.0) -> Experiment:
    """Return a random chain of three to five streams, of which rates and partners change in some way, over windows of
    five cycles; of some the keys are skewed.
    """
    random = np.random.default_rng([seed, 1])
    relations = int(random.integers(3, 6))

    def changing(low: float, high: float) -> Partners:
        one, other = (float(low * (high / low) ** random.random()) for _ in range(2))
        kind = int(random.integers(0, 4))
        if kind == 0:
            return lambda _: one
        if kind == 1:
            return step_at(int(random.integers(5, cycles - 5)), one, other)
        if kind == 2:
            return ramp(one, other, cycles)
        return swing(one, other, int(random.choice([10, 20])))

    return chain(
        f"random drift {seed}",
        Drift(
            rates=tuple(changing(rate / 4, rate * 2) for _ in range(relations)),
            partners=tuple(changing(0.05, 8.0) for _ in range(relations - 1)),
            cycles=cycles,
            window_cycles=5.0,
            skew=float(random.choice([0.0, 0.0, 1.0])),
            seed=seed,
        ),
    )


__all__ = [
    "Drift",
    "Experiment",
    "chain",
    "flooded_chain",
    "ramp",
    "random_drift",
    "returns",
    "step_at",
    "swing",
    "turning_chain",
]
