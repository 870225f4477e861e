"""Which of two tuples of one micro-batch finds the other: the later one, and never both."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from plait.operators.probe.probing import ProbeContext, visible_buckets
from plait.plan.model import Plan
from plait.state.model import Bucket, Layout
from plait.state.storage import Storage
from tests.unit.optimizer.queries import planned, query

BATCH = 7


def bucket(store: str, partition_by: tuple[str, ...], batch: int) -> Bucket:
    return Bucket(
        store=store,
        partition=0,
        path=f"{store}-{batch}",
        rows=1,
        bytes=1,
        batch_min=batch,
        batch_max=batch,
        tau_min=0,
        tau_max=0,
        sort_key=(),
        layout=Layout(columns=(), keys=(), values=(), selections=(), has_tau=True),
        checksum="",
        partition_by=partition_by,
    )


def found(plan: Plan, directory: Path, *batches: int) -> Mapping[tuple[str, int], list[str]]:
    """Return which buckets each starting relation sees in its first step, by store and ordinal, where every store has
    one of each batch.
    """
    buckets = {each.id: tuple(bucket(each.id, each.partition_by, batch) for batch in batches) for each in plan.stores}
    context = ProbeContext(plan=plan, batch=BATCH, storage=Storage.open(str(directory)), buckets=buckets, wanted={})
    return {
        (tree.start.store, tree.start.ordinal): [
            each.bucket.path for each in visible_buckets(context, tree.start, step, 0)
        ]
        for tree in plan.trees
        for step in tree.children
    }


def test_of_two_members_of_one_batch_only_the_higher_ranked_one_finds_the_other(tmp_path: Path) -> None:
    plan = planned([query("q", {"a": "a", "b": "b"}, ["a.k = b.k"])])
    first, second = plan.ranks
    seen = found(plan, tmp_path, BATCH)
    of = {plan.store(store).source: paths for (store, _), paths in seen.items()}
    assert (first, second) == ("a", "b")
    assert of["a"] == []
    assert len(of["b"]) == 1


def test_of_two_occurrences_of_one_stream_the_later_one_finds_the_other(tmp_path: Path) -> None:
    plan = planned([query("q", {"x": "a", "y": "a"}, ["x.k = y.k"])])
    seen = {ordinal: len(paths) for (_, ordinal), paths in found(plan, tmp_path, BATCH).items()}
    assert seen == {0: 0, 1: 1}


@pytest.mark.parametrize("relations", [{"a": "a", "b": "b"}, {"x": "a", "y": "a"}])
def test_what_arrived_in_an_earlier_batch_is_found_whatever_its_rank(relations: dict[str, str], tmp_path: Path) -> None:
    plan = planned([query("q", relations, [" = ".join(f"{alias}.k" for alias in relations)])])
    assert [len(paths) for paths in found(plan, tmp_path, BATCH - 1).values()] == [1, 1]
