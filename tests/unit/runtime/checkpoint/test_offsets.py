"""Spark's offset log, completed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plait.runtime.checkpoint.catalog import Catalog
from plait.runtime.checkpoint.offsets import (
    complete_offsets,
    forget_offsets,
    last_offsets,
    offsets_at,
    resume_offsets,
    resume_streams,
)
from plait.state.model import Manifest, SourceProgress

SETTING = "spark.sql.shuffle.partitions"


def entry(folder: Path, batch: int, partitions: str | None) -> Path:
    conf = {"other": "x"} if partitions is None else {"other": "x", SETTING: partitions}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / str(batch)
    path.write_text(
        "v2\n" + json.dumps({"batchTimestampMs": 1, "conf": conf}) + '\nr:{"logOffset":0}\ns:{"logOffset":1}'
    )
    (folder / f".{batch}.crc").write_text("stale")
    return path


def partitions(path: Path) -> str | None:
    conf: dict[str, str] = json.loads(path.read_text().split("\n")[1])["conf"]
    assert conf["other"] == "x"
    return conf.get(SETTING)


@pytest.mark.parametrize(
    ("before", "unfinished", "expected"),
    [(None, None, "200"), ("2", None, "2"), (None, "2", "2"), ("200", "2", "2"), ("7", "7", "7")],
)
def test_both_entries_record_one_value(
    tmp_path: Path, before: str | None, unfinished: str | None, expected: str
) -> None:
    offsets = tmp_path / "spark" / "offsets"
    first, second = entry(offsets, 3, before), entry(offsets, 4, unfinished)
    (tmp_path / "spark" / "commits").mkdir()
    (tmp_path / "spark" / "commits" / "3").write_text("v1")
    complete_offsets(str(tmp_path))
    assert (partitions(first), partitions(second)) == (expected, expected)
    assert second.read_text().split("\n")[2:] == ['r:{"logOffset":0}', 's:{"logOffset":1}']


def test_a_log_without_an_unfinished_batch_is_left_alone(tmp_path: Path) -> None:
    path = entry(tmp_path / "spark" / "offsets", 0, None)
    (tmp_path / "spark" / "commits").mkdir()
    (tmp_path / "spark" / "commits" / "0").write_text("v1")
    complete_offsets(str(tmp_path))
    assert partitions(path) is None
    assert (path.parent / ".0.crc").exists()


def test_a_new_checkpoint_needs_nothing(tmp_path: Path) -> None:
    complete_offsets(str(tmp_path))
    assert not (tmp_path / "spark").exists()


def log(folder: Path, **entries: str) -> Path:
    """Write entries such as ``b3="r:0 s:1"``: batch 3, in which r had come to 0 and s to 1."""
    offsets = folder / "spark" / "offsets"
    for name, sources in entries.items():
        path = entry(offsets, int(name[1:]), None)
        lines = [
            f'{source}:{{"logOffset":{at}}}' for source, _, at in (each.partition(":") for each in sources.split())
        ]
        path.write_text("\n".join([*path.read_text().split("\n")[:2], *lines]))
    return offsets


def sources(path: Path) -> list[str]:
    return path.read_text().split("\n")[2:]


def test_a_batch_tells_where_its_sources_had_come_to(tmp_path: Path) -> None:
    log(tmp_path, b3="r:0 s:1", b4="s:2")
    assert offsets_at(str(tmp_path), 3) == {"r": '{"logOffset":0}', "s": '{"logOffset":1}'}
    assert offsets_at(str(tmp_path), 4) == {"s": '{"logOffset":2}'}


def test_a_source_that_was_left_out_is_found_in_the_last_entry_that_has_it(tmp_path: Path) -> None:
    log(tmp_path, b1="r:0 s:0", b2="r:5 s:1", b3="s:2", b4="s:3 r:9")
    assert last_offsets(str(tmp_path), 3, {"r", "never"}) == {"r": '{"logOffset":5}'}


@pytest.mark.parametrize("newest", ["s:3", "s:3 r:9"], ids=["", "noted by a batch that was finished without it"])
def test_a_source_that_comes_back_goes_on_where_it_was(tmp_path: Path, newest: str) -> None:
    offsets = log(tmp_path, b2="s:2", b3=newest)
    resume_offsets(str(tmp_path), {"r": '{"logOffset":5}'})
    assert sources(offsets / "2") == ['s:{"logOffset":2}', 'r:{"logOffset":5}']
    assert sources(offsets / "3") == ['s:{"logOffset":3}', 'r:{"logOffset":5}']
    assert not (offsets / ".3.crc").exists()
    before = (offsets / "3").stat().st_mtime_ns
    resume_offsets(str(tmp_path), {"r": '{"logOffset":5}'})
    assert (offsets / "3").stat().st_mtime_ns == before


def test_a_source_that_is_forgotten_is_in_neither_of_the_last_entries(tmp_path: Path) -> None:
    offsets = log(tmp_path, b1="r:1", b2="r:2 s:2", b3="r:3 s:3")
    forget_offsets(str(tmp_path), {"r", "never"})
    assert [sources(offsets / name) for name in "123"] == [
        ['r:{"logOffset":1}'],
        ['s:{"logOffset":2}'],
        ['s:{"logOffset":3}'],
    ]
    assert not (offsets / ".3.crc").exists()


def committed(batch: int, *seen: str) -> Manifest:
    """Return the manifest of a batch by which rows of these streams have come."""
    progress = tuple(SourceProgress(source=name, rows=1) for name in seen)
    return Manifest(batch=batch, watermark_us=None, plan="p", sources=progress)


@pytest.mark.parametrize("since", ["", "s:7", "s:7 r:0"], ids=["at once", "a batch later", "carried on"])
def test_a_stream_whose_only_batch_was_finished_without_it_begins_at_its_start(tmp_path: Path, since: str) -> None:
    """Batch 6 was begun with the new stream r and failed; without r it was finished, with r still in its entry."""
    offsets = log(tmp_path, b5="s:5", b6="s:6 r:0", **({"b7": since} if since else {}))
    batch = 7 if since else 6
    now = resume_streams(
        str(tmp_path), Catalog(read=("s",)), Catalog(read=("s", "r"), offsets=()), committed(batch, "s")
    )
    assert not any("r:" in line for number in (batch - 1, batch) for line in sources(offsets / str(number)))
    assert sources(offsets / str(batch)) == [f's:{{"logOffset":{batch}}}']
    assert now.offsets == (("s", f'{{"logOffset":{batch}}}'),)


def test_a_stream_of_a_batch_that_is_yet_to_be_finished_keeps_what_the_batch_was_to_read(tmp_path: Path) -> None:
    offsets = log(tmp_path, b5="s:5", b6="s:6 r:0")
    with_both = Catalog(read=("s", "r"))
    assert resume_streams(str(tmp_path), with_both, with_both, committed(5, "s")).offsets == (("s", '{"logOffset":5}'),)
    assert sources(offsets / "6") == ['s:{"logOffset":6}', 'r:{"logOffset":0}']


def test_a_stream_that_was_read_and_had_no_rows_yet_goes_on_where_it_was(tmp_path: Path) -> None:
    """Batch 7 was begun with r, up to 9, and finished without it."""
    offsets = log(tmp_path, b6="s:6 r:3", b7="s:7 r:9")
    before = Catalog(read=("s",), offsets=(("r", '{"logOffset":3}'), ("s", '{"logOffset":6}')))
    now = resume_streams(str(tmp_path), before, Catalog(read=("s", "r"), offsets=before.offsets), committed(7, "s"))
    assert sources(offsets / "7") == ['s:{"logOffset":7}', 'r:{"logOffset":3}']
    assert dict(now.offsets) == {"r": '{"logOffset":3}', "s": '{"logOffset":7}'}
