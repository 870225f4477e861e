"""What has changed outside a checkpoint since it was last started."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from plait.runtime.losses.remembered import (
    PATH,
    Fingerprint,
    Remembered,
    Written,
    changes,
    has_files,
    read_remembered,
    write_remembered,
)
from plait.runtime.notice import Notice
from plait.state.storage import Storage

OLD, NEW = Fingerprint(files=1, bytes=10, digest="old"), Fingerprint(files=2, bytes=20, digest="new")
NOTHING = Remembered(tables={}, outputs={})


def tables(**found: Fingerprint) -> Remembered:
    return Remembered(tables=found, outputs={})


def writing(format: str, *columns: tuple[str, str]) -> Remembered:
    return Remembered(tables={}, outputs={"out": Written(query="q", format=format, columns=columns)})


def told(before: Remembered, now: Remembered, *, kept: tuple[str, ...] = (), holds: bool = True) -> tuple[Notice, ...]:
    return changes(before, now, frozenset(kept), lambda _: holds)[1]


def test_a_table_whose_files_changed_is_warned_of_at_every_start_until_it_is_read_again() -> None:
    remembered = tables(t=OLD)
    for _ in range(2):
        remembered, (notice,) = changes(remembered, tables(t=NEW), frozenset("t"), lambda _: True)
        assert "then 1 file of 10 bytes, now 2 files of 20 bytes" in notice.text
    remembered, notices = changes(remembered, tables(t=NEW), frozenset(), lambda _: True)
    assert notices == ()
    assert changes(remembered, tables(t=NEW), frozenset("t"), lambda _: True)[1] == ()


def test_a_table_of_as_many_and_as_large_files_is_said_to_be_written_otherwise() -> None:
    (notice,) = told(tables(t=OLD), tables(t=replace(OLD, digest="other")), kept=("t",))
    assert "then 1 file of 10 bytes, now as many, but written or named otherwise. Its rows" in notice.text


def test_a_table_of_which_nothing_was_remembered_or_nothing_can_be_told_is_not_warned_of() -> None:
    assert told(NOTHING, tables(t=NEW), kept=("t",)) == ()
    assert told(tables(t=OLD), NOTHING, kept=("t",)) == ()


@pytest.mark.parametrize(
    ("columns", "difference"),
    [
        ((("id", "bigint"), ("v", "int"), ("w", "string")), "new 'w' STRING"),
        ((("id", "bigint"),), "gone 'v' INT"),
        ((("id", "bigint"), ("v", "bigint")), "'v' BIGINT instead of INT"),
    ],
)
def test_a_query_with_other_columns_under_the_same_path_is_warned_of(
    columns: tuple[tuple[str, str], ...], difference: str
) -> None:
    before = writing("parquet", ("id", "bigint"), ("v", "int"))
    (notice,) = told(before, writing("parquet", *columns))
    assert (notice.kind, notice.of) == ("output changed", "q")
    assert difference in notice.text
    assert told(before, writing("parquet", *columns), holds=False) == ()


@pytest.mark.parametrize(
    ("format_", "options", "difference"),
    [
        ("json", (), "json files instead of csv"),
        ("csv", (("header", "true"), ("sep", ";")), "header 'true' instead of none"),
        ("csv", (("partitionBy", "id"), ("sep", ";")), "partitionBy 'id' instead of none"),
        ("csv", (("sep", "|"),), "sep '|' instead of ';'"),
        ("csv", (), "sep none instead of ';'"),
    ],
)
def test_a_query_that_writes_in_another_way_under_the_same_path_is_warned_of(
    format_: str, options: tuple[tuple[str, str], ...], difference: str, tmp_path: Path
) -> None:
    columns = (("id", "bigint"), ("v", "int"))
    written = Written(query="q", format="csv", columns=columns, options=(("sep", ";"),))
    before = Remembered(tables={}, outputs={"out": written})
    now = replace(written, format=format_, options=options)
    (notice,) = told(before, Remembered(tables={}, outputs={"out": now}))
    assert difference in notice.text
    assert told(before, before) == ()
    earlier = replace(written, options=None)
    if format_ == "csv":
        assert told(Remembered(tables={}, outputs={"out": earlier}), Remembered(tables={}, outputs={"out": now})) == ()
    storage = Storage.open(str(tmp_path))
    write_remembered(storage, before)
    assert read_remembered(storage) == before


def test_the_order_of_columns_matters_only_where_files_do_not_name_them() -> None:
    there, here = (("id", "bigint"), ("v", "int")), (("v", "int"), ("id", "bigint"))
    assert told(writing("parquet", *there), writing("parquet", *here)) == ()
    (notice,) = told(writing("csv", *there), writing("csv", *here))
    assert "another order" in notice.text


def test_a_folder_whose_query_is_dropped_stays_known_and_what_is_remembered_survives_its_file(tmp_path: Path) -> None:
    storage = Storage.open(str(tmp_path))
    before = Remembered(tables={"t": OLD}, outputs=writing("csv", ("id", "bigint")).outputs)
    remembered, _ = changes(before, NOTHING, frozenset("t"), lambda _: True)
    assert remembered == before
    write_remembered(storage, remembered)
    assert read_remembered(storage) == before


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"tables": {"t": {"files": 1}}}', b'{"outputs": {"o": {}}}'])
def test_what_cannot_be_understood_is_forgotten_rather_than_fatal(tmp_path: Path, content: bytes) -> None:
    storage = Storage.open(str(tmp_path))
    storage.write_file(PATH, content)
    assert read_remembered(storage) == NOTHING


def test_staged_and_hidden_files_are_no_results(tmp_path: Path) -> None:
    (tmp_path / "_SUCCESS").write_text("")
    assert not has_files(str(tmp_path))
    assert not has_files(str(tmp_path / "absent"))
    (tmp_path / "region=a").mkdir()
    (tmp_path / "region=a" / "q-0.parquet").write_text("x")
    assert has_files(str(tmp_path))


def test_of_folders_that_no_query_writes_any_more_the_latest_stay_known(tmp_path: Path) -> None:
    storage = Storage.open(str(tmp_path))
    columns = (("id", "int"),)
    for number in range(200):
        outputs = {
            path: Written(query=path, format="csv", columns=columns) for path in ("live", f"out{-number % 200:03}")
        }
        remembered, _ = changes(
            read_remembered(storage), Remembered(tables={}, outputs=outputs), frozenset(), lambda _: True
        )
        write_remembered(storage, remembered)
    assert [*read_remembered(storage).outputs] == [
        *(f"out{200 - number:03}" for number in range(135, 199)),
        "live",
        "out001",
    ]
