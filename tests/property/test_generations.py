"""Tables change from batch to batch, hot keys are split and merged: what is found stays the same.

Partitions are simulated in one process, each a list of stored rows that knows nothing of others. Two sources r and s
are joined by two queries, on a and on b; a third counts rows of r by b. Every row is sent once to each distinct
partition for all that wants it there, and probes what was stored before it under every generation.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.kernels.dispatching import dispatch
from plait.kernels.hashing import key_group_of
from plait.plan.key_groups import Generation, KeyGroupTable, Split, groups_with

CASES = int(os.environ.get("PLAIT_CASES", "40"))
KEYS = 4
JOINS = ("a", "b")
Rows = list[tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """`batches`: rows of r and of s, (number, a, b); `tables`: of each batch a generation, often that of the last."""

    batches: list[dict[str, Rows]]
    generations: list[Generation]
    partitions: int


@st.composite
def drawn(draw: st.DrawFn) -> Drawn:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    partitions, count = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    batches: list[dict[str, Rows]] = []
    generations: list[Generation] = []
    number = 0
    for batch in range(count):
        batches.append({})
        for source in "rs":
            size = int(rng.integers(0, 6))
            rows = [(number + at, *(int(key) for key in rng.integers(0, KEYS, 2))) for at in range(size)]
            number += size
            batches[-1][source] = rows
        if not generations or draw(st.booleans()):
            tables = tuple(_table(rng, operator, partitions) for operator in (*JOINS, "count"))
            generations.append(Generation(first_batch=batch, tables=tables))
    return Drawn(batches=batches, generations=generations, partitions=partitions)


def _table(rng: np.random.Generator, operator: str, partitions: int) -> KeyGroupTable:
    groups = int(rng.integers(1, 5))
    hot = rng.permutation(KEYS)[: rng.integers(0, 3)]
    splits = tuple(Split(key=int(key), spread="rs"[rng.integers(2)], parts=int(rng.integers(2, 4))) for key in hot)
    if operator == "count":
        splits = tuple(split for split in splits if split.spread == "r")
    placed = rng.integers(0, partitions, groups_with(splits, groups))
    return KeyGroupTable(operators=(operator,), groups=groups, partitions=tuple(placed.tolist()), splits=splits)


@dataclass(slots=True)
class Partition:
    """What lies in one partition: (join, source, generation) → rows, and counts by key."""

    stored: dict[tuple[str, str, int], Rows] = field(default_factory=dict)
    counts: Counter[int] = field(default_factory=Counter)


def _columns(rows: Rows, operator: str, table: KeyGroupTable, source: str) -> np.ndarray:
    keys = np.array([row[1 if operator == "a" else 2] for row in rows], dtype=np.int64)
    numbers = np.array([row[0] for row in rows], dtype=np.int64)
    return table.destinations(keys, key_group_of(keys, table.groups), numbers, source)


def _sent(rows: Rows, wanted: list[tuple[object, np.ndarray]], partitions: int) -> list[tuple[Rows, int, object]]:
    """Send rows once to each distinct partition; return (the row, the partition, what it is wanted for there)."""
    columns = np.concatenate([matrix for _, matrix in wanted], axis=1)
    of_column = np.concatenate([np.full(matrix.shape[1], place) for place, (_, matrix) in enumerate(wanted)])
    sent = dispatch(columns, 1 << of_column, partitions)
    return [
        (rows[row], there, [name for place, (name, _) in enumerate(wanted) if bits >> place & 1])
        for row, there, bits in zip(sent.row.tolist(), sent.partition.tolist(), sent.bits.tolist(), strict=True)
    ]


def run(case: Drawn) -> tuple[Counter[tuple[str, int, int]], Counter[int]]:
    """Return the pairs each join finds, and the counts by key."""
    partitions = [Partition() for _ in range(case.partitions)]
    found: Counter[tuple[str, int, int]] = Counter()
    for batch, arriving in enumerate(case.batches):
        governing = max(at for at, each in enumerate(case.generations) if each.first_batch <= batch)
        live = case.generations[: governing + 1]
        for source, rows in arriving.items():
            if not rows:
                continue
            probing = [
                ((join, at), _columns(rows, join, generation.table_of(join), source))
                for join in JOINS
                for at, generation in enumerate(live)
            ]
            for row, there, reasons in _sent(rows, probing, case.partitions):
                for join, at in reasons:
                    for other in partitions[there].stored.get((join, "s" if source == "r" else "r", at), []):
                        if row[1 if join == "a" else 2] == other[1 if join == "a" else 2]:
                            pair = (row, other) if source == "r" else (other, row)
                            found[join, pair[0][0], pair[1][0]] += 1
            keeping = [(each, _columns(rows, each, live[-1].table_of(each), source)) for each in JOINS]
            if source == "r":
                keeping.append(("count", _columns(rows, "count", live[-1].table_of("count"), source)))
            for row, there, reasons in _sent(rows, keeping, case.partitions):
                for each in reasons:
                    if each == "count":
                        partitions[there].counts[row[2]] += 1
                    else:
                        partitions[there].stored.setdefault((each, source, governing), []).append(row)
    return found, sum((partition.counts for partition in partitions), Counter())


def oracle(case: Drawn) -> tuple[Counter[tuple[str, int, int]], Counter[int]]:
    """Nested loops over all rows of both sources."""
    left = [row for batch in case.batches for row in batch["r"]]
    right = [row for batch in case.batches for row in batch["s"]]
    pairs = Counter(
        (join, one[0], other[0])
        for one in left
        for other in right
        for column, join in enumerate(JOINS, start=1)
        if one[column] == other[column]
    )
    return pairs, Counter(row[2] for row in left)


@given(case=drawn())
@settings(max_examples=CASES, deadline=None)
def test_joins_and_counts_are_those_of_the_input_under_any_tables_generations_and_hot_keys(case: Drawn) -> None:
    assert run(case) == oracle(case)
