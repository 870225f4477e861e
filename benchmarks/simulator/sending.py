"""What is sent where, by counts: operators that each partition by themselves, and shared tables, over the same rows.

A *feed* is the rows of a source that one operator takes, with the key it wants them by. All of a source's feeds have
one entry a row. What is compared:

- *alone*: every feed is a copy of its own, as every operator of an engine sends it;
- *kept in place*: as Spark does it, a feed is not sent that lies by this key already where it was made;
- *shared*: a row goes once to each distinct partition that some feed needs it in, with the columns that are needed
  there, and a set of operators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from plait.kernels.dispatching import dispatch
from plait.kernels.hashing import key_group_of
from plait.optimizer.linear.linear_program import Bools, Ints
from plait.optimizer.partitioning import Operator, Sampled, TableOptions, Traffic, choose_tables, counted
from plait.optimizer.partitioning.same_keys import tables_of, united_groups
from plait.plan.key_groups import UNWANTED

GROUPS = 64
_HEADER_BYTES = 8
_SAMPLE_ROWS = 16_000
_BITS = 63


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """`key` (int64) and `taken` (bool) have an entry for each row of the source; `key_name` tells keys apart.

    `columns` are what the operator needs of a row besides. `stays`: the rows lie by this key where they were made.
    """

    operator: str
    source: str
    key_name: str
    key: Ints
    taken: Bools
    columns: frozenset[str]
    stays: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """Rows and bytes sent, and the feeds' rows that each partition processes."""

    rows: int
    bytes: int
    processed: tuple[int, ...]

    @property
    def balance(self) -> float:
        """The largest partition by the mean."""
        mean = sum(self.processed) / len(self.processed)
        return max(self.processed) / mean if mean else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """The table of each operator, and the partition of each key group of each table."""

    of: Mapping[str, int]
    partitions: Ints
    count: int
    bound_gap: float


def sent_alone(feeds: Sequence[Feed], widths: Mapping[str, int], partitions: int, *, in_place: bool = False) -> Sent:
    """Return what is sent if each operator partitions by itself, by the hash of its key."""
    rows = size = 0
    processed = np.zeros(partitions, dtype=np.int64)
    for feed in feeds:
        taken = int(feed.taken.sum())
        if not (in_place and feed.stays):
            rows += taken
            size += taken * (_HEADER_BYTES + sum(widths[column] for column in feed.columns))
        processed += np.bincount(key_group_of(feed.key[feed.taken], partitions), minlength=partitions)
    return Sent(rows=rows, bytes=size, processed=tuple(processed.tolist()))


def choose(feeds: Sequence[Feed], partitions: int, options: TableOptions, seed: int = 1) -> Tables:
    """Return tables chosen from a sample of the rows."""
    traffic, of = sampled_traffic(feeds, partitions, options_processing(partitions), seed)
    chosen = choose_tables(traffic, options)
    return Tables(
        of=of,
        partitions=chosen.choice.reshape(-1, GROUPS),
        count=partitions,
        bound_gap=chosen.gap,
    )


def options_processing(partitions: int) -> float:
    """Return Lat_proc: processing at even loads is to weigh as much as sending, or loads would not be kept even."""
    return float(partitions)


def sampled_traffic(
    feeds: Sequence[Feed], partitions: int, processing: float, seed: int = 1
) -> tuple[Traffic, dict[str, int]]:
    """Return the traffic of a sample of the feeds, and the table of each operator: one for those of the same keys."""
    inputs: dict[str, list[tuple[str, str]]] = {}
    for feed in feeds:
        inputs.setdefault(feed.operator, []).append((feed.source, feed.key_name))
    operators = [
        Operator(name=name, sources=tuple(dict.fromkeys(source for source, _ in wanted)), groups=GROUPS)
        for name, wanted in inputs.items()
    ]
    of = tables_of(inputs)
    random = np.random.default_rng(seed)
    samples = {source: _sample(own, random) for source, own in by_source(feeds).items()}
    latency = {source: np.ones(partitions) for source in samples}
    traffic = counted(operators, samples, latency, processing)
    return traffic.united(united_groups(operators, of)), of


def by_source(feeds: Sequence[Feed]) -> dict[str, list[Feed]]:
    """Return the feeds of each source."""
    found: dict[str, list[Feed]] = {}
    for feed in feeds:
        found.setdefault(feed.source, []).append(feed)
    return found


def _sample(feeds: Sequence[Feed], random: np.random.Generator) -> Sampled:
    count = len(feeds[0].key)
    rows = random.permutation(count)[:_SAMPLE_ROWS]
    columns = [np.where(feed.taken[rows], key_group_of(feed.key[rows], GROUPS), UNWANTED) for feed in feeds]
    return Sampled(
        operators=tuple(feed.operator for feed in feeds),
        key_groups=np.stack(columns, axis=1),
        rows_each=count / max(len(rows), 1),
    )


def sent_shared(feeds: Sequence[Feed], widths: Mapping[str, int], tables: Tables) -> Sent:
    """Return what is sent if a row goes once to each distinct partition that needs it."""
    rows = size = 0
    processed = np.zeros(tables.count, dtype=np.int64)
    for own in by_source(feeds).values():
        there = np.stack([_destinations(feed, tables) for feed in own], axis=1)
        processed += np.bincount(there[there != UNWANTED], minlength=tables.count)
        names = sorted({column for feed in own for column in feed.columns})
        sent = 0
        for first in range(0, max(len(names), 1), _BITS):
            word = names[first : first + _BITS]
            needed = dispatch(there, np.array([_bits(feed, word) for feed in own]), tables.count).bits
            size += sum(widths[name] * int((needed >> place & 1).sum()) for place, name in enumerate(word))
            sent = len(needed)
        rows += sent
        told = (len(own) + 7) // 8 if len(own) > 1 else 0  # the set of operators
        size += sent * (_HEADER_BYTES + told)
    return Sent(rows=rows, bytes=size, processed=tuple(processed.tolist()))


def _destinations(feed: Feed, tables: Tables) -> Ints:
    partitions = tables.partitions[tables.of[feed.operator]][key_group_of(feed.key, GROUPS)]
    return np.where(feed.taken, partitions, UNWANTED)


def _bits(feed: Feed, names: Sequence[str]) -> int:
    return sum(1 << place for place, name in enumerate(names) if name in feed.columns)


def seconds(sent: Sent, nodes: int, bytes_per_s: float) -> float:
    """Return how long a link of this bandwidth into each node takes, rows and partitions being spread evenly.

    One row in `nodes` is where it is wanted already.
    """
    fullest = sent.balance / nodes
    return sent.bytes * (nodes - 1) / nodes * fullest / bytes_per_s
