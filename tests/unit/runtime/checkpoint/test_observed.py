"""What a checkpoint tells about the plan in force, read from its files alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from plait.errors import CheckpointError, OptionError
from plait.plan.codec import encode
from plait.plan.explain import EdgeCount, StoreCount
from plait.plan.model import Plan
from plait.runtime.checkpoint.catalog import Catalog, write_catalog
from plait.runtime.checkpoint.observed import Observed, observe, with_types_of
from plait.state.manifest import ManifestLog
from plait.state.model import Bucket, Layout, Manifest, SourceProgress
from plait.state.storage import Storage
from tests.unit.optimizer.queries import SECOND_US, equality, planned, query, stream, table

ASKED = query("q", {"r": "r", "s": "s"}, ["r.a = s.a"])
SOURCES = (stream("r", rate=2, distinct={"a": 5}), stream("s", rate=3, distinct={"a": 5}))
PLAN = planned((ASKED,), sources=SOURCES)
OTHER = planned((ASKED, query("p", {"r": "r", "n": "n"}, ["r.a = n.a"], tables={"n"})), sources=(*SOURCES, table("n")))


class Checkpoint:
    """A checkpoint that is written batch by batch."""

    def __init__(self, directory: Path) -> None:
        self.uri = str(directory)
        self.storage = Storage.open(str(directory / "plait"))
        self.log = ManifestLog(self.storage)
        write_catalog(self.storage, Catalog(epoch=1), "0.1.0")

    def govern(self, name: str, plan: Plan) -> None:
        self.storage.write_file(f"plans/{name}.json", encode(plan).encode())

    def batch(
        self, number: int, plan: str, r_to_s: int, seconds: int, buckets: tuple[Bucket, ...] = (), sampled: int = 0
    ) -> None:
        """Commit a batch up to which edge r→s sent `r_to_s` tuples, samples took `sampled`, and both streams reached
        second `seconds`.
        """
        sources = tuple(SourceProgress(source=name, rows=9, tau_min=0, tau_max=seconds * SECOND_US) for name in "rs")
        self.log.commit(
            Manifest(
                batch=number,
                watermark_us=None,
                plan=plan,
                sources=sources,
                buckets=buckets,
                probe_tuples=(("r→s", r_to_s), ("s→r", 0)),
                sampled=sampled,
            )
        )


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return Checkpoint(tmp_path)


def counted(found: Observed) -> EdgeCount:
    return next(count for count in found.measured.edges if count.edge == "r→s")


def bucket(store: str, partition: int, rows: int) -> Bucket:
    return Bucket(
        store=store,
        partition=partition,
        path=f"stores/{store}/{partition}",
        rows=rows,
        bytes=rows * 10,
        batch_min=0,
        batch_max=0,
        tau_min=0,
        tau_max=1,
        sort_key=(),
        layout=Layout(columns=(), keys=(), values=(), selections=(), has_tau=True),
        checksum="xxh3:0",
    )


def test_counts_begin_with_the_first_batch_while_one_plan_governed_all(checkpoint: Checkpoint) -> None:
    checkpoint.govern("1-a", PLAN)
    checkpoint.batch(0, "1-a", 10, 4)
    checkpoint.batch(1, "1-a", 30, 10)
    found = observe(checkpoint.uri)
    assert (found.plan, found.manifest.batch, found.measured.batches) == (PLAN, 1, 2)
    assert counted(found) == EdgeCount(edge="r→s", probe_tuples=30, span_us=10 * SECOND_US)
    assert counted(found).per_s == 3


def test_what_another_plan_sent_before_does_not_count(checkpoint: Checkpoint) -> None:
    checkpoint.govern("1-a", OTHER)
    checkpoint.govern("2-b", PLAN)
    checkpoint.batch(0, "1-a", 1_000, 4)
    checkpoint.batch(1, "2-b", 1_012, 10)
    found = observe(checkpoint.uri)
    assert found.measured.batches == 1
    assert counted(found) == EdgeCount(edge="r→s", probe_tuples=12, span_us=6 * SECOND_US)


def test_an_equal_plan_of_an_earlier_epoch_with_other_estimates_is_the_same_plan(checkpoint: Checkpoint) -> None:
    checkpoint.govern("1-a", planned((ASKED,), sources=(stream("r"), stream("s"))))
    checkpoint.govern("2-b", PLAN)
    checkpoint.batch(0, "1-a", 10, 4)
    checkpoint.batch(1, "2-b", 30, 10)
    assert counted(observe(checkpoint.uri)).probe_tuples == 30


def test_where_old_manifests_are_gone_counts_begin_at_the_end_of_the_oldest(checkpoint: Checkpoint) -> None:
    checkpoint.govern("1-a", PLAN)
    for number in (3, 4, 5):
        checkpoint.batch(number, "1-a", 100 * number, 10 * number)
    found = observe(checkpoint.uri)
    assert found.measured.batches == 2
    assert counted(found) == EdgeCount(edge="r→s", probe_tuples=200, span_us=20 * SECOND_US)


def test_a_plan_of_an_unreadable_format_governed_other_batches(checkpoint: Checkpoint) -> None:
    checkpoint.storage.write_file("plans/1-a.json", encode(PLAN).replace('"format":', '"format":9', 1).encode())
    checkpoint.govern("2-b", PLAN)
    checkpoint.batch(0, "1-a", 10, 4)
    checkpoint.batch(1, "2-b", 30, 10)
    assert counted(observe(checkpoint.uri)).probe_tuples == 20


def test_counts_of_a_late_stretch_behind_endless_streams_are_brought_to_the_average_of_the_run(
    checkpoint: Checkpoint,
) -> None:
    asked = query(
        "q", {"r": "r", "s": "s", "t": "t"}, ["r.a = s.a", "s.b = t.b"], windows={"r": None, "s": None, "t": 5}
    )
    endless = planned((asked,), "fixed", sources=(stream("r"), stream("s"), stream("t")))
    checkpoint.govern("1-a", OTHER)
    checkpoint.govern("2-b", endless)
    checkpoint.batch(0, "1-a", 0, 10)
    checkpoint.batch(1, "2-b", 30, 20)
    spans = {count.edge: count.span_us for count in observe(checkpoint.uri).measured.edges}
    # Beyond half of the run, an edge behind one endless stream sends three quarters of all that it sends.
    assert spans["r→s"] == 10 * SECOND_US
    assert spans["r→s→t"] == 15 * SECOND_US


def test_samples_are_counted_over_the_same_batches_as_the_edges(checkpoint: Checkpoint) -> None:
    checkpoint.govern("1-a", OTHER)
    checkpoint.govern("2-b", PLAN)
    checkpoint.batch(0, "1-a", 500, 2, sampled=30)
    checkpoint.batch(1, "2-b", 600, 4, sampled=31)
    checkpoint.batch(2, "2-b", 700, 6, sampled=32)
    measured = observe(checkpoint.uri).measured
    assert (counted(observe(checkpoint.uri)).probe_tuples, measured.sampled) == (200, 2)
    assert measured.sampled_share == 0.01


def test_stored_rows_and_bytes_are_those_of_the_live_buckets(checkpoint: Checkpoint) -> None:
    checkpoint.govern("1-a", PLAN)
    checkpoint.batch(0, "1-a", 10, 4, (bucket("r", 0, 3), bucket("r", 1, 4), bucket("gone", 0, 9)))
    assert observe(checkpoint.uri).measured.stores == (
        StoreCount(store="r", rows=7, bytes=70),
        StoreCount(store="s", rows=0, bytes=0),
    )


def test_looking_at_a_checkpoint_changes_nothing_in_it(checkpoint: Checkpoint, tmp_path: Path) -> None:
    checkpoint.govern("1-a", PLAN)
    checkpoint.batch(0, "1-a", 10, 4)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    observe(checkpoint.uri)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_a_directory_without_a_checkpoint_or_without_a_batch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="there is no Plait checkpoint at"):
        observe(str(tmp_path / "nowhere"))
    assert not (tmp_path / "nowhere").exists()
    checkpoint = Checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match="no batch has been finished"):
        observe(checkpoint.uri)
    checkpoint.batch(0, "1-lost", 10, 4)
    with pytest.raises(CheckpointError, match="lacks plan 1-lost"):
        observe(checkpoint.uri)


def test_types_that_spark_once_told_are_taken_from_the_plan() -> None:
    typed = replace(ASKED, predicates=(equality("r.a = s.a", "string"),))
    untyped = replace(ASKED, predicates=(equality("r.a = s.a", None),))
    assert with_types_of(planned((typed,), sources=SOURCES), (untyped,)) == (typed,)
    other = query("p", {"r": "r", "s": "s"}, [equality("r.a = s.a", "bigint")])
    assert with_types_of(planned((typed, other), sources=SOURCES), (untyped,)) == (untyped,), "two types: cannot tell"
