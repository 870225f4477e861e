"""Which file completed a result, and when it was delivered."""

from __future__ import annotations

import pyarrow as pa

from benchmarks.systems.deliveries import Deliveries
from benchmarks.systems.task import Task
from benchmarks.workloads.data import FIRST_US
from benchmarks.workloads.three_way import THREE_WAY


def test_a_result_counts_for_the_file_of_its_newest_member_and_a_batch_done_twice_once() -> None:
    live_task = Task(system="plait", questions=THREE_WAY, data="", files=3, scratch="", live=True, slice_us=1_000_000)
    query = live_task.questions.queries[0]
    found = Deliveries(query, live_task)
    early, late = FIRST_US + 10, FIRST_US + 2 * live_task.slice_us + 10
    times = {name: [early, early] for name in found.times}
    times[found.times[-1]] = [late, early]
    table = pa.table({name: pa.array(each, pa.timestamp("us", "UTC")) for name, each in times.items()})
    for _ in range(2):
        found.add_table(table, 3)
    assert {each.file: each.rows for each in found.total()} == {2: 1, 0: 1}
