from __future__ import annotations

import json
import types
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.errors import CheckpointError
from plait.plan.key_groups import Access, Generation, KeyGroupTable, Split
from plait.state.manifest import ManifestLog, decode, encode, manifest_path
from plait.state.model import Bucket, MadeGroups, Manifest, SourceProgress, Undelivered
from plait.state.storage import Storage, checksum_of
from plait.stats.cycles import from_totals
from tests.unit.state.builders import described, layout

INTEGERS = st.integers(-(2**63), 2**64)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(('"checksum":"', "\n", "},"))


def any_of(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a field type of the model, whatever fields it has."""
    if kind is Generation:
        return st.builds(generation, st.integers(0, 9), st.lists(st.integers(0, 3), min_size=3, max_size=5))
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return st.builds(kind, **{field.name: any_of(hints[field.name]) for field in fields(kind)})
    if get_origin(kind) in (Union, types.UnionType):
        return st.one_of([any_of(part) for part in get_args(kind)])
    if get_origin(kind) is tuple:
        parts = get_args(kind)
        if parts[1:] == (...,):
            return st.lists(any_of(parts[0]), max_size=3).map(tuple)
        return st.tuples(*map(any_of, parts))
    if get_origin(kind) is Literal:
        return st.sampled_from(get_args(kind))
    simple: dict[Any, st.SearchStrategy[Any]] = {
        int: INTEGERS,
        str: TEXT,
        bool: st.booleans(),
        float: st.floats(allow_nan=False, allow_infinity=False),
        type(None): st.none(),
    }
    return simple[kind]


def generation(first_batch: int, partitions: list[int]) -> Generation:
    """A table whose last two places are parts of a hot key."""
    access = Access(store="s", key="k", selections=("true",))
    splits = (Split(key=7, spread="s", parts=2),)
    table = KeyGroupTable(
        operators=(access.name,), groups=len(partitions) - 2, partitions=tuple(partitions), splits=splits
    )
    return Generation(first_batch=first_batch, tables=(table,), accesses=(access,), partitions=4)


@settings(deadline=None)
@given(any_of(Manifest))
def test_a_manifest_survives_its_file(manifest: Manifest) -> None:
    content = encode(manifest)
    assert decode(content, "m") == manifest
    assert json.loads(content)["batch"] == manifest.batch


@settings(deadline=None, max_examples=50)
@given(any_of(Manifest), st.data())
def test_a_changed_manifest_is_refused_not_misread(manifest: Manifest, data: st.DataObject) -> None:
    content = bytearray(encode(manifest))
    bit = data.draw(st.integers(0, 8 * len(content) - 1))
    content[bit // 8] ^= 1 << bit % 8
    with pytest.raises(CheckpointError, match="Manifest m "):
        decode(bytes(content), "m")


MANIFEST = Manifest(batch=7, watermark_us=123, plan="p", buckets=(described(), described(path="other", tau_min=None)))


def seal(body: bytes) -> bytes:
    return body + b',\n"checksum":"' + checksum_of(body).encode() + b'"}\n'


def body_of(content: bytes) -> bytes:
    return content.rpartition(b',\n"checksum"')[0]


def edited(change: Callable[[dict[str, Any]], None]) -> bytes:
    """A manifest whose content was changed and sealed again, as another version of Plait might write it."""
    document = json.loads(encode(MANIFEST))
    del document["checksum"]
    change(document)
    head = {name: document.pop(name) for name in ("format", "batch", "watermark_us", "late_before") if name in document}
    return seal(f"{json.dumps(head)[:-1]},\n{json.dumps(document)[1:-1]}".encode())


def _drop_plan(document: dict[str, Any]) -> None:
    del document["plan"]


def _add_field(document: dict[str, Any]) -> None:
    document["surprise"] = 1


def _wrong_type(document: dict[str, Any]) -> None:
    document["plan"] = 5


def _true_is_no_number(document: dict[str, Any]) -> None:
    document["buckets"]["columns"]["rows"][0] = True


def _short_column(document: dict[str, Any]) -> None:
    document["buckets"]["columns"]["rows"].pop()


def _layout_out_of_range(document: dict[str, Any]) -> None:
    document["buckets"]["columns"]["layout"][0] = 99


def _layout_from_the_end(document: dict[str, Any]) -> None:
    document["buckets"]["columns"]["layout"][0] = -1


def _no_buckets(document: dict[str, Any]) -> None:
    document["buckets"] = None


def _strange_column(document: dict[str, Any]) -> None:
    document["buckets"]["columns"]["odd"] = [1, 2]


@pytest.mark.parametrize(
    "change",
    [
        _drop_plan,
        _add_field,
        _wrong_type,
        _true_is_no_number,
        _short_column,
        _layout_out_of_range,
        _layout_from_the_end,
        _no_buckets,
        _strange_column,
    ],
)
def test_what_is_sealed_but_no_manifest_is_refused(change: Callable[[dict[str, Any]], None]) -> None:
    with pytest.raises(CheckpointError, match=r"Manifest m is damaged: .* Restore it from a backup"):
        decode(edited(change), "m")


def test_unchanged_content_is_accepted_by_the_same_means() -> None:
    assert decode(edited(lambda _: None), "m") == MANIFEST


def test_a_manifest_without_fields_added_later_takes_their_defaults() -> None:
    def older(document: dict[str, Any]) -> None:
        del document["backlog"], document["probe_tuples"], document["buckets"]["columns"]["parallelism"]

    assert decode(edited(older), "m") == MANIFEST


def test_results_that_no_sink_has_taken_stand_where_earlier_versions_look_for_them() -> None:
    waiting = Undelivered(query="q", batch=3, paths=("p",), rows=1, reason="down")
    text = encode(replace(MANIFEST, undelivered=(waiting,)))
    assert json.loads(text)["backlog"][0]["paths"] == ["p"]
    assert decode(text, "m").undelivered == (waiting,)


def test_another_format_is_refused_naming_both() -> None:
    with pytest.raises(CheckpointError, match=r"Manifest m has format 5; this Plait reads formats 1 to 4\."):
        decode(edited(lambda document: document.update(format=5)), "m")


def test_manifests_are_of_another_format_than_before_they_named_groups() -> None:
    named = replace(MANIFEST, made=(MadeGroups(stream="s", identity="1"),))
    assert json.loads(encode(named))["format"] not in (1, 2)


def test_manifests_are_of_another_format_than_before_tables_sent_rows() -> None:
    """Who took homes for all there is would not find rows where tables say they are."""
    named = replace(MANIFEST, generations=(generation(0, [0, 1, 2]),), copies=(described(is_copy=True),))
    assert json.loads(encode(named))["format"] not in (1, 2, 3)
    assert named.copies[0] in named.named


def test_a_table_that_cannot_be_one_is_damage() -> None:
    text = encode(replace(MANIFEST, generations=(generation(0, [0, 1, 2]),)))
    broken = text.replace(b'"partitions":[0,1,2]', b'"partitions":[0,1,9]')
    with pytest.raises(CheckpointError, match="names partition 9"):
        decode(seal(broken.split(b',\n"checksum"')[0]), "m")


@settings(deadline=None, max_examples=20)
@given(any_of(Manifest))
def test_a_manifest_of_the_second_format_keeps_all_that_it_says(manifest: Manifest) -> None:
    older = replace(manifest, made=(), generations=(), copies=())
    document = json.loads(encode(older))
    del document["checksum"], document["made"], document["generations"], document["copies"]
    head = {name: document.pop(name) for name in ("format", "batch", "watermark_us", "late_before")}
    head["format"] = 2
    assert decode(seal(f"{json.dumps(head)[:-1]},\n{json.dumps(document)[1:-1]}".encode()), "m") == older


def test_sums_of_joins_of_the_first_format_become_what_was_counted_before_the_first_cycle() -> None:
    def older(document: dict[str, Any]) -> None:
        document["format"] = 1
        del document["cycles"]
        document["sources"] = [
            {"source": "r", "joins": [{"key": "a", "other": "s", "other_key": "b", "pairs": 100.4, "matches": 7.0}]},
            {"source": "s", "joins": [{"key": "b", "other": "r", "other_key": "a", "pairs": 50.0, "matches": 1.0}]},
            {"source": "t", "rows": 3},
        ]

    found = decode(edited(older), "m")
    assert found.cycles.series == (from_totals("join", ("r", "a", "s", "b"), (150, 8)),)
    assert found.cycles.batches == ()
    assert [(source.source, source.rows) for source in found.sources] == [("r", 0), ("s", 0), ("t", 3)]
    assert decode(encode(found), "m") == found


def test_a_field_of_the_first_format_is_damage_in_later_ones() -> None:
    def mixed(document: dict[str, Any]) -> None:
        document["sources"] = [{"source": "r", "joins": []}]

    with pytest.raises(CheckpointError, match="unknown fields"):
        decode(edited(mixed), "m")


@pytest.mark.parametrize("content", [b"", b"{}", b"null", b"[1]", b"\xff\xfe", b'{"format":1}\n', b'{"format":1,\n'])
def test_what_never_was_a_manifest_is_refused(content: bytes) -> None:
    with pytest.raises(CheckpointError, match="Manifest m is damaged"):
        decode(content, "m")


def test_many_buckets_stay_compact() -> None:
    wide = layout(*(f"#k bigint `key{n}`" for n in range(20)), columns=tuple(f"column{n}" for n in range(50)))
    buckets = tuple(described(path=f"stores/s/0/{n}.arrow", layout=wide) for n in range(1000))
    assert len(encode(replace(MANIFEST, buckets=buckets))) < 100 * 1000


@pytest.fixture
def log(tmp_path: Path) -> ManifestLog:
    return ManifestLog(Storage.open(str(tmp_path)))


def at(batch: int, **changes: Any) -> Manifest:
    return replace(MANIFEST, batch=batch, **changes)


def test_the_newest_manifest_is_the_state(log: ManifestLog) -> None:
    assert log.latest() is None
    for batch in (8, 9, 10, -1):
        log.commit(at(batch))
    assert log.latest() == at(10)
    assert log.batches() == (-1, 8, 9, 10)
    assert log.read(8) == at(8)


def test_committing_the_same_again_changes_nothing_and_something_else_is_refused(
    log: ManifestLog, tmp_path: Path
) -> None:
    log.commit(at(3))
    path = tmp_path / manifest_path(3)
    stamp = path.stat().st_mtime_ns
    log.commit(at(3))
    assert path.stat().st_mtime_ns == stamp
    with pytest.raises(CheckpointError, match=r"Batch 3 is committed already.*manifests/3\.json.*second engine"):
        log.commit(at(3, plan="other"))
    assert log.read(3) == at(3)
    assert [entry.name for entry in path.parent.iterdir()] == ["3.json"]


def test_what_is_late_is_read_alone(log: ManifestLog) -> None:
    log.commit(at(3, sources=(held_to(123, "r"), held_to(None, "s"))))
    assert log.read_late_before(3, "r") == 123
    assert log.read_late_before(3, "s") is None


def test_no_row_of_a_source_that_is_new_is_late(log: ManifestLog) -> None:
    log.commit(at(3, sources=(held_to(123, "r"),)))
    assert log.read_late_before(3, "new") is None


def test_before_the_first_batch_nothing_is_late(log: ManifestLog) -> None:
    assert log.read_late_before(-1, "r") is None
    log.commit(at(-1, sources=(held_to(5, "r"),)))
    assert log.read_late_before(-1, "r") == 5


def test_a_manifest_that_should_be_there_is_missed(log: ManifestLog) -> None:
    with pytest.raises(CheckpointError, match=r"manifests/0\.json: there is no such file"):
        log.read_late_before(0, "r")


def test_in_a_manifest_of_an_earlier_version_every_source_is_held_to_the_watermark(
    log: ManifestLog, tmp_path: Path
) -> None:
    log.commit(at(3, sources=(SourceProgress(source="r", rows=7),)))
    document = json.loads((tmp_path / manifest_path(3)).read_bytes())
    for name in ("checksum", "late_before"):
        del document[name]
    del document["sources"][0]["late_before_us"]
    document["format"] = 1
    head = {name: document.pop(name) for name in ("format", "batch", "watermark_us")}
    (tmp_path / manifest_path(3)).write_bytes(seal(f"{json.dumps(head)[:-1]},\n{json.dumps(document)[1:-1]}".encode()))
    assert log.read_late_before(3, "r") == 123
    assert log.read(3).sources == (SourceProgress(source="r", rows=7, late_before_us=123),)


def held_to(bar: int | None, source: str) -> SourceProgress:
    return SourceProgress(source=source, late_before_us=bar)


def test_damage_is_found_by_every_way_of_reading(log: ManifestLog, tmp_path: Path) -> None:
    log.commit(at(3))
    path = tmp_path / manifest_path(3)
    path.write_bytes(path.read_bytes().replace(b"123", b"124"))
    for read in (log.latest, lambda: log.read(3), lambda: log.read_late_before(3, "r")):
        with pytest.raises(CheckpointError, match=rf"Manifest {path} is damaged"):
            read()


def test_a_renamed_manifest_is_refused(log: ManifestLog, tmp_path: Path) -> None:
    log.commit(at(3))
    (tmp_path / manifest_path(3)).rename(tmp_path / manifest_path(4))
    for read in (log.read, lambda batch: log.read_late_before(batch, "r")):
        with pytest.raises(CheckpointError, match="expected batch 4"):
            read(4)


def test_pruning_keeps_the_newest(log: ManifestLog) -> None:
    for batch in range(8, 13):
        log.commit(at(batch))
    log.prune(keep=2)
    assert log.batches() == (11, 12)
    with pytest.raises(ValueError, match="at least the newest"):
        log.prune(keep=0)


def test_other_files_in_the_folder_are_ignored(log: ManifestLog, tmp_path: Path) -> None:
    log.commit(at(3))
    for name in (".tmp-1-4.json", "5.json.bak", "x.json", "6"):
        (tmp_path / "manifests" / name).touch()
    assert log.batches() == (3,)


def test_every_field_of_a_bucket_is_in_the_file() -> None:
    columns = json.loads(encode(MANIFEST))["buckets"]["columns"]
    assert set(columns) == {field.name for field in fields(Bucket)}
