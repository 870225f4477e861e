"""When intermediate stores are filled from what the other stores hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from plait.operators.ingest.projection import layout_of
from plait.operators.probe.probing import ProbeContext
from plait.operators.reports import ProbeReport
from plait.operators.traversal.probe_task import ProbeTask
from plait.operators.traversal.scheduling import Spread, probe_tasks, with_intermediates
from plait.optimizer.assemble.build import build
from plait.optimizer.examples import example_options, example_query, example_statistics
from plait.optimizer.probe_orders import ProbeOrder
from plait.plan.model import Plan
from plait.state.model import Bucket
from plait.state.storage import Storage
from tests.unit.state.builders import described

OPTIONS = example_options("greedy")
QUERY = example_query("q", "r.a = s.a", "s.b = t.b")
UNITS = (("r",), ("s", "t")), (("s",), ("t",), ("r",)), (("t",), ("s",), ("r",))
FILLS = (("s",), ("t",)), (("t",), ("s",))
PLAN = build(
    (QUERY,),
    [ProbeOrder(query="q", units=units) for units in UNITS]
    + [ProbeOrder(query="q", units=units, fills=True) for units in FILLS],
    example_statistics(OPTIONS),
    OPTIONS,
)
ST = next(store for store in PLAN.stores if store.intermediate is not None)
OF_T = described(store="t", path="t", layout=layout_of(PLAN.store("t")))
COMPLETE = described(store=ST.id, path="st", layout=layout_of(ST))
LACKING = replace(COMPLETE, layout=replace(COMPLETE.layout, columns=COMPLETE.layout.columns[:1]))
FOUND = replace(COMPLETE, path="filled")


def filled(directory: Path, *buckets: Bucket) -> tuple[tuple[Bucket, ...], list[Plan]]:
    """Return the buckets afterwards, and the plans that were walked for it."""
    walked: list[Plan] = []

    def probe(tasks: tuple[ProbeTask, ...], context: ProbeContext) -> tuple[ProbeReport, ...]:
        assert (context.batch, context.kept_as) == (7, 6)
        walked.append(context.plan)
        return (ProbeReport(buckets=(FOUND,)),)

    context = ProbeContext(plan=PLAN, batch=7, storage=Storage.open(str(directory)), buckets={}, wanted={})
    return with_intermediates(context, buckets, probe, Spread(slots=2)), walked


def test_one_that_nobody_has_filled_yet_is_filled_once(tmp_path: Path) -> None:
    buckets, walked = filled(tmp_path, OF_T)
    assert buckets == (OF_T, FOUND)
    assert [[tree.start.store for tree in plan.trees] for plan in walked] == [["t"]]


def test_one_with_all_that_is_needed_is_left_alone(tmp_path: Path) -> None:
    assert filled(tmp_path, OF_T, COMPLETE) == ((OF_T, COMPLETE), [])


def test_one_that_lacks_a_column_is_filled_anew(tmp_path: Path) -> None:
    buckets, walked = filled(tmp_path, OF_T, COMPLETE, LACKING)
    assert buckets == (OF_T, FOUND)
    assert len(walked) == 1


def shares(rows: int, parts: int = 2) -> list[list[tuple[int, str, int, int]]]:
    """Return what each of two tasks starts with when so many rows of s and of r have come."""
    delta = [
        described(store=store, path=f"{store}{part}", partition=part, parallelism=parts, rows=rows // parts)
        for store in ("r", "s")
        for part in range(parts)
    ]
    trees = [number for number, tree in enumerate(PLAN.trees) if tree.start.store in ("r", "s")]
    tasks = probe_tasks(PLAN, trees, delta, Spread(slots=2, rows_per_start=250_000))
    return [[(number, bucket.path, low, high) for number, bucket, low, high in task.starts] for task in tasks]


def test_a_tree_whose_steps_take_longer_than_its_rows_is_one_tasks_own() -> None:
    tasks = shares(400)
    assert sorted(start[1:] for task in tasks for start in task) == [
        (path, 0, 200) for path in ("r0", "r1", "s0", "s1")
    ]
    assert [len({number for number, *_ in task}) for task in tasks] == [1, 1]


def test_many_rows_of_a_tree_are_shared_by_partition_and_in_pieces() -> None:
    first, second = shares(2_000_000)
    assert {path for _, path, *_ in first} == {"r0", "s0"}
    assert {path for _, path, *_ in second} == {"r1", "s1"}
    assert sorted(start[2:] for start in first if start[1] == "r0") == [
        (low, low + 250_000) for low in range(0, 1_000_000, 250_000)
    ]
