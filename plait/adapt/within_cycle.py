"""Plan for what is asked for meanwhile on what was counted when that was last done in the same cycle.

What comes of a forecast hardly changes within a cycle, and to make one takes longer than to plan some queries beside a
plan. What is stored is told as it is now.
"""

from __future__ import annotations

from dataclasses import replace

from plait.adapt.smoothing import FEWEST
from plait.state.model import Manifest


class WithinCycle:
    """What plans are made on; of one run."""

    def __init__(self) -> None:
        self._known: Manifest | None = None

    def of(self, manifest: Manifest | None) -> Manifest | None:
        """Return a manifest with what was counted as it was when this was asked first in its cycle."""
        known = self._known
        if manifest is None or known is None or not _is_alike(known, manifest):
            self._known = manifest
            return manifest
        return replace(manifest, sources=known.sources, cycles=known.cycles, live_keys=known.live_keys)


def _is_alike(known: Manifest, manifest: Manifest) -> bool:
    """Tell whether two manifests are of the same cycle and streams, after so many cycles that a batch more or less says
    little.
    """
    mine, theirs = ({each.source for each in of.sources} for of in (known, manifest))
    return known.cycles.number == manifest.cycles.number > FEWEST and mine == theirs


__all__ = ["WithinCycle"]
