"""What tasks of many batches have in common is packed once, and unpacked once by whoever gets it."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

from plait.operators.probe.demand import Demands
from plait.operators.probe.probing import ProbeContext
from plait.optimizer.examples import example_options, example_query, example_statistics
from plait.optimizer.planner import plan
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


def test_of_a_plan_that_follows_another_only_what_has_changed_is_packed_and_unpacked(tmp_path: Path) -> None:
    options = example_options("greedy")
    statistics = example_statistics(options)
    first = plan((example_query("q1", "r.a = s.a"), example_query("q2", "s.b = t.b")), statistics, options)
    trees = (replace(first.trees[0]), *first.trees[1:])
    packer, storage = Packer(), Storage.open(str(tmp_path))
    wanted = {"q1": WANTED["q"], "q2": WANTED["q"]}
    context = ProbeContext(plan=first, batch=3, storage=storage, buckets={}, wanted=wanted)
    deliveries = {name: Spooled(query=name, columns=WANTED["q"]) for name in wanted}
    shipments = [
        packer.pack(each, deliveries) for each in (context, replace(context, plan=replace(first, trees=trees)))
    ]
    packed = [shipment.packed for shipment in shipments]
    assert [old is new for old, new in zip(packed[0].trees, packed[1].trees, strict=True)][:2] == [False, True]
    assert all(old is new for old, new in zip(packed[0].stores, packed[1].stores, strict=True))
    arrived = [pickle.loads(pickle.dumps(shipment)).unpacked()[1] for shipment in shipments]
    assert (arrived[0].plan, arrived[1].plan.trees, arrived[1].deliveries) == (first, trees, deliveries)
    assert arrived[0].plan.trees[1] is arrived[1].plan.trees[1]
    demands = [each.demands.of(1, each.plan, each.wanted) for each in arrived]
    assert demands[0] is demands[1]
    other = {"q1": WANTED["q"], "q2": (ColumnRef(relation="s", column="y"), ColumnRef(relation="t", column="y"))}
    again = [Demands().of(1, first, other), arrived[1].demands.of(1, arrived[1].plan, other)]
    assert again[0] == again[1]
