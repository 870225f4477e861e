"""What becomes of the rows of a chunk: each is counted once, and nothing vanishes without a reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plait.operators.close.closing import progress_after
from plait.operators.column_names import SENT
from plait.operators.ingest.badrows import FARTHEST_US, merged_bad
from plait.operators.ingest.ingest import IngestContext, ingest
from plait.operators.ingest.placed_rows import number_of
from plait.operators.ingest.projection import IngestSpec, ingest_spec
from plait.operators.reports import IngestReport
from plait.plan.key_groups import Access, Generation, KeyGroupTable
from plait.plan.model import KeyColumn, Requirement, Selection, Store
from plait.query.model import Column, SourceExpression, Stream, Table
from plait.sinks.staging import publish
from plait.state.manifest import decode, encode
from plait.state.model import BadRows, Manifest, NullKey, SourceProgress
from plait.state.storage import Storage

CORRUPT = "_corrupt_record"
SECOND = 1_000_000


def key(column: str) -> KeyColumn:
    return KeyColumn(expression=SourceExpression(sql=f"`{column}`", columns=(column,)), type="bigint")


def above(number: int) -> Selection:
    return Selection(conjuncts=(SourceExpression(sql=f"`v` > {number}", columns=("v",)),))


A, B = key("a"), key("b")
STREAM = Stream(name="s", time="ts", schema=tuple(Column(name=name, type="bigint") for name in ("a", "b", "v")))
STORE = Store(
    id="s",
    source="s",
    is_table=False,
    columns=("v",),
    keys=(A, B),
    requirements=(Requirement(selection=above(5), keys=(A.name,)), Requirement(selection=above(9), keys=(B.name,))),
    indexes=((A.name,), (B.name,)),
    partition_by=(),
    parallelism=1,
    window_us=None,
)
SPEC = ingest_spec(STREAM, (STORE,), corrupt_column=CORRUPT)


def rows(spec: IngestSpec, *values: tuple[Any, ...]) -> pa.Table:
    """Return rows (τ in seconds, a, b, v, corrupt) as Spark projects them."""
    by_name: dict[str, Any] = dict(zip(("#tau", "a", "b", "v", CORRUPT), zip(*values, strict=True), strict=True))
    tau = [None if seconds is None else int(seconds * SECOND) for seconds in by_name["#tau"]]
    columns = {"#tau": pa.array(tau, pa.int64()), A.name: pa.array(by_name["a"]), B.name: pa.array(by_name["b"])}
    columns |= {"v": pa.array(by_name["v"], pa.int64()), CORRUPT: pa.array(by_name[CORRUPT], pa.string())}
    # Bit i belongs to the i-th selection by text: `v` > 5, then `v` > 9.
    columns["#bits"] = pa.array([int((v or 0) > 5) | int((v or 0) > 9) << 1 for v in by_name["v"]], pa.int64())
    columns |= {"a": columns[A.name], "b": columns[B.name]}
    return pa.table({name: columns[name] for name, _ in spec.projection})


def taken(path: Path, *values: tuple[Any, ...], spec: IngestSpec = SPEC, **context: Any) -> IngestReport:
    where = IngestContext(storage=Storage.open(str(path)), batch=0, attempt="x", **{"late_before_us": None, **context})
    return ingest(rows(spec, *values).to_batches(), spec, where)


EVERY_FATE = (
    (None, None, None, None, "1,NA,3"),
    (10, 1, 1, None, "more,of,it"),
    (None, 1, 1, 20, None),
    (FARTHEST_US / SECOND, 1, 1, 20, None),
    (1, 1, 1, 20, None),
    (10, 1, 1, 3, None),
    (10, None, 1, 7, None),
    (10, None, 1, 12, None),
    (10, 1, None, 12, None),
)


def test_every_row_is_counted_under_one_heading(tmp_path: Path) -> None:
    report = taken(tmp_path, *EVERY_FATE, late_before_us=5 * SECOND)
    stored = sum(bucket.rows for bucket in report.buckets)
    assert (report.rows, report.bad, report.late, report.outside, report.null_keys, stored) == (9, 4, 1, 1, 1, 2)
    assert report.rows == report.bad + report.late + report.outside + report.null_keys + stored


def test_a_row_exactly_at_the_watermark_is_in_time_and_one_a_microsecond_older_is_late(tmp_path: Path) -> None:
    just_before = 5 - 1 / SECOND
    report = taken(tmp_path, (5, 1, 1, 20, None), (just_before, 1, 1, 20, None), late_before_us=5 * SECOND)
    assert (report.late, [bucket.tau_min for bucket in report.buckets]) == (1, [5 * SECOND])


def test_bad_rows_are_counted_by_reason_with_the_first_of_each_as_a_sample(tmp_path: Path) -> None:
    report = taken(tmp_path, *EVERY_FATE)
    assert report.bad_rows == (
        BadRows(reason="event time out of range", rows=1, sample="v=20"),
        BadRows(reason="malformed", rows=2, sample="1,NA,3"),
        BadRows(reason="no event time", rows=1, sample="v=20"),
    )


def test_event_times_so_far_away_that_a_window_would_wrap_are_bad_on_both_sides(tmp_path: Path) -> None:
    edge = FARTHEST_US // SECOND
    report = taken(tmp_path, *((seconds, 1, 1, 20, None) for seconds in (-edge - 1, 1 - edge, edge - 1, edge + 1)))
    assert [(bad.reason, bad.rows) for bad in report.bad_rows] == [("event time out of range", 2)]
    assert (report.tau_min, report.tau_max) == ((1 - edge) * SECOND, (edge - 1) * SECOND)


def test_null_keys_are_counted_by_key_among_the_rows_that_a_selection_wants(tmp_path: Path) -> None:
    # a is wanted of v > 5 (two rows lack it), b of v > 9 (one lacks it); the row with v = 3 is wanted by nobody.
    report = taken(tmp_path, *EVERY_FATE, (10, None, None, 3, None), late_before_us=5 * SECOND)
    assert report.null_keys_by == (NullKey(key="`a`", rows=2), NullKey(key="`b`", rows=1))


def test_counts_do_not_depend_on_how_rows_are_cut_into_chunks_and_tasks(tmp_path: Path) -> None:
    whole = taken(tmp_path, *EVERY_FATE, late_before_us=5 * SECOND)
    stream = (STREAM.name,)
    for chunk in (1, 2, 4):
        parts = [
            taken(tmp_path, *EVERY_FATE[at : at + 5], late_before_us=5 * SECOND, task=at, chunk_rows=chunk)
            for at in (0, 5)
        ]
        assert progress_after(None, stream, parts, 0) == progress_after(None, stream, [whole], 0)


def test_the_manifest_remembers_why_rows_were_lost_across_restarts(tmp_path: Path) -> None:
    report = taken(tmp_path, *EVERY_FATE, late_before_us=5 * SECOND)
    first = Manifest(batch=0, watermark_us=None, plan="p", sources=progress_after(None, ("s",), [report], 0))
    restored = decode(encode(first), "0.json")
    assert restored == first
    (progress,) = progress_after(restored, ("s",), [report], 0)
    assert [(bad.reason, bad.rows) for bad in progress.bad_rows] == [
        ("event time out of range", 2),
        ("malformed", 4),
        ("no event time", 2),
    ]
    assert (progress.outside, progress.null_keys_by[0].rows) == (2, 4)


def test_a_long_record_takes_little_room_in_the_manifest(tmp_path: Path) -> None:
    report = taken(tmp_path, (None, None, None, None, "x" * 100_000))
    assert len(report.bad_rows[0].sample) == 2000
    (progress,) = progress_after(None, ("s",), [report], 0)
    assert progress.bad_rows[0].sample == "x" * 157 + "..."


@pytest.mark.parametrize("reason", ["worn out", "", None])
def test_a_manifest_with_a_reason_there_is_not_is_damaged(reason: Any) -> None:
    from plait.errors import CheckpointError

    bad: Any = BadRows(reason=reason, rows=1)
    manifest = Manifest(batch=0, watermark_us=None, plan="p", sources=(SourceProgress(source="s", bad_rows=(bad,)),))
    with pytest.raises(CheckpointError, match="is damaged"):
        decode(encode(manifest), "0.json")


def test_a_reason_keeps_its_earliest_sample() -> None:
    left, right = (
        BadRows(reason="malformed", rows=2, sample="first"),
        BadRows(reason="malformed", rows=3, sample="then"),
    )
    assert merged_bad((left,), (right,)) == (BadRows(reason="malformed", rows=5, sample="first"),)
    assert merged_bad((BadRows(reason="malformed", rows=1),), (right,))[0].sample == "then"


def test_dead_letters_name_the_same_reasons_as_the_counts(tmp_path: Path) -> None:

    spec = ingest_spec(replace(STREAM, dead_letter=str(tmp_path / "dead")), (STORE,), corrupt_column=CORRUPT)
    report = taken(tmp_path, *EVERY_FATE, spec=spec, late_before_us=5 * SECOND)
    publish(report.publications)
    letters = pq.read_table(tmp_path / "dead").to_pylist()
    assert [letter["reason"] for letter in letters] == [
        "malformed",
        "malformed",
        "no event time",
        "event time out of range",
        "late",
    ]
    assert letters[0]["row"][CORRUPT] == "1,NA,3"
    assert report.bad_rows[-1].sample == "v=20, a=1, b=1"


def test_malformed_rows_of_a_table_are_counted_and_kept(tmp_path: Path) -> None:
    stored = replace(STORE, is_table=True, requirements=(Requirement(selection=Selection(), keys=()),))
    spec = ingest_spec(Table(name="s", schema=STREAM.schema), (stored,), corrupt_column=CORRUPT)
    report = taken(tmp_path, (None, 1, 1, 20, None), (None, None, 1, 20, "NA,1"), spec=spec)
    assert report.bad_rows == (BadRows(reason="malformed", rows=1, sample="NA,1"),)
    assert (report.bad, report.outside, sum(bucket.rows for bucket in report.buckets)) == (0, 0, 2)


def test_rows_are_counted_for_each_of_more_selections_than_a_word_has_bits(tmp_path: Path) -> None:
    selections = tuple(sorted((above(number) for number in range(130)), key=lambda each: each.sql))
    store = replace(STORE, requirements=tuple(Requirement(selection=each, keys=(A.name,)) for each in selections))
    spec = ingest_spec(STREAM, (store,))
    values = [5, 64, 65, 128, 400]
    words = [[0] * len(values) for _ in range(3)]
    for place, selection in enumerate(spec.selections):
        least = int(selection.removesuffix(")").rpartition(" ")[2])
        for row, value in enumerate(values):
            words[place // 63][row] |= int(value > least) << place % 63
    columns = {"#tau": [1] * 5, "v": values, A.name: [1, None, 1, 1, 1], B.name: [None, 1, 1, 1, 1]}
    columns |= dict(zip(("#bits", "#bits1", "#bits2"), words, strict=True))
    table = pa.table({name: pa.array(columns[name], pa.int64()) for name, _ in spec.projection})
    where = IngestContext(storage=Storage.open(str(tmp_path)), batch=0, attempt="x", late_before_us=None)
    report = ingest(table.to_batches(), spec, where)
    assert dict(report.kept) == {above(number).sql: sum(value > number for value in values) for number in range(130)}
    assert (report.null_keys, report.outside) == (1, 0)
    assert report.null_keys_by == (NullKey(key="`a`", rows=1),)
    assert sum(bucket.rows for bucket in report.buckets) == 4


def test_copies_are_stored_as_their_rows_are_and_counted_nowhere(tmp_path: Path) -> None:
    """Of each fate one row is at home in partition 1, and a copy of it in partition 2."""
    accesses = tuple(Access(store="s", key=each.name, selections=("true",)) for each in (A, B))
    tables = tuple(KeyGroupTable(operators=(each.name,), groups=1, partitions=(2,)) for each in accesses)
    generation = Generation(first_batch=4, tables=tables, accesses=accesses, partitions=3)
    table = rows(SPEC, *EVERY_FATE)
    ones = np.ones(table.num_rows, np.int64)
    home = table.append_column(SENT, pa.array(number_of(ones, ones, 0 * ones)))
    copies = table.append_column(SENT, pa.array(number_of(2 * ones, 0 * ones, 0 * ones)))
    context = {"storage": Storage.open(str(tmp_path)), "batch": 4, "attempt": "x", "late_before_us": 5 * SECOND}
    plain = ingest(table.to_batches(), SPEC, IngestContext(**context))
    sent = ingest(pa.concat_tables([home, copies]).to_batches(), SPEC, IngestContext(**context, generation=generation))
    stored = sum(bucket.rows for bucket in plain.buckets)
    assert stored > 0
    assert [(each.partition, each.rows, each.is_copy) for each in sent.buckets] == [(1, stored, False)]
    assert [(each.partition, each.rows, each.is_copy) for each in sent.copies] == [(2, stored, True)]
    assert {each.generation for each in (*sent.buckets, *sent.copies)} == {4}
    assert sent.sent_rows == 2 * table.num_rows
    assert replace(sent, buckets=(), copies=(), sent_rows=0, sent_bytes=0) == replace(plain, buckets=())
