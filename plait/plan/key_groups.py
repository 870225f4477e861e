"""Tables: which partition the rows of each key group go to, for an operator or several that want the same keys.

What must hold, whatever the tables say:

1. An operator has one table in a generation, for all its inputs: rows that may join are in one partition.
2. A row is stored under the generation of its batch, and stays where that put it.
3. A row probes what was stored under a generation where that generation's table sends it. It may be sent to one
   partition for several generations; there it is compared with what these have stored there, and nothing else.

The third is more than saving work. Of a hot key, rows of one source lie in every part, so a row that probes them must
meet them in one part alone; sent to a second one for another generation, it would meet them again.

A row that several operators want has one **home**, in the partition of the first of them; what lies elsewhere are
copies, which nothing but probing looks at. So a store is the same bag of rows whatever the tables say.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
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
        return self._at(wanted_groups(keys, key_groups, sequence, source, self.groups, self.splits))

    def meeting_places(self, keys: _Ints, key_groups: _Ints, sequence: _Ints, probed: str) -> _Ints:
        """Return the partitions where keys meet all that this table has stored of source `probed`, each row once;
        int64[rows, columns], `UNWANTED` in between. Where the rows of a hot key lie in every part, any part will do;
        `sequence` says which.
        """
        spread = [split for split in self.splits if split.spread == probed]
        return self._at(_groups_of(keys, key_groups, sequence, self.groups, self.splits, lambda split: split in spread))

    def _at(self, key_groups: _Ints) -> _Ints:
        table = np.array((*self.partitions, UNWANTED), dtype=np.int64)  # the last for -1, what is not wanted
        return table[key_groups]


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """A store by one of its keys, an operator of a table: where a row of it is kept so that who knows the key finds it.

    Rows are sent there for which one of the `selections` holds (texts; "true": all); of others that is not known.
    """

    store: str
    key: str
    selections: tuple[str, ...]

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"{self.store} by {self.key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """The tables that govern from a batch on, one for each operator. `accesses`: the operators that are stores by a
    key, those of one store side by side, by name; `partitions`: how many there are to go to.
    """

    first_batch: int
    tables: tuple[KeyGroupTable, ...]
    accesses: tuple[Access, ...] = ()
    partitions: int = 1

    def __post_init__(self) -> None:
        named = [operator for table in self.tables for operator in table.operators]
        twice = sorted({operator for operator in named if named.count(operator) > 1})
        if twice:
            raise InvalidPlanError(f"generation of batch {self.first_batch}: two tables for {', '.join(twice)}")
        without = sorted({access.name for access in self.accesses}.difference(named))
        if without:
            raise InvalidPlanError(f"generation of batch {self.first_batch}: no table for {', '.join(without)}")
        highest = max((max(table.partitions, default=0) for table in self.tables), default=0)
        if self.accesses and highest >= self.partitions:
            raise InvalidPlanError(
                f"generation of batch {self.first_batch}: a table names partition {highest}, there are "
                f"{self.partitions}"
            )

    def table_of(self, operator: str) -> KeyGroupTable:
        """Return an operator's table."""
        return next(table for table in self.tables if operator in table.operators)

    def accesses_of(self, store: str) -> tuple[Access, ...]:
        """Return how a store is reached, in order: the bit of the n-th is ``2 << n``, that of a row at home is 1."""
        return tuple(access for access in self.accesses if access.store == store)

    def access(self, store: str, key: str, selections: Collection[str]) -> Access | None:
        """Return how rows of a store, for which one of these selections holds, are reached by a key; None if they are
        not, so that they have to be looked for at home.
        """
        for access in self.accesses:
            if access.store == store and access.key == key:
                return access if "true" in access.selections or set(selections) <= set(access.selections) else None
        return None

    def bit_of(self, access: Access) -> int:
        """Return the bit that tells of a row in some partition that it is there for this access."""
        return 2 << self.accesses_of(access.store).index(access)

    def splits_keys_of(self, store: str) -> bool:
        """Tell whether a hot key of a store is split, so that where a row lies does not follow from its keys alone."""
        return any(self.table_of(access.name).splits for access in self.accesses_of(store))

    def says_the_same(self, other: Generation) -> bool:
        """Tell whether rows lie where another generation would have put them."""
        return (self.tables, self.accesses, self.partitions) == (other.tables, other.accesses, other.partitions)


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
    return _groups_of(keys, key_groups, sequence, groups, splits, lambda split: split.spread != source)


def _groups_of(
    keys: _Ints,
    key_groups: _Ints,
    sequence: _Ints,
    groups: int,
    splits: Sequence[Split],
    goes_everywhere: Callable[[Split], bool],
) -> _Ints:
    """Return the key group of each row, that of a hot key the part whose turn it is, or every part."""
    copies = max([1, *(split.parts for split in splits if goes_everywhere(split))])
    wanted = np.full((len(keys), copies), UNWANTED, dtype=np.int64)
    wanted[:, 0] = key_groups
    first = groups
    for split in splits:
        rows = np.flatnonzero((keys == split.key) & (key_groups != UNWANTED))
        if goes_everywhere(split):
            wanted[rows, : split.parts] = first + np.arange(split.parts)
        else:
            wanted[rows, 0] = first + sequence[rows] % split.parts
        first += split.parts
    return wanted
