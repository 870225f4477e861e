"""When the rows of a batch arrived, by Spark's logs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from plait.runtime.checkpoint import arrivals
from plait.runtime.checkpoint.arrivals import Arrivals
from plait.stats.latency import Arrived


def log_batch(checkpoint: Path, batch: int, offsets: Mapping[str, object], form: str = "v2") -> None:
    folder = checkpoint / "spark" / "offsets"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{name}:{offset if isinstance(offset, str) else json.dumps(offset)}" for name, offset in offsets.items()]
    (folder / str(batch)).write_text("\n".join([form, "{}", *lines]))


def log_files(checkpoint: Path, source: str, entry: str, *files: tuple[int, int]) -> None:
    """Write an entry of a source's log: (number of the entry that brought it, time of change) of each file."""
    folder = checkpoint / "spark" / "sources" / source
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"path": "file:/x", "timestamp": time, "batchId": number}) for number, time in files]
    (folder / entry).write_text("\n".join(["v1", *lines]))


def test_the_files_of_a_batch_share_its_rows(tmp_path: Path) -> None:
    log_batch(tmp_path, 0, {"r": {"logOffset": 0}})
    log_files(tmp_path, "r", "0", (0, 100), (0, 200))
    assert Arrivals(str(tmp_path)).of_batch(0, {"r": 10}) == (
        [Arrived(at_ms=100, rows=5), Arrived(at_ms=200, rows=5)],
        frozenset(),
    )


def test_a_batch_has_the_entries_since_the_batch_before_it_also_in_one_that_holds_all(tmp_path: Path) -> None:
    log_batch(tmp_path, 7, {"r": {"logOffset": 7}})
    log_batch(tmp_path, 8, {"r": {"logOffset": 9}})
    log_files(tmp_path, "r", "7", (7, 70))
    log_files(tmp_path, "r", "8", (8, 80))
    log_files(tmp_path, "r", "9.compact", (7, 70), (8, 80), (9, 90), (9, 91))
    found = Arrivals(str(tmp_path))
    arrived, _ = found.of_batch(8, {"r": 3})
    assert [each.at_ms for each in arrived] == [80, 90, 91]
    log_batch(tmp_path, 9, {"r": {"logOffset": 9}})
    assert found.of_batch(9, {"r": 0}) == ([], frozenset())


def test_streams_whose_names_spark_spells_otherwise_are_found(tmp_path: Path) -> None:
    log_batch(tmp_path, 0, {"a_2d_b": {"logOffset": 0}})
    log_files(tmp_path, "a_2d_b", "0", (0, 5))
    assert Arrivals(str(tmp_path)).of_batch(0, {"a-b": 1}) == ([Arrived(at_ms=5, rows=1)], frozenset())


def test_of_other_sources_and_unnamed_ones_nothing_is_known(tmp_path: Path) -> None:
    log_batch(tmp_path, 0, {"rate": "17", "k": {"topic": {"0": 5}}, "odd": "{"})
    known = Arrivals(str(tmp_path))
    assert known.of_batch(0, {"rate": 1, "k": 1, "odd": 1, "none": 1, "silent": 0}) == (
        [],
        frozenset({"rate", "k", "odd", "none"}),
    )
    log_batch(tmp_path, 1, {"r": {"logOffset": 0}}, form="v1")
    assert known.of_batch(1, {"r": 1}) == ([], frozenset({"r"}))


def test_an_entry_that_is_missing_damaged_or_very_long_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_batch(tmp_path, 0, {"r": {"logOffset": 0}})
    known = Arrivals(str(tmp_path))
    assert known.of_batch(0, {"r": 1}) == ([], frozenset({"r"}))
    log_files(tmp_path, "r", "0", (0, 100))
    monkeypatch.setattr(arrivals, "_MOST_BYTES", 10)
    assert known.of_batch(0, {"r": 1}) == ([], frozenset({"r"}))
    (tmp_path / "spark" / "sources" / "r" / "0").write_text("v1\n{")
    monkeypatch.undo()
    assert known.of_batch(0, {"r": 1}) == ([], frozenset({"r"}))


def test_a_stream_that_comes_back_has_not_all_files_it_ever_had_in_that_batch(tmp_path: Path) -> None:
    log_batch(tmp_path, 7, {"s": {"logOffset": 3}})
    log_batch(tmp_path, 8, {"r": {"logOffset": 2}})
    for number in range(3):
        log_files(tmp_path, "r", str(number), (number, 100 * number))
    assert Arrivals(str(tmp_path)).of_batch(8, {"r": 4}) == ([Arrived(at_ms=200, rows=4)], frozenset())


def test_of_an_entry_that_holds_all_only_the_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log_batch(tmp_path, 8, {"r": {"logOffset": 8}})
    log_batch(tmp_path, 9, {"r": {"logOffset": 9}})
    log_files(tmp_path, "r", "9.compact", *((number, 7) for number in range(9) for _ in range(50)), (9, 90), (9, 91))
    monkeypatch.setattr(arrivals, "_MOST_BYTES", 300)
    arrived, unknown = Arrivals(str(tmp_path)).of_batch(9, {"r": 2})
    assert ([each.at_ms for each in arrived], unknown) == ([90, 91], frozenset())
