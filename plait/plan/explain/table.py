"""Tables of text: the first column to the left, numbers to the right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def aligned(rows: Sequence[Sequence[str]], *, gap: str = "  ", left: int = 1) -> Iterator[str]:
    """Yield one line a row; the first `left` columns are to the left.

    >>> print(*aligned([["", "rows"], ["r", "1,000"], ["orders", "5"]]), sep="\\n")
             rows
    r       1,000
    orders      5
    """
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield gap.join(cells).rstrip()
