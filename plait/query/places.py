"""Where in the user's text something is written."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPlace:
    """Where a piece of text starts; lines and columns count from 1."""

    file: str | None = None
    line: int = 1
    column: int = 1


__all__ = ["TextPlace"]
