"""What tasks of many batches have in common is packed once, and unpacked once by whoever gets it."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

from plait.operators.probe.probing import ProbeContext
from plait.plan.model import Plan
from plait.query.model import ColumnRef
from plait.runtime.spark.packing import Packer
from plait.sinks.delivery import Discarded, Spooled
from plait.state.storage import Storage
from tests.unit.state.builders import described

PLAN = Plan(strategy="greedy", queries=("q",), ranks=("s",), stores=(), trees=())
WANTED = {"q": (ColumnRef(relation="a", column="x"),)}
SPOOLED = Spooled(query="q", columns=WANTED["q"])


def test_a_worker_gets_the_whole_context_and_unpacks_what_lasts_once(tmp_path: Path) -> None:
    context = ProbeContext(plan=PLAN, batch=3, storage=Storage.open(str(tmp_path)), buckets={}, wanted=WANTED)
    packer = Packer()
    first = packer.pack(context, {"q": SPOOLED})
    second = packer.pack(replace(context, batch=4, buckets={"s": (described(),)}, wanted=dict(WANTED)), {"q": SPOOLED})
    assert second.packed is first.packed
    assert len(pickle.dumps(first.context)) < len(pickle.dumps(context))
    arrived = [pickle.loads(pickle.dumps(each)).unpacked() for each in (first, second)]
    assert arrived[0][0] == context
    assert (arrived[1][0].batch, arrived[1][0].buckets) == (4, {"s": (described(),)})
    assert arrived[0][1] is arrived[1][1]
    assert arrived[0][1].deliveries == {"q": SPOOLED}


def test_another_plan_or_another_way_to_hand_results_over_is_packed_anew(tmp_path: Path) -> None:
    context = ProbeContext(plan=PLAN, batch=3, storage=Storage.open(str(tmp_path)), buckets={}, wanted=WANTED)
    packer = Packer()
    packer.pack(context, {"q": SPOOLED})
    other = replace(PLAN, strategy="ilp")
    _, lasting = packer.pack(replace(context, plan=other), {"q": SPOOLED}).unpacked()
    assert lasting.plan == other
    discarded = Discarded(query="q", columns=WANTED["q"])
    _, lasting = packer.pack(replace(context, plan=other), {"q": discarded}).unpacked()
    assert lasting.deliveries == {"q": discarded}
    _, lasting = packer.pack(replace(context, plan=other, wanted={}), {"q": discarded}).unpacked()
    assert lasting.wanted == {}
