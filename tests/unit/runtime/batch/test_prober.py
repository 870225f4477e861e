"""What the driver keeps open of what it has probed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from plait.operators.probe.probing import ProbeContext
from plait.operators.traversal.probe_task import ProbeTask
from plait.optimizer.examples import example_options, example_query, example_statistics
from plait.optimizer.planner import plan
from plait.runtime.batch.prober import Prober
from plait.state.buckets import open_bucket
from tests.unit.state.builders import described
from tests.unit.state.test_buckets import sample

OPTIONS = example_options("fixed")
PLAN = plan((example_query("q", "r.a = s.a"),), example_statistics(OPTIONS), OPTIONS)


class Tasks:
    """A Spark whose tasks find nothing."""

    def range(self, *_: int) -> Tasks:
        return self

    def mapInArrow(self, *_: object) -> Tasks:
        return self

    def collect(self) -> list[Any]:
        return []


@pytest.mark.parametrize("store", ["r", "s"])
def test_the_driver_lets_go_of_deleted_buckets_also_once_there_is_too_much_for_it_to_probe(
    tmp_path: Path, store: str
) -> None:
    storage, bucket = sample(tmp_path)
    opened = open_bucket(storage, bucket)
    buckets = {store: (described(store=store, bytes=2 << 30),)}
    context = ProbeContext(plan=PLAN, batch=1, storage=storage, buckets=buckets, wanted={})
    tasks = (ProbeTask(number=0, starts=((0, described(), 0, 1),)),)
    assert Prober(cast(Any, Tasks()), "local").run(tasks, context, {}) == ()
    assert open_bucket(storage, bucket) is not opened
