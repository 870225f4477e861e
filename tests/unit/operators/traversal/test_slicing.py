"""Every row that was stored before is taken once, and meets nothing that arrived since."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from plait.operators.ingest.projection import layout_of
from plait.operators.probe.probing import ProbeContext
from plait.operators.reports import ProbeReport
from plait.operators.traversal.probe_task import ProbeTask
from plait.operators.traversal.scheduling import Spread
from plait.operators.traversal.slicing import Taken, arranged, begun, filled, fillings_after, lacking_rows, take, there
from plait.plan.coming import coming_id, on_the_way
from plait.plan.model import Plan, Store
from plait.plan.traversals import carried_columns
from plait.state.model import Bucket, Filling, Left
from plait.state.storage import Storage
from tests.property.governing import Slices
from tests.unit.operators.traversal.test_scheduling import PLAN, ST
from tests.unit.plan.test_intermediates import FLAT, plan
from tests.unit.state.builders import described

BASE = plan(*FLAT)
WAY = on_the_way(BASE, PLAN, ())
COMING = coming_id(ST.id)


def stored(store: str, path: str, batch: int, rows: int = 10) -> Bucket:
    layout = layout_of(ST if store in (ST.id, COMING) else PLAN.store(store))
    return described(store=store, path=path, batch_min=batch, batch_max=batch, rows=rows, layout=layout)


S, T1, T2, T3 = (stored("s", "s", 1, 40), stored("t", "t1", 1), stored("t", "t2", 2), stored("t", "t3", 3, 5))
BUCKETS = (S, T1, T2, T3)
BEGUN = Filling(
    store=COMING, part=1, since=4, rows=25, left=(Left(path="t3"), Left(path="t2"), Left(path="t1")),
    carried=carried_columns(ST),
)  # fmt: skip
COMPLETE = replace(BEGUN, left=())


def arrange(plan: Plan, *buckets: Bucket, fillings: tuple[Filling, ...] = (), kept: tuple[Store, ...] = ()) -> object:
    found = arranged(plan, buckets, fillings, 4, {store.id: store for store in kept})
    return [(each.store, each.path) for each in found.buckets], found.fillings, found.complete


OLD = [("s", "s"), ("t", "t1"), ("t", "t2"), ("t", "t3")]


def test_a_store_begins_with_all_rows_of_the_part_with_the_fewest_the_last_ones_first() -> None:
    assert arrange(WAY, *BUCKETS) == (OLD, (BEGUN,), frozenset())
    assert begun(WAY, WAY.store(COMING), {"s": (S,), "t": (stored("t", "t", 1, 41),)}, 4).part == 0


def test_one_that_was_coming_goes_on_where_it_was() -> None:
    half = replace(BEGUN, since=2, left=(Left(path="t1", row=7),))
    made = stored(COMING, "made", 3)
    assert arrange(WAY, *BUCKETS, made, fillings=(half,)) == ([*OLD, (COMING, "made")], (half,), frozenset())


def test_one_begins_anew_whose_rows_were_written_again_or_that_is_to_keep_more() -> None:
    made = stored(COMING, "made", 3)
    for other in (replace(BEGUN, left=(Left(path="gone"),)), replace(BEGUN, carried=BEGUN.carried[:1])):
        assert arrange(WAY, *BUCKETS, made, fillings=(other,)) == (OLD, (BEGUN,), frozenset())


def test_one_that_has_come_is_there_under_its_own_id_in_place_of_a_narrower_one() -> None:
    made, narrow = stored(COMING, "made", 3), stored(ST.id, "narrow", 3)
    settled = replace(COMPLETE, store=ST.id)
    want = ([*OLD, (ST.id, "made")], (settled,), {ST.id})
    assert arrange(PLAN, *BUCKETS, made, fillings=(COMPLETE,)) == want
    assert arrange(PLAN, *BUCKETS, narrow, made, fillings=(COMPLETE,)) == want


def test_one_that_is_not_complete_is_not_taken_for_it() -> None:
    made = stored(COMING, "made", 3)
    assert arrange(PLAN, *BUCKETS, made, fillings=(BEGUN,)) == (OLD, (), frozenset())


def test_one_without_rows_that_has_come_or_was_kept_need_not_be_filled_again() -> None:
    settled = replace(COMPLETE, store=ST.id)
    assert arrange(PLAN, *BUCKETS, fillings=(settled,)) == (OLD, (settled,), {ST.id})
    assert arrange(PLAN, *BUCKETS, kept=(ST,)) == (OLD, (), {ST.id})
    assert arrange(PLAN, *BUCKETS) == (OLD, (), frozenset())


def test_one_that_was_there_waits_with_the_others_of_its_plan() -> None:
    made = stored(ST.id, "made", 3)
    assert arrange(WAY, *BUCKETS, made) == ([*OLD, (COMING, "made")], (COMPLETE,), frozenset())


def test_what_comes_for_nobody_any_more_is_let_go() -> None:
    made = stored(COMING, "made", 3)
    assert arrange(BASE, *BUCKETS, made, fillings=(BEGUN,)) == (OLD, (), frozenset())


def test_stores_are_there_that_have_come_completely_or_were_there_all_along() -> None:
    assert filled(PLAN, (BEGUN,)) == frozenset()
    assert filled(PLAN, (COMPLETE,)) == {ST.id}
    assert there(PLAN, (*BUCKETS, stored(ST.id, "made", 3)), ()) == {ST.id}
    assert there(PLAN, (*BUCKETS, stored(COMING, "made", 3)), (BEGUN,)) == frozenset()
    assert lacking_rows(PLAN, BUCKETS, (BEGUN,)) == 25
    assert lacking_rows(PLAN, BUCKETS, (COMPLETE,)) == 0


def test_one_that_is_complete_and_holds_no_rows_is_not_filled_again() -> None:
    (filling,) = fillings_after((), PLAN, BUCKETS)
    assert arrange(PLAN, *BUCKETS, fillings=(filling,)) == (OLD, (filling,), {ST.id})
    assert there(PLAN, BUCKETS, (filling,)) == {ST.id}
    assert lacking_rows(PLAN, BUCKETS, (filling,)) == 0
    # Nothing is known of one before a batch has been done under a plan that keeps it, nor of columns that it lacks.
    assert there(PLAN, BUCKETS, ()) == frozenset()
    assert there(PLAN, BUCKETS, (replace(filling, carried=filling.carried[:1]),)) == frozenset()
    assert fillings_after((filling,), BASE, BUCKETS) == ()


def test_what_a_store_keeps_is_what_the_plan_in_force_says() -> None:
    (filling,) = fillings_after((replace(COMPLETE, store=ST.id, carried=()),), PLAN, BUCKETS)
    assert filling == replace(COMPLETE, store=ST.id)


@dataclass
class Probed:
    """What was probed: rows taken by bucket, and what they could meet."""

    rows: list[tuple[str, int]] = field(default_factory=list)
    met: set[str] = field(default_factory=set)
    trees: set[tuple[str, ...]] = field(default_factory=set)

    def __call__(self, tasks: tuple[ProbeTask, ...], context: ProbeContext) -> tuple[ProbeReport, ...]:
        for task in tasks:
            for _, bucket, start, stop in task.starts:
                self.rows += [(bucket.path, row) for row in range(start, stop)]
        self.met |= {each.path for own in context.buckets.values() for each in own}
        self.trees.add(tuple(tree.start.store for tree in context.plan.trees))
        assert context.kept_as == context.batch
        return (ProbeReport(probe_tuples=(("e", len(self.rows)),), buckets=(stored(COMING, "made", 5),)),)


def slices(directory: Path, filling: Filling, live: tuple[Bucket, ...], most: int) -> tuple[Taken, Probed]:
    probed = Probed()
    context = ProbeContext(plan=WAY, batch=5, storage=Storage.open(str(directory)), buckets={}, wanted={})
    return take(context, (filling,), live, probed, Spread(slots=2), Slices(most=most, piece=4)), probed


@pytest.mark.parametrize("most", [1, 3, 7, 25, 100])
def test_all_rows_are_taken_once_batch_after_batch(tmp_path: Path, most: int) -> None:
    filling, rows = BEGUN, list[tuple[str, int]]()
    since = stored("t", "t4", 4), stored("s", "s4", 5)
    batches = 0
    while filling.left:
        taken, probed = slices(tmp_path, filling, (*BUCKETS, *since), most)
        assert len(probed.rows) == taken.rows[COMING] <= most
        assert probed.met == {"s", "t1", "t2", "t3"}
        assert probed.trees == {("t",)}
        (filling,) = taken.fillings
        rows += probed.rows
        batches += 1
    assert sorted(rows) == sorted((each.path, row) for each in (T1, T2, T3) for row in range(each.rows))
    assert batches == -(-25 // most)


def test_rows_that_have_expired_are_left_out(tmp_path: Path) -> None:
    taken, probed = slices(tmp_path, BEGUN, (S, T2), 100)
    assert {path for path, _ in probed.rows} == {"t2"}
    assert taken.fillings == (COMPLETE,)
    assert fillings_after((BEGUN,), WAY, (S, T2)) == (replace(BEGUN, left=(Left(path="t2"),)),)
    assert fillings_after((BEGUN,), BASE, BUCKETS) == ()
