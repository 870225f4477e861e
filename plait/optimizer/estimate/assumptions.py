"""What the optimizer assumes where statistics are silent. Nothing else in the optimizer invents a number."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """Stand-ins for unknown numbers.

    Tables are usually dimensions joined by their key, so each of their keys is taken to be unique; a key of a stream is
    taken to repeat ten times inside a window. `conjunct_share`: rows that satisfy one selection predicate.
    Of all pairs of rows `one_sided_share` satisfy an inequality, `band_share` lie in a band, `formula_share` satisfy
    any other predicate of two relations: the usual guesses. `column_bytes`: what a stored value takes.
    """

    rate_rows_per_s: float = 1_000.0
    unbounded_stream_rows: float = 100_000.0
    table_rows: float = 10_000.0
    stream_distinct_share: float = 0.1
    table_distinct_share: float = 1.0
    conjunct_share: float = 0.25
    one_sided_share: float = 1 / 3
    band_share: float = 0.05
    formula_share: float = 0.2
    column_bytes: float = 8.0


ASSUMED = Assumptions()
