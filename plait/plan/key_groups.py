"""Tables: which partition the rows of each key group go to, for an operator or several that want the same keys.

What must hold, whatever the tables say:

1. An operator has one table in a generation, for all its inputs: rows that may join are in one partition.
2. A row is stored under the generation of its batch, and stays where that put it.
3. A row probes what was stored under a generation where that generation's table sends it. It may be sent to one
   partition for several generations; there it is compared with what these have stored there, and nothing else.

The third is more than saving work. Of a hot key, rows of one source lie in every part, so a row that probes them must
meet them in one part alone; sent to a second one for another generation, it would meet them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plait.errors import InvalidPlanError

UNWANTED = -1
"""The key group of a row that an operator does not take: its selection does not hold, or its key is NULL."""

_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A hot key: its rows of source `spread` go round `parts`, those of another source to each of them."""

    key: int
    spread: str
    parts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyGroupTable:
    """The partition of each of `groups` ranges of hashes, then of each part of the hot keys in `splits`, in order."""

    operators: tuple[str, ...]
    groups: int
    partitions: tuple[int, ...]
    splits: tuple[Split, ...] = ()

    def __post_init__(self) -> None:
        expected = groups_with(self.splits, self.groups)
        if len(self.partitions) != expected or min(self.partitions, default=0) < 0:
            raise InvalidPlanError(
                f"table of {', '.join(self.operators)}: expected a partition for each of {expected} key groups, "
                f"found {len(self.partitions)}, the lowest of them {min(self.partitions, default=0)}"
            )

    def destinations(self, keys: _Ints, key_groups: _Ints, sequence: _Ints, source: str) -> _Ints:
        """Return the partitions that rows of a source are stored in, int64[rows, columns], `UNWANTED` in between.

        In the same ones they probe what this table has stored of another source. `key_groups`: the range of each row's
        hash; `sequence` numbers the rows, so that spread ones take turns.
        """
        table = np.array((*self.partitions, UNWANTED), dtype=np.int64)  # the last for -1, what is not wanted
        return table[wanted_groups(keys, key_groups, sequence, source, self.groups, self.splits)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """The tables that govern from a batch on, one for each operator."""

    first_batch: int
    tables: tuple[KeyGroupTable, ...]

    def __post_init__(self) -> None:
        named = [operator for table in self.tables for operator in table.operators]
        twice = sorted({operator for operator in named if named.count(operator) > 1})
        if twice:
            raise InvalidPlanError(f"generation of batch {self.first_batch}: two tables for {', '.join(twice)}")

    def table_of(self, operator: str) -> KeyGroupTable:
        """Return an operator's table."""
        return next(table for table in self.tables if operator in table.operators)


def groups_with(splits: Sequence[Split], groups: int) -> int:
    """Return how many key groups there are with the parts of hot keys.

    >>> groups_with([Split(key=7, spread="r", parts=3)], 64)
    67
    """
    return groups + sum(split.parts for split in splits)


def wanted_groups(
    keys: _Ints, key_groups: _Ints, sequence: _Ints, source: str, groups: int, splits: Sequence[Split]
) -> _Ints:
    """Return the key groups that each row is wanted in, int64[rows, columns]; `UNWANTED` fills rows that want fewer.

    There is one column unless rows of hot keys go to every part.
    """
    copies = max([1, *(split.parts for split in splits if split.spread != source)])
    wanted = np.full((len(keys), copies), UNWANTED, dtype=np.int64)
    wanted[:, 0] = key_groups
    first = groups
    for split in splits:
        rows = np.flatnonzero((keys == split.key) & (key_groups != UNWANTED))
        if split.spread == source:
            wanted[rows, 0] = first + sequence[rows] % split.parts
        else:
            wanted[rows, : split.parts] = first + np.arange(split.parts)
        first += split.parts
    return wanted
