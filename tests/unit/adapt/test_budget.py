"""The storage budget holds for what a batch leaves behind."""

from __future__ import annotations

import pytest

from plait.adapt.budget import Budget, stores_to_drop
from plait.optimizer.examples import example_query
from plait.optimizer.options import PlanOptions
from plait.optimizer.planner import plan
from plait.plan.model import Plan
from plait.plan.traversals import intermediates
from plait.query.model import Stream
from plait.state.model import Bucket, Layout
from plait.stats.model import SourceStatistics, Statistics

SOURCES = tuple(Stream(name=name, time="ts") for name in "rstu")


def bushy() -> Plan:
    """Return a plan of a chain of four with two intermediate stores."""
    query = example_query("q", "r.a = s.a", "s.b = t.b", "t.c = u.c")
    statistics = Statistics(
        sources=tuple(SourceStatistics(source=source.name, rate_rows_per_s=100.0, rows=1e4) for source in SOURCES)
    )
    made = plan((query,), statistics, PlanOptions(strategy="left-deep", sources=SOURCES, parallelism=1))
    assert len(intermediates(made)) == 2
    return made


def kept(rows: dict[str, int]) -> tuple[Bucket, ...]:
    return tuple(
        Bucket(
            store=store,
            partition=0,
            path=store,
            rows=count,
            bytes=8 * count,
            batch_min=0,
            batch_max=0,
            tau_min=0,
            tau_max=0,
            sort_key=(),
            layout=Layout(columns=(), keys=(), values=(), selections=(), has_tau=True),
            checksum="",
        )
        for store, count in rows.items()
    )


@pytest.mark.parametrize(
    ("limit", "dropped"),
    [
        (160, ()),
        (159, ("small",)),
        (150, ("small",)),
        (149, ("large",)),
        (110, ("large",)),
        (109, ("large", "small")),
        (0, ("large", "small")),
    ],
)
def test_as_little_goes_as_is_enough(limit: int, dropped: tuple[str, ...]):
    made = bushy()
    (small, _), (large, _) = intermediates(made)
    names = {"small": small.id, "large": large.id}
    buckets = kept({"r": 60, "s": 40, small.id: 10, large.id: 50})
    budget = Budget(limit=limit, in_bytes=False)
    assert stores_to_drop(budget, made, buckets) == {names[name] for name in dropped}
    assert stores_to_drop(Budget(limit=8 * limit, in_bytes=True), made, buckets) == {names[name] for name in dropped}


def test_inputs_are_never_dropped():
    assert stores_to_drop(Budget(limit=0, in_bytes=False), bushy(), kept({"r": 60, "s": 40})) <= {
        store.id for store, _ in intermediates(bushy())
    }
