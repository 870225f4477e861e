"""A mixed-integer linear program in arrays, and the rows and columns of one while they are gathered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]

NONE = -1
"""The column of what has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearProgram:
    """min cost·v, lower ≤ v ≤ upper, row_lower ≤ A v ≤ row_upper, with A by rows: `start`, `index`, `value`."""

    cost: Floats
    lower: Floats
    upper: Floats
    is_integer: Bools
    row_lower: Floats
    row_upper: Floats
    start: Ints
    index: Ints
    value: Floats


class Columns:
    """Columns while they are numbered."""

    def __init__(self) -> None:
        self.count = 0

    def block(self, size: int, which: Ints) -> Ints:
        """Return by index the new columns of those in `which`, -1 for others."""
        columns = np.full(size, NONE)
        columns[which] = np.arange(self.count, self.count + len(which))
        self.count += len(which)
        return columns


class Rows:
    """Rows while they are gathered: blocks of (row, column, value), and the bounds of each row."""

    def __init__(self) -> None:
        self.count = 0
        self._rows: list[Ints] = [np.zeros(0, dtype=np.int64)]
        self._columns: list[Ints] = [np.zeros(0, dtype=np.int64)]
        self._values: list[Floats] = [np.zeros(0)]
        self._lower: list[Floats] = [np.zeros(0)]
        self._upper: list[Floats] = [np.zeros(0)]

    def open(self, count: int, lower: float, upper: float) -> Ints:
        """Add rows and return their numbers."""
        self._lower.append(np.full(count, lower))
        self._upper.append(np.full(count, upper))
        self.count += count
        return np.arange(self.count - count, self.count)

    def bound(self, rows: Ints, value: float) -> None:
        """Make the sums of rows opened last equal to a value."""
        first = self.count - len(self._lower[-1])
        self._lower[-1][rows - first] = value
        self._upper[-1][rows - first] = value

    def put(self, rows: Ints, columns: Ints, value: float | Floats) -> None:
        """Add one entry to each of these rows."""
        self._rows.append(rows)
        self._columns.append(columns)
        self._values.append(np.broadcast_to(np.asarray(value, dtype=np.float64), rows.shape))

    def matrix(self) -> tuple[Floats, Floats, Ints, Ints, Floats]:
        """Return lower and upper bounds, and the matrix by rows."""
        rows, columns = np.concatenate(self._rows), np.concatenate(self._columns)
        order = np.lexsort((columns, rows))
        start = np.searchsorted(rows[order], np.arange(self.count + 1))
        values = np.concatenate(self._values)[order]
        return np.concatenate(self._lower), np.concatenate(self._upper), start, columns[order], values
