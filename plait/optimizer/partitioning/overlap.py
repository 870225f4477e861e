"""How the rows that key groups want overlap (SharedWith of paper 001), as row classes.

Three ways to them: counted on a sample of rows, exactly, for any number of operators; from coefficients of equally
numbered key groups, as the paper's equations are written; and from pairs of operators, where more is not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from plait.errors import OptionError
from plait.optimizer.linear.linear_program import Floats, Ints
from plait.optimizer.partitioning.traffic import Traffic
from plait.plan.key_groups import UNWANTED, KeyGroupTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """What wants rows by a key of its own: an aggregate; the store of a join, which has two `sources`; or what stands
    for several that have one table because they want the same sources by the same keys.
    """

    name: str
    sources: tuple[str, ...]
    groups: int = 64

    def __post_init__(self) -> None:
        if not self.sources or self.groups < 1:
            raise OptionError(
                f"operator '{self.name}': expected at least one source and one key group, "
                f"found {len(self.sources)} sources and {self.groups} key groups"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """Rows of a source that were looked at: `key_groups[r, i]` is the key group that row r falls into for the i-th of
    the `operators`, or `UNWANTED`. Each stands for `rows_each` of the source's rows.
    """

    operators: tuple[str, ...]
    key_groups: Ints
    rows_each: float = 1.0


def first_groups(operators: Sequence[Operator]) -> Ints:
    """Return the number of each operator's first key group, and of all key groups at the end."""
    return np.concatenate(([0], np.cumsum([operator.groups for operator in operators]))).astype(np.int64)


def owners(operators: Sequence[Operator]) -> Ints:
    """Return the operator of each key group."""
    return np.repeat(np.arange(len(operators)), [operator.groups for operator in operators])


def tables(operators: Sequence[Operator], choice: Ints) -> tuple[KeyGroupTable, ...]:
    """Return the tables of a choice, one for each operator.

    >>> [table.partitions for table in tables([Operator(name="q", sources=("r",), groups=2)], np.array([1, 0]))]
    [(1, 0)]
    """
    bounds = pairwise(first_groups(operators).tolist())
    return tuple(
        KeyGroupTable(operators=(operator.name,), groups=operator.groups, partitions=tuple(choice[low:high].tolist()))
        for operator, (low, high) in zip(operators, bounds, strict=True)
    )


def counted(
    operators: Sequence[Operator], samples: Mapping[str, Sampled], latency: Mapping[str, Floats], processing: float
) -> Traffic:
    """Return the traffic of sampled rows, one sample for each source; `latency`: of each source to the partitions."""
    number = {operator.name: place for place, operator in enumerate(operators)}
    first = first_groups(operators)
    sources, sizes, groups, rows = [], [np.zeros(1, dtype=np.int64)], [], []
    load = np.zeros((len(samples), int(first[-1])))
    for place, sample in enumerate(samples.values()):
        classes, times = np.unique(sample.key_groups, axis=0, return_counts=True)
        wanted = classes != UNWANTED
        times, classes, wanted = times[wanted.any(axis=1)], classes[wanted.any(axis=1)], wanted[wanted.any(axis=1)]
        offsets = np.array([first[number[name]] for name in sample.operators], dtype=np.int64)
        groups.append((classes + offsets)[wanted])
        rows.append(np.repeat(times * sample.rows_each, wanted.sum(axis=1)).astype(np.float64))
        sizes.append(wanted.sum(axis=1))
        sources.append(np.full(len(classes), place))
        np.add.at(load[place], groups[-1], rows[-1])
    return Traffic(
        source=np.concatenate(sources),
        start=np.cumsum(np.concatenate(sizes)),
        group=np.concatenate(groups),
        rows=np.concatenate(rows),
        load=load,
        latency=np.stack([latency[source] for source in samples]),
        processing=processing,
        operator=owners(operators),
    )


def aligned(
    operators: Sequence[Operator],
    cards: Mapping[tuple[str, str], Floats],
    shared: Mapping[tuple[str, str], Floats],
    latency: Mapping[str, Floats],
    processing: float,
) -> Traffic:
    """Return the traffic of the paper's equation 4 as it is written: key groups of one number share what they draw.

    `cards` and `shared` by (operator, source): Card and SharedWith of each of its key groups.
    """
    first, names = first_groups(operators), [operator.name for operator in operators]
    sources = list(latency)
    load = np.zeros((len(sources), int(first[-1])))
    pins: list[tuple[int, int, int, float]] = []
    for (operator, source), card in cards.items():
        place, offset = sources.index(source), int(first[names.index(operator)])
        load[place, offset : offset + len(card)] = card
        wanted = card * shared[operator, source]
        pins += [(place, group, offset + group, float(wanted[group])) for group in range(len(card))]
    return _of_pins(pins, load, np.stack([latency[source] for source in sources]), processing, owners(operators))


def _of_pins(
    pins: list[tuple[int, int, int, float]], load: Floats, latency: Floats, processing: float, operator: Ints
) -> Traffic:
    """Return the traffic of pins (source, class, group, rows); a class is known by source and number."""
    pins = sorted(pins)
    names = [pin[:2] for pin in pins]
    heads = [at for at, name in enumerate(names) if at == 0 or name != names[at - 1]]
    return Traffic(
        source=np.array([names[at][0] for at in heads], dtype=np.int64),
        start=np.array([*heads, len(pins)], dtype=np.int64),
        group=np.array([pin[2] for pin in pins], dtype=np.int64),
        rows=np.array([pin[3] for pin in pins], dtype=np.float64),
        load=load,
        latency=latency,
        processing=processing,
        operator=operator,
    )
