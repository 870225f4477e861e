"""Whether something waits for a batch that nothing is read for."""

from __future__ import annotations

from plait.operators.close.levels import marks_in_the_end, marks_of
from plait.operators.close.watermark import watermark_after
from plait.runtime.batch.closing_groups import awaits_groups
from plait.runtime.batch.finding_certain import awaits_certain
from plait.runtime.checkpoint.epoch import Epoch
from plait.state.model import Manifest


def awaits(before: Manifest, epoch: Epoch, clock_ms: int | None) -> bool:
    """Tell whether groups wait to be taken in; or whether the watermark of now is later than that of the manifest
    `before`, or derived streams come further by that, and something waits for it. `clock_ms`: now, for streams that are
    silent; None: the watermark stays where it is.
    """
    if any(made.files for made in before.made):
        return True
    watermark_us = before.watermark_us
    if clock_ms is not None:
        watermark_us = watermark_after(epoch.streams, before.sources, clock_ms)
    marks = marks_in_the_end(epoch.makers, watermark_us)
    come_to = marks_of(marks, before.sources)
    has_moved = _is_later(watermark_us, before.watermark_us)
    if not has_moved and not any(_is_later(mark, come_to[stream]) for stream, mark in marks.items()):
        return False
    return awaits_groups(before, epoch, watermark_us, marks) or awaits_certain(before, epoch, watermark_us, marks)


def _is_later(mark_us: int | None, than_us: int | None) -> bool:
    return mark_us is not None and (than_us is None or mark_us > than_us)


__all__ = ["awaits"]
