"""What manifests of earlier formats lack or say otherwise, brought into today's form.

Format 1 counted what probing showed as sums by source (`joins`); format 2 keeps series (`plait.stats.cycles`), in which
those sums are what was counted before the first cycle. Fields that were added take their defaults and need nothing here
(`plait.state.codec`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from plait.state.model import Manifest
from plait.stats.cycles import Cycles, Series, from_totals

FORMAT = 2
READ = (1, 2)


def without_sums(document: dict[str, Any]) -> tuple[dict[str, Any], tuple[Series, ...]]:
    """Return the values of a manifest of format 1 as those of today's, and the series its sums become."""
    totals: dict[tuple[str, ...], tuple[int, int]] = {}
    sources = []
    for source in document["sources"]:
        for seen in source.get("joins", ()):
            sides = sorted(((source["source"], seen["key"]), (seen["other"], seen["other_key"])))
            name = tuple(part for side in sides for part in side)
            pairs, matches = totals.get(name, (0, 0))
            totals[name] = pairs + round(seen["pairs"]), matches + round(seen["matches"])
        sources.append({name: value for name, value in source.items() if name != "joins"})
    series = tuple(from_totals("join", name, counts) for name, counts in sorted(totals.items()))
    return {**document, "sources": sources}, series


def held_to_one_watermark(manifest: Manifest) -> Manifest:
    """Return a manifest that was written before there were bars: every source was held to the one watermark."""
    held = (replace(found, late_before_us=manifest.watermark_us) for found in manifest.sources)
    return replace(manifest, sources=tuple(held))


def with_series(manifest: Manifest, series: tuple[Series, ...]) -> Manifest:
    """Return a manifest with what was known before there were cycles."""
    return replace(manifest, cycles=Cycles(series=series))


__all__ = ["FORMAT", "READ", "held_to_one_watermark", "with_series", "without_sums"]
