"""Random traffic, and what a choice costs by loops written from equations 4 to 10."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import strategies as st

from plait.optimizer.linear.linear_program import Ints
from plait.optimizer.partitioning.overlap import Operator, Sampled, aligned, counted
from plait.optimizer.partitioning.traffic import Traffic
from plait.plan.key_groups import UNWANTED


@st.composite
def traffics(draw: st.DrawFn, most_groups: int = 3, most_partitions: int = 3) -> Traffic:
    """Draw two sources and up to three operators, one of which may join them; rows counted, or coefficients."""
    partitions = draw(st.integers(2, most_partitions))
    inputs = draw(st.lists(st.sampled_from([("r",), ("s",), ("r", "s")]), min_size=1, max_size=3))
    operators = [
        Operator(name=f"q{place}", sources=sources, groups=draw(st.integers(1, most_groups)))
        for place, sources in enumerate(inputs)
    ]
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    is_uniform = draw(st.booleans())
    latency = {
        source: np.ones(partitions) if is_uniform else rng.integers(1, 4, partitions).astype(float) for source in "rs"
    }
    processing = draw(st.sampled_from([0.0, 0.5, 1.0, 4.0]))
    if draw(st.booleans()):
        return counted(operators, {source: sampled(operators, source, rng) for source in "rs"}, latency, processing)
    drawn = [(operator, source) for operator in operators for source in operator.sources]
    cards = {(each.name, source): rng.integers(0, 9, each.groups).astype(float) for each, source in drawn}
    shared = {(each.name, source): rng.choice([0.5, 1.0], each.groups) for each, source in drawn}
    return aligned(operators, cards, shared, latency, processing)


def sampled(operators: list[Operator], source: str, rng: np.random.Generator, rows: int = 12) -> Sampled:
    taking = [operator for operator in operators if source in operator.sources]
    columns = [rng.integers(UNWANTED, operator.groups, rows) for operator in taking]
    return Sampled(
        operators=tuple(operator.name for operator in taking),
        key_groups=np.stack(columns, axis=1) if columns else np.zeros((0, 0), dtype=np.int64),
        rows_each=float(rng.integers(1, 3)),
    )


def cost_by_loops(traffic: Traffic, choice: Ints) -> float:
    total = 0.0
    for source in range(traffic.sources):
        sent, processed = 0.0, [0.0] * traffic.partitions
        for row_class in np.flatnonzero(traffic.source == source):
            pins = range(traffic.start[row_class], traffic.start[row_class + 1])
            for partition in range(traffic.partitions):
                here = [traffic.rows[pin] for pin in pins if choice[traffic.group[pin]] == partition]
                sent += max(here, default=0.0) * traffic.latency[source, partition]
        for group in range(traffic.groups):
            processed[choice[group]] += traffic.load[source, group] * traffic.latency[source, choice[group]]
        total += sent + max(processed) * traffic.processing
    return float(total)


def least_cost(traffic: Traffic) -> float:
    return min(
        cost_by_loops(traffic, np.array(choice, dtype=np.int64))
        for choice in product(range(traffic.partitions), repeat=traffic.groups)
    )
