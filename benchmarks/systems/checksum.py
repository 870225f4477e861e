"""A checksum of a multiset of rows, with the same value in Spark SQL, DuckDB SQL and NumPy.

A row hash is a polynomial in the row's columns modulo a prime. Its sum over the rows is blind to the order of the
rows, but also to members exchanged between rows, because it is linear in each column. So the squares of the row
hashes are summed too: they are not. All arithmetic stays within 64 bits, in each of the three languages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PRIME = 2_147_483_647
_FACTOR = 1_000_003


@dataclass(frozen=True, slots=True, kw_only=True)
class Checksum:
    """`rows`, the sum of the row hashes, and the sum of their squares modulo the prime."""

    rows: int = 0
    first: int = 0
    second: int = 0

    def __add__(self, other: Checksum) -> Checksum:
        return Checksum(rows=self.rows + other.rows, first=self.first + other.first, second=self.second + other.second)

    @classmethod
    def of_sums(cls, sums: Sequence[int | None]) -> Checksum:
        """Return the checksum from a row of `aggregates`; the sums over no rows are NULL."""
        rows, first, second = (int(value or 0) for value in sums)
        return cls(rows=rows, first=first, second=second)


def hash_sql(columns: Iterable[str]) -> str:
    """Return the row hash as SQL over non-negative integer expressions."""
    folded = "0"
    for column in columns:
        folded = f"(({folded} * {_FACTOR} + ({column}) % {PRIME}) % {PRIME})"
    return f"CAST({folded} AS BIGINT)"


def aggregates(columns: Iterable[str]) -> tuple[str, str, str]:
    """Return the three aggregates of a checksum as SQL, in the order `Checksum.of_sums` takes them."""
    row_hash = hash_sql(columns)
    return "count(*)", f"sum({row_hash})", f"sum(({row_hash} * {row_hash}) % {PRIME})"


def checksum(columns: Sequence[NDArray[np.int64]]) -> Checksum:
    """Return the checksum of rows given as non-negative int64 columns of equal length."""
    folded: NDArray[np.int64] = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        folded = (folded * _FACTOR + column % PRIME) % PRIME
    return Checksum(rows=len(folded), first=int(folded.sum()), second=int(((folded * folded) % PRIME).sum()))
