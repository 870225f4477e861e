"""Names of the columns that Plait adds to those of the user. ``#`` keeps them apart from any usual column name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from plait.plan.columns import BITS, SELECTED, TAU

UNTIL = "#until"
"""In intermediate stores the smallest τ + W among the parts: the largest τ that can still join the tuple."""

ROW = "#row"
"""Stands in where no column is needed: Arrow and Spark forget how many rows there are without any."""

SENT = "#sent"
"""Of a row that arrives where tables sent it: the partition, whether it is at home there, and why it is there at all
(`plait.operators.ingest.placed_rows`).
"""

SERVES = "#serves"
"""In buckets of stores with split keys: the accesses that a row is there for (`plait.plan.key_groups.Generation`)."""

SELECTIONS_PER_WORD = 63


def bits_name(word: int) -> str:
    """Return the name of query-set word `word`: bit i of word w belongs to selection ``63 w + i``."""
    return BITS if word == 0 else f"{BITS}{word}"


def bit_of(selections: tuple[str, ...], selection: str) -> tuple[str, int]:
    """Return (word column, mask) of a selection among the `selections` of a layout."""
    word, bit = divmod(places_of(selections)[selection], SELECTIONS_PER_WORD)
    return bits_name(word), 1 << bit


@lru_cache(maxsize=1 << 10)  # of layouts there are few, and each is asked for its bits by every step
def places_of(selections: tuple[str, ...]) -> Mapping[str, int]:
    """Return the place of each selection of a layout."""
    return {selection: place for place, selection in enumerate(selections)}


def bit_masks(selections: tuple[str, ...], chosen: Iterable[str]) -> dict[str, int]:
    """Return the mask of each word column that has bits of the `chosen` ones among the `selections` of a layout.

    >>> bit_masks(("a", "b", "c"), ("c", "a"))
    {'#bits': 5}
    """
    places = places_of(selections)
    masks: dict[str, int] = {}
    for each in chosen:
        word, bit = divmod(places[each], SELECTIONS_PER_WORD)
        masks[bits_name(word)] = masks.get(bits_name(word), 0) | 1 << bit
    return masks


def word_names(selection_count: int) -> tuple[str, ...]:
    """Return the word columns that `selection_count` selections need; none for a single one, which holds for every
    row.
    """
    words = -(-selection_count // SELECTIONS_PER_WORD) if selection_count > 1 else 0
    return tuple(bits_name(word) for word in range(words))


__all__ = [
    "ROW",
    "SELECTED",
    "SELECTIONS_PER_WORD",
    "SENT",
    "SERVES",
    "TAU",
    "UNTIL",
    "bit_masks",
    "bit_of",
    "bits_name",
    "places_of",
    "word_names",
]
