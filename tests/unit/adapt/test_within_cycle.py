"""Within a cycle plans are made on what was counted when one was first made, on what is stored now."""

from __future__ import annotations

from dataclasses import replace

from plait.adapt.smoothing import FEWEST
from plait.adapt.within_cycle import WithinCycle
from plait.state.model import Manifest, SourceProgress
from plait.stats.cycles import Cycles
from tests.unit.state.builders import described


def manifest(batch: int, cycle: int, *sources: str) -> Manifest:
    progress = tuple(SourceProgress(source=name, rows=100 * batch) for name in sources)
    cycles = Cycles(number=cycle, batches=(1,) * cycle, seconds=(10.0,) * cycle)
    return Manifest(batch=batch, watermark_us=None, plan="p", sources=progress, cycles=cycles)


def test_what_was_counted_is_as_it_was_and_what_is_stored_as_it_is() -> None:
    known, first = WithinCycle(), manifest(7, FEWEST + 1, "r", "s")
    assert known.of(first) is first
    second = replace(manifest(8, FEWEST + 1, "r", "s"), buckets=(described(store="r"),))
    found = known.of(second)
    assert found is not None
    assert (found.batch, found.buckets) == (8, second.buckets)
    assert (found.sources, found.cycles) == (first.sources, first.cycles)


def test_another_cycle_or_stream_and_the_first_cycles_count_as_they_are() -> None:
    for before, after in (
        (manifest(7, FEWEST + 1, "r"), manifest(8, FEWEST + 2, "r")),
        (manifest(7, FEWEST + 1, "r"), manifest(8, FEWEST + 1, "r", "s")),
        (manifest(7, FEWEST, "r"), manifest(8, FEWEST, "r")),
    ):
        known = WithinCycle()
        known.of(before)
        assert known.of(after) is after
    assert WithinCycle().of(None) is None
