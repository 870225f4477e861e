"""The values of the keys of every store are followed through batches, windows and restarts."""

from __future__ import annotations

import json

import numpy as np
import pytest

from plait.adapt.forecast import Outlook, forecast
from plait.kernels.sketch import kmv
from plait.operators.close.counting_keys import counted_keys
from plait.operators.reports import IngestReport
from plait.optimizer.examples import example_options, example_query
from plait.optimizer.planner import plan
from plait.state.codec import from_json, to_json
from plait.state.model import Manifest
from plait.stats.cycles import CycleLength, Cycles, with_batch
from plait.stats.live_keys import MOST_FOLLOWED_IN_ALL
from plait.stats.model import Statistics

OPTIONS = example_options("fixed")
PLAN = plan((example_query("q", "r.a = s.a"),), Statistics(), OPTIONS)
KEY = "#k bigint `a`"
WINDOW_US = PLAN.store("r").window_us or 0


def report(keys: range, tau_us: int) -> IngestReport:
    return IngestReport(
        source="r",
        rows=len(keys),
        tau_min=tau_us,
        tau_max=tau_us,
        sketches=((KEY, tuple(kmv(np.array(keys, np.int64)).tolist())),),
    )


def run(*batches: range) -> Manifest:
    """Return what is known after batches that are half a window apart, each read back from its manifest."""
    manifest = Manifest(batch=-1, watermark_us=None, plan="p")
    for number, keys in enumerate(batches):
        tau_us = number * WINDOW_US // 2
        found = counted_keys(manifest, PLAN, (report(keys, tau_us),))
        cycles = with_batch(manifest.cycles or Cycles(), number, found.counts, CycleLength(batches=1))
        manifest = Manifest(batch=number, watermark_us=tau_us, plan="p", cycles=cycles, live_keys=found.live)
        document = to_json(manifest)
        read = from_json({**document, "batch": number, "watermark_us": tau_us})
        assert read == manifest
        manifest = read
    return manifest


def test_what_came_and_what_went_is_counted_by_cycle() -> None:
    manifest = run(range(50), range(30, 80), *(range(80, 90) for _ in range(4)))
    (series,) = [each for each in manifest.cycles.of("keys") if each.name == ("r", KEY)]
    added, expired = series.counts
    assert (sum(added), sum(expired)) == (90, 80)
    assert added[:3] == (50, 30, 10)


def test_what_is_followed_of_many_keys_takes_no_more_of_the_manifest() -> None:
    conditions = [f"r.k{number} = s.k{number}" for number in range(90)]
    made = plan((example_query("q", *conditions),), Statistics(), OPTIONS)
    sketches = tuple((key.name, tuple(kmv(np.arange(5_000)).tolist())) for key in made.store("r").keys)
    reports = [IngestReport(source=name, rows=9, tau_min=0, tau_max=0, sketches=sketches) for name in "rs"]
    found = counted_keys(None, made, reports)
    assert sum(len(each.hashes) for each in found.live) <= MOST_FOLLOWED_IN_ALL
    document = to_json(Manifest(batch=0, watermark_us=None, plan="p", live_keys=found.live))
    assert len(json.dumps(document["live_keys"])) < 120_000
    assert {each.store for each in found.live} == {"r", "s"}


def test_what_a_store_holds_is_forecast_from_what_it_held() -> None:
    manifest = run(*(range(10 * batch, 10 * batch + 10) for batch in range(3)), *(range(100) for _ in range(3)))
    assert forecast((), manifest, Outlook(trends=False)).kept("r", KEY) == 100.0
    rising = forecast((), run(*(range(20 * batch) for batch in range(8)))).kept("r", KEY)
    assert rising == pytest.approx(160.0, rel=0.1)
    assert forecast((), manifest).kept("s", KEY) is None
